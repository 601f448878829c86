"""Estimates: tokens before they are paid for, from replies on record where there are any."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.money import Usage
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from projections.tournament.estimate import (
    BYTES_PER_TOKEN,
    FRAME_TOKENS,
    UNMEASURED_OUTPUT,
    CountedQuery,
    TokenModel,
    asked_queries,
    may_have_used,
    n_bytes_of,
    n_input_at_most,
    token_model,
)
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import planned_batch
from tests.support.builders.events import (
    build_query,
    instructions,
    judge,
    known,
    opened,
    prompt,
    rubric,
)
from tests.support.builders.money import paid, paid_in_vain
from tests.support.builders.worlds import RUBRICS, answered, matches_of

OPUS = judge("opus", provider="anthropic", model="claude-opus-5-5")
SONNET = judge("sonnet", provider="anthropic-batch", model="claude-sonnet-5-5")
LOCAL = judge("olmo", provider="hf", model="olmo")


def world(*judges: JudgeSettings) -> tuple[Event, ...]:
    """Return a tournament on three prompts and two dimensions, all of it answered."""
    prompts = [prompt("p1"), prompt("p2"), prompt("p3", text="A longer question. " * 9)]
    return answered(opened(prompts=prompts, rubrics=RUBRICS, judges=list(judges) or [OPUS]))


def questions(state: Tournament, dimension: str = "factuality") -> tuple[JudgeQuery, ...]:
    """Return the questions on a dimension, both orders."""
    matches = [each for each in matches_of(state) if each.pairing.rubric.dimension == dimension]
    return tuple(question for each in matches for question in (each.forward, each.swapped))


WORLD = world()
FACTUAL, USEFUL = (questions(known(*WORLD), each) for each in ("factuality", "utility"))


def learnt(*events: Event, counts: Sequence[CountedQuery] = ()) -> TokenModel:
    """Return the estimator after events."""
    return token_model(known(*WORLD, *events), OPUS, counts)


def replied(question: JudgeQuery, n_input: int = 1_000, n_output: int = 100) -> Event:
    """Return a reply that took so many tokens."""
    return paid(question.query_key, Usage(n_input=n_input, n_output=n_output))


def test_without_a_reply_tokens_are_guessed_and_marked_so() -> None:
    """A first plan must not pass for a measurement."""
    (question, *_), tokens = FACTUAL, learnt()

    assert tokens.basis == "nothing"
    expected = tokens.expected(question)
    assert expected.n_input == round(n_bytes_of(question) / BYTES_PER_TOKEN)
    assert n_input_at_most(question, OPUS) == n_bytes_of(question) + FRAME_TOKENS
    assert expected.n_prefix == round(len(question.system.encode()) / BYTES_PER_TOKEN)
    assert expected.n_output == UNMEASURED_OUTPUT
    assert tokens.hit_share(in_batch=True) is None
    assert tokens.n_askings(retries=3) == 1


@pytest.mark.parametrize(("most", "n_output"), [(64, 64), (4_096, UNMEASURED_OUTPUT)])
def test_no_reply_is_expected_to_be_longer_than_the_judge_allows(most: int, n_output: int) -> None:
    """A judge of one word would else be estimated at six times its worst case."""
    brief = judge("brief", provider="anthropic", parameters=(("max_tokens", float(most)),))
    state = known(*world(brief))
    (question, *_) = questions(state)

    assert token_model(state, brief).expected(question).n_output == n_output


def test_replies_of_the_judge_are_the_measure() -> None:
    """What a byte took, cached or not, is what the next will take; output is the mean."""
    first, second, *_, longest = FACTUAL

    tokens = learnt(
        replied(first, n_bytes_of(first) // 4), replied(second, n_bytes_of(second) // 4, 300)
    )

    assert tokens.basis == "replies"
    assert tokens.expected(longest).n_input == pytest.approx(n_bytes_of(longest) / 4, rel=0.01)
    assert tokens.expected(longest).n_output == 200


def test_each_dimension_has_its_own_measure() -> None:
    """A long rubric's replies say little about a short one's."""
    (factual, *_), (useful, *_) = FACTUAL, USEFUL

    tokens = learnt(replied(factual), replied(useful, 3_000, 900))

    assert [tokens.expected(each)[:2] for each in (factual, useful)] == [(1000, 100), (3000, 900)]


@pytest.mark.no_cover
def test_a_dimension_without_replies_takes_the_measure_of_the_others() -> None:
    """A rubric that was added after the pilot is estimated too."""
    cached = Usage(n_input=100, n_output=120, n_cache_read=900)

    expected = learnt(paid(FACTUAL[0].query_key, cached)).expected(USEFUL[0])

    assert expected.n_output == 120
    assert 0 < expected.n_prefix < expected.n_input
    assert expected.n_prefix != 900


def test_the_cached_prefix_is_what_was_written_or_read() -> None:
    """Every query of a dimension has the same, so one reply tells."""
    usages = (
        Usage(n_input=100, n_output=9, n_cache_write_5m=900),
        Usage(n_input=100, n_output=9, n_cache_read=900),
        Usage(n_input=100, n_output=9, n_cache_write_1h=900),
        Usage(n_input=1_000, n_output=9),
    )

    tokens = learnt(
        *(paid(each.query_key, used) for each, used in zip(FACTUAL, usages, strict=False))
    )

    assert tokens.expected(FACTUAL[0]).n_prefix == 900
    assert tokens.hit_share(in_batch=False) == pytest.approx(1 / 3)


def test_hits_in_batches_are_another_share() -> None:
    """In a batch requests run side by side, and one after another they find what was written."""
    first, second, *_ = FACTUAL
    read = Usage(n_input=100, n_output=9, n_cache_read=900)
    written = Usage(n_input=100, n_output=9, n_cache_write_5m=900)

    tokens = learnt(
        planned_batch(first.query_key, by=OPUS),
        paid(first.query_key, written),
        paid(second.query_key, read),
    )

    assert tokens.hit_share(in_batch=True) == 0
    assert tokens.hit_share(in_batch=False) == 1


def test_replies_without_a_verdict_are_measured_and_counted_on() -> None:
    """They were paid for; those that are asked again will be paid for again."""
    first, second, third, fourth, *_ = FACTUAL
    usage = Usage(n_input=1_000, n_output=100)

    tokens = learnt(
        replied(first),
        replied(second),
        paid_in_vain(third, usage),
        paid_in_vain(fourth, usage, reason="refused"),  # is not asked again
    )

    assert tokens.share_asked_again == 0.25
    assert tokens.n_askings(retries=0) == 1
    assert tokens.n_askings(retries=2) == 1 + 0.25 + 0.0625


def test_replies_of_another_judge_of_the_provider_are_better_than_nothing() -> None:
    """A pilot by a cheaper model says how long prompts are; that is not a measurement."""
    opening = world(OPUS, SONNET, LOCAL)
    state = known(*opening)
    (match, *_) = matches_of(state)
    pairing = match.pairing
    by_sonnet, by_local = (
        build_query(
            each,
            instructions(),
            pairing.rubric,
            pairing.prompt,
            a=match.response_a.text,
            b=match.response_b.text,
            order="forward",
        )
        for each in (SONNET, LOCAL)
    )

    tokens = token_model(known(*opening, replied(by_sonnet), replied(by_local, 9_000, 900)), OPUS)

    assert tokens.basis == "another judge"
    assert tokens.expected(match.forward)[:2] == (1_000, 100)


def test_the_providers_counts_stand_in_for_prompts_alone() -> None:
    """How long replies are nobody knows before the first."""
    first, second, *_ = FACTUAL

    tokens = learnt(counts=[CountedQuery(first, 1_234)])

    assert tokens.basis == "counts"
    assert tokens.expected(first)[:2] == (1_234, UNMEASURED_OUTPUT)
    assert tokens.expected(second).n_input == pytest.approx(1_234, rel=0.02)


def test_replies_count_more_than_the_providers_counts() -> None:
    """What was billed is the better measure."""
    (first, *_) = FACTUAL

    assert learnt(replied(first), counts=[CountedQuery(first, 1_234)]).basis == "replies"


def test_pairs_without_their_responses_are_passed_over() -> None:
    """A plan may be made while entrants still answer."""
    (first, *_) = FACTUAL
    state = known(*WORLD[:-1], replied(first))

    assert [sample.query.query_key for sample in asked_queries(state, OPUS)] == [first.query_key]


def test_replies_to_other_questions_are_no_measure() -> None:
    """Another tournament's replies are in the ledger, and their questions are not known here."""
    strange = build_query(
        OPUS, instructions(), rubric(), prompt("p9"), a="x", b="y", order="forward"
    )
    in_vain = paid_in_vain(strange, Usage(n_input=1_000, n_output=100))
    state = known(*WORLD, replied(strange), in_vain)

    assert asked_queries(state, OPUS) == ()


@given(system=st.text(), user=st.text())
def test_no_prompt_takes_more_tokens_than_bytes_and_a_frame(system: str, user: str) -> None:
    """Tokenizers fall back to single bytes, never to less: the worst case rests on it."""
    question = FACTUAL[0]._replace(system=system, user=user)

    n_most = len((system + user).encode()) + FRAME_TOKENS
    assert n_input_at_most(question, OPUS) == n_most
    body = '{"thinking":true}'
    thinking = judge(parameters=(("extra_body", body),))
    assert n_input_at_most(question, thinking) == n_most + len(body)


@pytest.mark.parametrize(
    ("n_input", "n_output", "may"),
    [
        (100, 20, True),
        (99, 20, False),
        (100, 19, False),
        (None, 20, True),
        (100, None, True),
        (None, 19, False),
    ],
)
def test_more_tokens_than_a_request_has_bytes_or_an_answer_may_have_cannot_be(
    n_input: int | None, n_output: int | None, *, may: bool
) -> None:
    """A server that reports 10^30 of them would use up every later cap."""
    usage = Usage(n_input=60, n_output=20, n_cache_read=40)

    assert may_have_used(usage, n_input, n_output) == may
