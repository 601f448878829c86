"""The servers that settings name, by the judge's provider."""

import pytest

from commands.settings.api_keys import ANTHROPIC_KEYS
from commands.settings.servers import entrant_table, juror_table, server_of


@pytest.mark.parametrize("provider", ["reference", "hf"])
def test_a_judge_on_this_machine_has_no_server(provider: str) -> None:
    """Nothing is to be reached."""
    assert server_of("[judge]", provider, ["m"], None, "KEY") is None


@pytest.mark.parametrize(
    ("provider", "is_anthropic", "keys"),
    [
        ("anthropic", True, ANTHROPIC_KEYS),
        ("anthropic-batch", True, ANTHROPIC_KEYS),
        ("openai-batch", False, ("KEY",)),
        ("endpoint", False, ()),
    ],
)
def test_a_provider_is_asked_at_its_server_in_batches_or_not(
    provider: str, *, is_anthropic: bool, keys: tuple[str, ...]
) -> None:
    """Whether a server of one's own wants a key is known once it is asked."""
    server = server_of("[judge]", provider, ["m", None, "m", "n"], "http://here/v1", "KEY")

    assert server is not None
    assert (server.is_anthropic, server.keys, server.models) == (is_anthropic, keys, ("m", "n"))


def test_tables_tell_who_is_asked() -> None:
    """Of the jury one is asked only if it is named; an entrant has another cap."""
    tables = ("[judge]", juror_table("ann"), entrant_table("far"))
    asked = [server_of(table, "endpoint", [], None, "KEY") for table in tables]

    assert [(each.is_juror, each.is_entrant) for each in asked if each] == [
        (False, False),
        (True, False),
        (False, True),
    ]
