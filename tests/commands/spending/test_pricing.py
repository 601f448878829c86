"""Pricing of judges that are paid: an estimate near the bill, and a worst case above it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from commands.errors import ConfigurationError
from commands.settings.schema import CacheTtl
from commands.spending.price_table import price_table
from commands.spending.pricing import FREE_OF_CHARGE, TokenPricing, price_book
from ledger.events.money import Usage, cost_usd
from ledger.events.registration import JudgeSettings
from projections.tournament.estimate import (
    UNMEASURED,
    AskedQuery,
    TokenModel,
    TokenRates,
    model_of_replies,
    n_input_at_most,
)
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery
from tests.providers.anthropic.messages import PromptCache
from tests.providers.anthropic.prompt import counted_of
from tests.support.builders.commands import settings
from tests.support.builders.events import (
    NOON,
    STREAM,
    build_query,
    instructions,
    judge,
    prompt,
    rubric,
)

NOTHING = Tournament(STREAM)
MODELS = sorted(priced.row.id for priced in price_table().rows)
CACHES: tuple[CacheTtl, ...] = ("5m", "1h", "off")
N_PREFIX = 900
MEASURED = TokenModel("replies", TokenRates(0.25, 200), {}, hits_directly=0.75, hits_in_batches=0.5)


def billed(model: str = "claude-opus-5-5", **parameters: float) -> JudgeSettings:
    """Return a judge that is paid."""
    asked = tuple({"max_tokens": 4_096.0, **parameters}.items())
    return judge(model, provider="anthropic", model=model, parameters=asked)


def pricing(
    model: str = "claude-opus-5-5",
    *,
    tokens: TokenModel = UNMEASURED,
    in_batch: bool = False,
    cache: CacheTtl = "off",
    retries: int = 0,
) -> TokenPricing:
    """Return the pricing of a judge by the shipped table."""
    return TokenPricing(
        billed(model),
        price_table(),
        lambda: tokens,
        in_batch=in_batch,
        cache=cache,
        retries=retries,
    )


def question(text: str = "What helps?", *, dimension: str = "factuality") -> JudgeQuery:
    """Return a question about a prompt."""
    about = prompt(text=text, gold=None)
    rules = rubric(dimension, needs_gold=False)
    return build_query(
        billed(), instructions(), rules, about, a="aspirin", b="rest", order="forward"
    )


def of_length(n_tokens: int) -> JudgeQuery:
    """Return a question of so many tokens at a quarter of a token for a byte."""
    return question()._replace(system="s" * 4 * N_PREFIX, user="u" * 4 * (n_tokens - N_PREFIX))


@pytest.mark.parametrize(
    ("in_batch", "cache", "by_hand"),
    [
        # 1,000 tokens in, 200 out, of opus-5-5, in millionths of a dollar: 1000*4 + 200*20
        (False, "off", 8_000),
        (True, "off", 4_000),
        # 3 of 4 times 900 are read: 100*4 + 200*20 + 900*(0.75*0.2 + 0.25*5)
        (False, "5m", 5_660),
        # the same with writes at 8
        (False, "1h", 6_335),
        # 1 of 2 times in a batch: (100*4 + 200*20 + 900*(0.5*0.2 + 0.5*5)) / 2
        (True, "5m", 3_370),
    ],
)
def test_a_query_is_expected_to_cost_what_a_hand_works_out(
    in_batch: bool, cache: CacheTtl, by_hand: float
) -> None:
    """The share of hits, the discount and the writes all count."""
    each = pricing(tokens=MEASURED, in_batch=in_batch, cache=cache)

    usd = each.expected_usd([of_length(1_000)])

    assert usd is not None
    assert usd * 1e6 == pytest.approx(by_hand)


def test_queries_cost_the_sum_of_each() -> None:
    """No query is left out of an estimate."""
    one, two = of_length(1_000), of_length(3_000)
    each = pricing(tokens=MEASURED, cache="5m")

    both = each.expected_usd([one, two])

    assert both == pytest.approx((each.expected_usd([one]) or 0) + (each.expected_usd([two]) or 0))
    assert each.expected_usd([]) == each.worst_usd([]) == 0


def test_what_will_be_asked_again_is_expected_twice() -> None:
    """An unreadable reply is paid for, and so is the next."""
    often = TokenModel("replies", TokenRates(0.25, 200), {}, share_asked_again=0.5)
    once, again = (
        pricing(tokens=often, retries=n).expected_usd([of_length(1_000)]) for n in (0, 1)
    )

    assert once is not None
    assert again == pytest.approx(1.5 * once)


def test_a_prefix_below_the_models_least_is_not_cached() -> None:
    """The provider silently keeps nothing, and the estimate must know."""
    short = pricing("claude-opus-4-7", tokens=MEASURED, cache="5m")  # from 2,048 on
    plain = pricing("claude-opus-4-7", tokens=MEASURED)

    assert not short.caches(of_length(1_000))
    assert short.expected_usd([of_length(1_000)]) == plain.expected_usd([of_length(1_000)])


def test_where_the_least_is_not_known_replies_tell() -> None:
    """Before the first reply nobody counts on a cache that may do nothing."""
    unseen, seen = (
        pricing("claude-haiku-5-5", tokens=tokens, cache="5m") for tokens in (UNMEASURED, MEASURED)
    )

    assert not unseen.caches(of_length(1_000))
    assert seen.caches(of_length(1_000))


@pytest.mark.parametrize("in_batch", [False, True])
def test_before_any_reply_a_share_of_hits_is_assumed(in_batch: bool) -> None:
    """A cache is neither taken for perfect nor for useless, and less so in a batch."""
    guess = TokenModel("counts", TokenRates(0.25, 200), {})
    assumed = pricing(tokens=guess, in_batch=in_batch, cache="5m")
    share = {False: 0.95, True: 0.64}[in_batch]
    known = TokenModel("replies", TokenRates(0.25, 200), {}, 0.0, share, share)

    usd = assumed.expected_usd([of_length(1_000)])

    expected = pricing(tokens=known, in_batch=in_batch, cache="5m").expected_usd([of_length(1_000)])
    assert usd == pytest.approx(expected)


@pytest.mark.parametrize("cache", CACHES)
@given(model=st.sampled_from(MODELS), text=st.text(min_size=1), data=st.data())
def test_no_reply_costs_more_than_the_worst(
    cache: CacheTtl, model: str, text: str, data: DataObject
) -> None:
    """A cap rests on it: whatever is cached, read and written, one asking stays below."""
    in_batch = data.draw(st.booleans())
    scale = data.draw(st.sampled_from((1, 2_000)))  # beyond 100,000 tokens, too
    asked = question(text)._replace(user=text * scale)
    each = pricing(model, in_batch=in_batch, cache=cache)
    n_input = data.draw(st.integers(min_value=0, max_value=n_input_at_most(asked, each.judge)))
    n_written, n_read = 0, 0
    if cache != "off":
        n_written = data.draw(st.integers(min_value=0, max_value=n_input))
        n_read = data.draw(st.integers(min_value=0, max_value=n_input - n_written))
    usage = Usage(
        n_input=n_input - n_written - n_read,
        n_output=data.draw(st.integers(min_value=0, max_value=4_096)),
        n_cache_write_5m=n_written if cache == "5m" else 0,
        n_cache_write_1h=n_written if cache == "1h" else 0,
        n_cache_read=n_read,
    )

    worst, price = each.worst_usd([asked]), each.price_of(usage)

    assert worst is not None
    assert price is not None
    assert cost_usd(usage, price) <= worst * (1 + 1e-9)
    assert (each.expected_usd([asked]) or 0) <= worst


@pytest.mark.parametrize(("in_batch", "cache"), [(False, "off"), (False, "5m"), (True, "5m")])
def test_after_a_pilot_the_estimate_is_near_the_bill(in_batch: bool, cache: CacheTtl) -> None:
    """Acceptance: within a tenth, on a provider that counts tokens and caches in its own way."""
    queries = [
        question(f"Case {n}: " + "what is to be done about it? " * (1 + n * 7 % 40), dimension=name)
        for n in range(300)
        for name in ("factuality", "utility")
    ]
    used = usages_of(queries, in_batch=in_batch, cache=cache)
    samples = [
        AskedQuery(asked, usage, in_batch) for asked, usage in zip(queries, used, strict=True)
    ]
    pilot, rest = samples[:100], samples[100:]
    each = pricing(tokens=model_of_replies(pilot, "replies"), in_batch=in_batch, cache=cache)

    expected = each.expected_usd([sample.query for sample in rest])

    prices = [each.price_of(sample.usage) for sample in rest]
    bill = sum(
        cost_usd(sample.usage, price)
        for sample, price in zip(rest, prices, strict=True)
        if price is not None
    )
    assert None not in prices
    assert expected == pytest.approx(bill, rel=0.1)


def usages_of(queries: list[JudgeQuery], *, in_batch: bool, cache: CacheTtl) -> list[Usage]:
    """Return what the fake's tokenizer and cache make of queries; in a batch 3 of 10 miss."""
    fake = PromptCache()
    mark = {} if cache == "off" else {"cache_control": {"type": "ephemeral", "ttl": cache}}
    used = []
    for n, asked in enumerate(queries):
        padded = asked.system + "As the rubric says. " * 60
        params = {
            "model": "claude-opus-5-5",
            "system": [{"type": "text", "text": padded, **mark}],
            "messages": [{"role": "user", "content": asked.user}],
        }
        may_hit = not (in_batch and n % 10 < 3)
        seen = fake.read_and_write(counted_of(params), now=NOON, may_hit=may_hit)
        used.append(
            Usage(
                n_input=seen.n_input,
                n_output=60 + n * 31 % 200,
                n_cache_write_5m=seen.n_written_5m,
                n_cache_read=seen.n_read,
            )
        )
    return used


