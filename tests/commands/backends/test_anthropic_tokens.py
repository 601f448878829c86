"""Counting tokens by the provider."""

import pytest
from anthropic import Anthropic

from commands.backends.anthropic.requests import AnthropicTokens
from commands.errors import ProviderError
from tests.anthropic_api.faults import Fault
from tests.anthropic_api.server import FakeAnthropic
from tests.commands.backends.anthropic_builders import judge_settings, queries


def test_the_input_of_each_query_is_counted_and_nothing_is_paid(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """An estimate from a sample is better than one from letters."""
    short, long = queries(2)
    long = long._replace(user=long.user + "word " * 100)

    counted = AnthropicTokens(anthropic_client, judge_settings()).count([short, long])

    assert counted[long.query_key] - counted[short.query_key] == 125
    assert fake_anthropic.bill().lines == ()


def test_the_schema_is_counted_where_it_is_sent(anthropic_client: Anthropic) -> None:
    """It is input, too."""
    (query,) = queries(1)

    (line,), (schema,) = (
        AnthropicTokens(anthropic_client, judge_settings(protocol=protocol)).count([query]).values()
        for protocol in ("line", "schema")
    )

    assert schema > line


def test_a_page_in_place_of_a_count_is_a_providers_error(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """As everywhere."""
    fake_anthropic.inject(Fault(endpoint="count_tokens", kind="page"))

    with pytest.raises(ProviderError, match="<html>Sign in"):
        AnthropicTokens(anthropic_client, judge_settings()).count(queries(1))


def test_counting_is_repeated_and_its_failure_is_ours(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """It costs nothing."""
    fault = Fault(endpoint="count_tokens", kind="rate_limited", retry_after_s=0.01)
    tokens = AnthropicTokens(anthropic_client, judge_settings())
    fake_anthropic.inject(fault)
    assert len(tokens.count(queries(2))) == 2

    fake_anthropic.inject(*[fault] * 10)

    with pytest.raises(ProviderError, match="HTTP 429"):
        tokens.count(queries(1))
