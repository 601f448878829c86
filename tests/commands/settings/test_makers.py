"""A model's name says where it is asked, by whom and with which key."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings.makers import MAKERS
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from commands.settings.sections import EndpointSection, RecordedSection
from commands.settings.servers import servers_of

_REST = """
[tournament]
id = "t"
[prompts]
bank = "bank.jsonl"
[[rubrics]]
dimension = "factuality"
path = "factuality.md"
"""


def settings_of(tmp_path: Path, text: str) -> Settings:
    """Read settings whose entrants and judge are given."""
    (tmp_path / "tournament.toml").write_text(text + _REST, encoding="utf-8")
    return read_settings(tmp_path / "tournament.toml", {})


def entrants(*lines: str) -> str:
    """Return tables of entrants, each of one line of TOML."""
    return "".join(f'[[entrants]]\nid = "e{n}"\n{line}\n' for n, line in enumerate(lines))


TWO = entrants('model = "openai/a"', 'model = "openai/b"')


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *(
            (f'model = "{name}/org/large:free"', ("org/large:free", *maker))
            for name, maker in MAKERS.items()
        ),
        (
            'model = "openai/gpt-oss"\nbase_url = "http://localhost:1/v1"',
            ("openai/gpt-oss", "http://localhost:1/v1", "OPENAI_API_KEY"),
        ),
        (
            'model = "google/gemini"\napi_key_env = "MINE"',
            ("gemini", MAKERS["google"].base_url, "MINE"),
        ),
    ],
)
def test_an_entrant_is_asked_at_its_maker_unless_it_says_more(
    tmp_path: Path, line: str, expected: tuple[str, str, str]
) -> None:
    """Nobody looks up an address; a server of one's own may serve a model of such a name."""
    first, _ = settings_of(tmp_path, entrants(line, 'model = "openai/gpt-5.6"')).entrants

    assert isinstance(first, EndpointSection)
    assert (first.model, first.base_url, first.api_key_env) == expected


@pytest.mark.parametrize("model", ["gpt-5.6", "nobody/gpt", "openai/", "openai"])
def test_an_unknown_maker_is_told_with_those_that_are_known(tmp_path: Path, model: str) -> None:
    """The name alone does not say where the model is."""
    text = entrants(f'model = "{model}"', 'model = "openai/gpt-5.6"')

    with pytest.raises(
        ConfigurationError, match=r"'base_url' is missing; or name the model's maker"
    ):
        settings_of(tmp_path, text)


def test_recorded_answers_need_no_loader(tmp_path: Path) -> None:
    """A file of answers says what it is."""
    line = 'responses = "a.csv"\nmodel = "one"'

    first, _ = settings_of(tmp_path, entrants(line, 'model = "openai/gpt-5.6"')).entrants

    assert isinstance(first, RecordedSection)


@pytest.mark.parametrize(
    ("said", "maker", "provider", "address"),
    [
        ("", "openai", "endpoint", MAKERS["openai"].base_url),
        ("", "anthropic", "anthropic", None),
        ('provider = "anthropic-batch"', "anthropic", "anthropic-batch", None),
        ('provider = "openai-batch"', "openai", "openai-batch", MAKERS["openai"].base_url),
    ],
)
def test_a_judge_is_asked_at_its_maker(
    tmp_path: Path, said: str, maker: str, provider: str, address: str | None
) -> None:
    """One word says provider, address and key; Anthropic's are asked by its own client."""
    models = f'model = "{maker}/large"\npilot_model = "{maker}/small"'

    found = settings_of(tmp_path, f"{TWO}[judge]\n{said}\n{models}\n")

    judge = found.judge
    assert (judge.provider, judge.model, judge.base_url) == (provider, "large", address)
    assert judge.pilot_model == "small"
    assert servers_of(found)[0].models == ("large", "small")


@pytest.mark.parametrize("provider", ["hf", "reference"])
def test_a_judge_on_this_machine_keeps_its_name(tmp_path: Path, provider: str) -> None:
    """`openai/gpt-oss-20b` is a name of the Hugging Face Hub, too."""
    judge = f'[judge]\nprovider = "{provider}"\nmodel = "openai/gpt-oss-20b"\n'

    found = settings_of(tmp_path, f"{TWO}{judge}").judge

    assert (found.provider, found.model) == (provider, "openai/gpt-oss-20b")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (
            '[judge]\nmodel = "opnai/gpt-5.6"',
            r"'judge.model' needs a 'provider'.* did you mean 'openai'\?",
        ),
        ('[judge]\nmodel = "claude-opus-5-5"', "needs a 'provider', or a model with its maker"),
        ('[judge]\nbase_url = "http://localhost:8000/v1"', "'judge.base_url' needs a 'provider'"),
        (
            '[[jury]]\nid = "second"\nmodel = "opnai/gpt-5.6"',
            "needs a 'provider'.*did you mean 'openai'",
        ),
    ],
)
def test_a_judge_that_is_misspelt_does_not_become_the_offline_one(
    tmp_path: Path, table: str, why: str
) -> None:
    """All was judged by overlap of letters, and the exit code was 0."""
    with pytest.raises(ConfigurationError, match=why):
        settings_of(tmp_path, f"{TWO}{table}\n")


@pytest.mark.parametrize(("maker", "keys"), [("google", ("GEMINI_API_KEY",)), ("ollama", ())])
def test_a_maker_elsewhere_needs_its_key(tmp_path: Path, maker: str, keys: tuple[str, ...]) -> None:
    """Without it a prompt would be sent for nothing; a server of one's own may need none."""
    two = entrants('model = "openai/a"', f'model = "{maker}/b"')

    *_, last = servers_of(settings_of(tmp_path, two))

    assert last.keys == keys