def test_a_judge_on_this_machine_is_free(tmp_path: Path) -> None:
    """Nobody is asked to agree to nothing."""
    for provider in ("reference", "hf"):
        local = judge("local", provider=provider, model="olmo")

        assert price_book(settings(), tmp_path).pricing(local, NOTHING) is FREE_OF_CHARGE


def test_replies_are_read_for_an_estimate_alone_and_once(tmp_path: Path) -> None:
    """There may be very many, and a command that finds nothing open waits for none of them."""
    read = list[TokenModel]()

    def tokens_of() -> TokenModel:
        read.append(UNMEASURED)
        return UNMEASURED

    unasked = TokenPricing(billed(), price_table(), tokens_of, in_batch=False, cache="off")
    planned = price_book(settings(), tmp_path).pricing(billed(), NOTHING)

    assert unasked.worst_usd([question()]) is not None
    assert unasked.price_of(Usage(n_input=1, n_output=1)) is not None
    assert read == []
    assert unasked.expected_usd([question()]) is not None
    assert read != []
    assert isinstance(planned, TokenPricing)
    assert planned.tokens is planned.tokens


@pytest.mark.parametrize("provider", ["anthropic", "anthropic-batch", "endpoint"])
def test_a_judge_without_a_row_has_no_price_and_no_worst(provider: str, tmp_path: Path) -> None:
    """It is unknown, which is not nothing."""
    stranger = judge("x", provider=provider, model="x", parameters=(("max_tokens", 9.0),))
    each = price_book(settings(), tmp_path).pricing(stranger, NOTHING)

    assert each.expected_usd([question()]) is None
    assert each.worst_usd([question()]) is None
    assert each.price_of(Usage(n_input=1, n_output=1)) is None


