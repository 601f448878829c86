"""The servers that settings name: of the judge, the jury and the entrants."""

from pathlib import Path

import pytest

from commands.settings.api_keys import ANTHROPIC_KEYS
from commands.settings.schema import DEFAULT_MODEL, JudgeSection
from commands.settings.servers import Server, is_on_own_network, server_of_judge, servers_of
from tests.support.builders.commands import MINIMAL, settings_in


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("reference", None),  # on this machine: nothing is to be reached
        ("hf", None),
        ("anthropic", (True, ANTHROPIC_KEYS)),
        ("anthropic-batch", (True, ANTHROPIC_KEYS)),
        ("openai-batch", (False, ("KEY",))),
        ("endpoint", (False, ())),
    ],
)
def test_a_provider_is_asked_at_its_server_if_it_has_one(
    provider: str, expected: tuple[bool, tuple[str, ...]] | None
) -> None:
    """Whether a server of one's own wants a key is known once it is asked."""
    section = {"provider": provider, "model": "m", "pilot_model": "n", "api_key_env": "KEY"}

    server = server_of_judge(JudgeSection.model_validate(section))

    assert (server and (server.is_anthropic, server.keys)) == expected
    assert server is None or server.models == ("m", "n")


def test_the_models_that_are_asked_may_be_named() -> None:
    """A headline does not ask the pilot's model; the default is a run's."""
    section = JudgeSection(provider="anthropic", pilot_model=DEFAULT_MODEL)

    everywhere, named = server_of_judge(section), server_of_judge(section, ["claude-small"])

    assert everywhere is not None
    assert named is not None
    assert (everywhere.models, named.models) == ((DEFAULT_MODEL,), ("claude-small",))


def test_every_server_is_named_by_its_table(tmp_path: Path) -> None:
    """Of the jury one is asked only if it is named; an entrant has another cap."""
    text = f"""{MINIMAL}
[judge]
provider = "hf"
[[jury]]
id = "ann"
provider = "anthropic"
model = "claude-x"
[[jury]]
id = "bob"
provider = "openai-batch"
model = "gpt"
api_key_env = "BOBS_KEY"
[[entrants]]
id = "far"
loader = "endpoint"
base_url = "http://far/v1"
model = "m"
"""

    servers = servers_of(settings_in(tmp_path, text))

    assert servers == (
        Server("[[jury]] 'ann'", True, ("claude-x",), None, "OPENAI_API_KEY", ANTHROPIC_KEYS),
        Server("[[jury]] 'bob'", False, ("gpt",), None, "BOBS_KEY", ("BOBS_KEY",)),
        Server("[[entrants]] 'far'", False, ("m",), "http://far/v1", "OPENAI_API_KEY", ()),
    )
    assert [each.is_juror for each in servers] == [True, True, False]
    assert [each.is_entrant for each in servers] == [False, False, True]
    assert servers_of(settings_in(tmp_path)) == ()  # no judge is named: the offline one needs none


@pytest.mark.parametrize(
    ("base_url", "is_own"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("https://vllm:8000/v1", True),
        ("http://gpu.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
        ("https://localhost.example.com/v1", False),
        (None, False),
    ],
)
def test_a_server_of_ones_own_is_told_by_its_address(base_url: str | None, is_own: bool) -> None:
    """Others may bill what has no price here."""
    assert is_on_own_network(base_url) is is_own
