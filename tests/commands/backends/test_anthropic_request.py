"""A query as the Messages API is asked it."""

import json

import pytest

from commands.backends.anthropic.requests import RequestForm
from commands.settings.schema import CacheTtl
from projections.verdicts.queries import VERDICT_SCHEMA
from tests.commands.backends.anthropic_builders import MODEL, judge_settings, queries

(QUERY,) = queries(1)


def form(cache: CacheTtl = "5m", **parameters: str | float) -> RequestForm:
    """Return the form of a judge's requests."""
    return RequestForm.of(judge_settings(**parameters), cache=cache)


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


@pytest.mark.parametrize(
    ("cache", "mark"),
    [("5m", {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"}), ("off", None)],
)
def test_the_system_text_is_cached_as_long_as_is_wanted(cache: CacheTtl, mark: object) -> None:
    """A cache write that is never read costs more than none."""
    marked = {} if mark is None else {"cache_control": mark}

    system = form(cache).params(QUERY)["system"]

    assert system == [{"type": "text", "text": QUERY.system, **marked}]


def test_the_schema_is_sent_where_it_is_the_protocol() -> None:
    """One schema for all dimensions: another would empty the cache."""
    config = form(protocol="schema", effort="max").params(QUERY)["output_config"]

    assert config == {
        "effort": "max",
        "format": {"type": "json_schema", "schema": dict(VERDICT_SCHEMA)},
    }


def test_an_effort_that_nobody_knows_is_a_fault_of_the_program() -> None:
    """Settings refuse it before."""
    with pytest.raises(ValueError, match="an unknown effort: 'little'"):
        form(effort="little")


def test_the_size_of_a_query_is_that_of_the_json_that_is_sent() -> None:
    """Batches are split below the provider's limit, and U+2028 takes three bytes."""
    query = QUERY._replace(user='ä "\u2028\x00\n')

    n_bytes = form().n_bytes(query)

    sent = json.dumps([form().in_batch(query)] * 2, ensure_ascii=False, separators=(",", ":"))
    assert len(sent.encode()) == 2 * n_bytes + 1