def test_a_judge_that_may_reply_at_any_length_has_no_worst(tmp_path: Path) -> None:
    """A worst case needs a limit on the output."""
    endless = judge("claude-opus-5-5", provider="anthropic", model="claude-opus-5-5")
    each = price_book(settings(), tmp_path).pricing(endless, NOTHING)

    assert each.worst_usd([question()]) is None
    assert each.expected_usd([question()]) is not None


def test_batches_are_priced_as_batches(tmp_path: Path) -> None:
    """The provider that is asked says how, and a batch is half the price."""
    usage = Usage(n_input=1, n_output=1)
    inputs = []
    for provider in ("anthropic", "anthropic-batch"):
        asked = judge("claude-opus-5-5", provider=provider, model="claude-opus-5-5")
        price = price_book(settings(), tmp_path).pricing(asked, NOTHING).price_of(usage)
        assert price is not None
        inputs.append(price.input)

    assert inputs == [4.0, 2.0]


def test_a_cache_that_nobody_asked_for_is_part_of_the_worst_case(tmp_path: Path) -> None:
    """OpenAI writes prefixes to its cache by itself, and bills a quarter more for it."""
    asked = (("max_tokens", 9.0),)
    sol, mini = (
        judge(model, provider="endpoint", model=model, parameters=asked)
        for model in ("gpt-6.2-sol", "gpt-5-mini")
    )

    worst = {
        each.model: price_book(settings(), tmp_path).pricing(each, NOTHING).worst_usd([question()])
        for each in (sol, mini)
    }

    n_input = n_input_at_most(question(), sol)
    assert worst["gpt-6.2-sol"] == pytest.approx((n_input * 2.0 * 1.25 + 9 * 10.0) / 1e6)
    assert worst["gpt-5-mini"] == pytest.approx((n_input * 0.25 + 9 * 2.0) / 1e6)


def test_a_users_prices_are_found_beside_the_settings(tmp_path: Path) -> None:
    """Relative paths start from the settings' folder, as all others do."""
    (tmp_path / "mine.toml").write_text(
        "date = 2026-11-01\nbatch_factor = 1\ncache_write_5m_factor = 1\n"
        'cache_write_1h_factor = 1\n[[models]]\nid = "llama"\ninput = 0.5\noutput = 0.7\n',
        encoding="utf-8",
    )
    llama = judge("llama", provider="endpoint", model="llama", parameters=(("max_tokens", 9.0),))
    mine, missing = (settings(judge={"prices": name}) for name in ("mine.toml", "none.toml"))

    price = (
        price_book(mine, tmp_path).pricing(llama, NOTHING).price_of(Usage(n_input=1, n_output=1))
    )

    assert price is not None
    assert (price.input, price.table) == (0.5, "mine.toml of 2026-11-01")
    with pytest.raises(ConfigurationError, match=r"none\.toml"):
        price_book(missing, tmp_path).pricing(llama, NOTHING)
