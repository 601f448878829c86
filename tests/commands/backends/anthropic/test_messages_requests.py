"""A query as the Messages API is asked it: its words, its cached prefix, its tokens."""

from pathlib import Path

import pytest
from anthropic import Anthropic
from msgspec.structs import replace

from commands.backends.anthropic.messages import RequestForm, token_counter
from commands.errors import ProviderError
from commands.settings.inputs import read_instructions, read_rubric
from commands.settings.schema import CacheTtl, JudgeSection
from commands.spending.price_table import price_table
from ledger.identity import Dimension
from projections.verdicts.queries import VERDICT_SCHEMA, system_text
from tests.providers.anthropic.exchange import Fault
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.anthropic import MODEL, judge_settings, queries

RUBRICS = Path(__file__).parents[4] / "rubrics"
# As the fake counts them: a token for four bytes. Tokenizers since Opus 4.7 find a third more.
RECORDED = {"factuality": 1_134, "calibration": 1_139, "clinical_utility": 1_144}


@pytest.mark.parametrize("told", ["judge", "judge_medical"])
@pytest.mark.parametrize(("dimension", "n_recorded"), RECORDED.items())
def test_instructions_and_rubric_are_longer_than_the_least_that_is_cached(
    anthropic_client: Anthropic, dimension: str, n_recorded: int, told: str
) -> None:
    """Below the least a provider silently caches nothing, and every query pays for the rubric."""
    (query,) = queries(1)
    rubric = read_rubric(RUBRICS / f"{dimension}.md", Dimension(dimension))
    instructions = read_instructions(RUBRICS / f"{told}.md")
    with_it = query._replace(system=system_text(instructions, rubric, "line"))
    tokens = token_counter(anthropic_client, judge_settings())

    (n_with,) = tokens([with_it]).values()
    (n_without,) = tokens([query._replace(system="judge")]).values()

    n_least = price_table().min_cacheable(JudgeSection().model)
    assert n_with - n_without == pytest.approx(n_recorded, abs=2)
    assert n_least is not None
    assert n_recorded > n_least


(QUERY,) = queries(1)


def form(cache: CacheTtl = "5m", **parameters: str | float) -> RequestForm:
    """Return the form of a judge's requests."""
    return RequestForm(judge_settings(**parameters), cache=cache)


def test_a_request_holds_what_names_the_query_and_no_sampling() -> None:
    """The newest API refuses a temperature, and effort has another default for each model."""
    params = form().params(QUERY)

    assert params == {
        "model": MODEL,
        "max_tokens": 4096,
        "system": [{"type": "text", "text": QUERY.system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": QUERY.user}],
        "output_config": {"effort": "low"},
    }


def test_the_schema_is_sent_where_it_is_the_protocol() -> None:
    """One schema for all dimensions: another would empty the cache."""
    config = form(protocol="schema", effort="max").params(QUERY)["output_config"]

    assert config == {
        "effort": "max",
        "format": {"type": "json_schema", "schema": dict(VERDICT_SCHEMA)},
    }


def test_the_input_of_each_query_is_counted_and_nothing_is_paid(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """An estimate from a sample is better than one from letters; a schema is input, too."""
    short, long = queries(2)
    long = long._replace(user=long.user + "word " * 100)

    counted, with_schema = (
        token_counter(anthropic_client, judge_settings(protocol=protocol))([short, long])
        for protocol in ("line", "schema")
    )

    assert counted[long.query_key] - counted[short.query_key] == 125
    assert with_schema[short.query_key] > counted[short.query_key]
    assert fake_anthropic.bill().lines == ()


def test_counting_is_repeated_and_its_failure_is_ours(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """It costs nothing; a page in its place is no count."""
    fault = Fault(endpoint="count_tokens", kind="rate_limited", retry_after_s=0.01)
    tokens = token_counter(anthropic_client, judge_settings())
    fake_anthropic.inject(fault)
    assert len(tokens(queries(2))) == 2

    for last, told in ((fault, "HTTP 429"), (replace(fault, kind="page"), "<html>Sign in")):
        fake_anthropic.inject(*[last] * 10)
        with pytest.raises(ProviderError, match=told):
            tokens(queries(1))
        fake_anthropic.clear()
