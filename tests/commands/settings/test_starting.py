"""A new tournament's files say what was asked for, and can be planned at once."""

import json
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.runs.workspace import opening_of
from commands.settings.inputs import read_bank
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from commands.settings.sections import EndpointSection, HfSection
from commands.settings.starting import (
    FIRST_PROMPTS,
    NewTournament,
    files_of,
    lay_out,
)
from ledger.errors import CannotWrite
from tests.support.builders.commands import write_weights

SMALL = "small-3b@http://localhost:8000/v1"
NO_GOLD = [{"prompt": "Why?"}]


def settings_of(folder: Path, new: NewTournament) -> Settings:
    """Lay out a tournament, and read its settings."""
    lay_out(folder, files_of(folder, new))
    return read_settings(folder / "tournament.toml", {})


@pytest.mark.parametrize(
    ("name", "id_"),
    [("new", "new"), ('it\'s "mine"', "it-s-mine"), ("naïve 日本", "naïve-日本"), ("a\nb", "a-b")],
)
def test_a_new_tournament_needs_nothing_else(tmp_path: Path, name: str, id_: str) -> None:
    """All that is named is there, and registers; its id is what of the folder's an id may hold."""
    folder = tmp_path / name / "x" / ".."
    settings = settings_of(folder, NewTournament())

    opening = opening_of(settings, folder, versions=())

    assert settings.tournament.id == id_
    assert len(opening.bank) == len(FIRST_PROMPTS)
    assert [each.id for each in settings.entrants] == ["model-a", "model-b"]
    assert (settings.judge.provider, settings.rubrics[0].dimension) == ("reference", "factuality")


def test_models_behind_a_server_and_judges_are_filled_in(tmp_path: Path) -> None:
    """As on the command line: MODEL@URL, with an id of its own each."""
    new = NewTournament(entrants=(SMALL, f"org/{SMALL}"), judge="judge-70b@https://b.example/v1")

    settings = settings_of(tmp_path, new)

    first, second = settings.entrants
    assert isinstance(first, EndpointSection)
    assert isinstance(second, EndpointSection)
    assert (first.id, second.id) == ("small-3b", "small-3b2")
    assert (second.model, second.base_url) == ("org/small-3b", "http://localhost:8000/v1")
    judge = settings.judge
    assert (judge.provider, judge.model) == ("endpoint", "judge-70b")
    assert judge.base_url == "https://b.example/v1"


@pytest.mark.parametrize("is_absolute", [False, True])
def test_weights_are_found_from_where_the_settings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_absolute: bool
) -> None:
    """The user names them from where he stands, and the settings from where they stand."""
    monkeypatch.chdir(tmp_path)
    weights = write_weights(tmp_path / "models" / 'my "7b"')
    told = weights if is_absolute else weights.relative_to(tmp_path)

    settings = settings_of(Path("new"), NewTournament(entrants=(str(told), SMALL), judge=str(told)))

    entrant, _ = settings.entrants
    assert isinstance(entrant, HfSection)
    assert entrant.id == "my-7b"
    assert entrant.weights.is_absolute() == is_absolute
    assert ("new" / entrant.weights).resolve() == weights
    assert (settings.judge.provider, settings.judge.model) == ("hf", str(entrant.weights))


@pytest.mark.parametrize("prompts", [FIRST_PROMPTS, NO_GOLD])
def test_the_rubric_of_a_new_tournament_is_of_no_subject(
    tmp_path: Path, prompts: list[dict[str, object]]
) -> None:
    """A judge of German grammar that is told of doses and drugs looks for them.

    Anthropic's models judge in batches, at half the price.
    """
    settings = settings_of(tmp_path, NewTournament(prompts, judge="claude-sonnet-5-5"))

    (rubric,), judge = settings.rubrics, settings.judge
    assert rubric.dimension == ("factuality" if prompts == FIRST_PROMPTS else "quality")
    assert (judge.provider, judge.model) == ("anthropic-batch", "claude-sonnet-5-5")
    texts = [(tmp_path / name).read_text() for name in (rubric.path, "rubrics/judge.md")]
    words = "drug", "dose", "diagnos", "clinic", "patient", "medic", "disease", "treatment"
    assert [word for word in words for text in texts if word in text.lower()] == []


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (NewTournament(NO_GOLD), "name a judge: --judge MAKER/MODEL"),
        (NewTournament(entrants=(SMALL,)), "two entrants or more; name another by --entrant"),
        (NewTournament(entrants=("nowhere", SMALL)), "--entrant nowhere: there is no such folder"),
        (NewTournament(judge="nowhere"), "--judge nowhere: there is no such folder"),
        (NewTournament(judge="~nobody-here"), "--judge ~nobody-here: there is no such folder"),
    ],
)
def test_what_cannot_be_understood_leaves_no_file(
    tmp_path: Path, new: NewTournament, why: str
) -> None:
    """The command can be repeated as it should have been."""
    with pytest.raises(ConfigurationError, match=why):
        lay_out(tmp_path, files_of(tmp_path, new))

    assert not list(tmp_path.iterdir())


def test_nothing_that_is_there_is_written_over(tmp_path: Path) -> None:
    """It may be the bank of a year's work; other files are no matter."""
    (tmp_path / "bank.jsonl").write_text("mine", encoding="utf-8")
    (tmp_path / "notes.txt").touch()

    with pytest.raises(ConfigurationError, match=r"a tournament's bank\.jsonl already"):
        lay_out(tmp_path, files_of(tmp_path, NewTournament()))

    assert {each.name for each in tmp_path.iterdir()} == {"bank.jsonl", "notes.txt"}
    (tmp_path / "bank.jsonl").unlink()
    (tmp_path / "rubrics").touch()  # a file stands where the folder would be
    with pytest.raises(CannotWrite):
        lay_out(tmp_path, files_of(tmp_path, NewTournament()))
    assert {each.name for each in tmp_path.iterdir()} == {"rubrics", "notes.txt"}
    (tmp_path / "rubrics").unlink()
    lay_out(tmp_path, files_of(tmp_path, NewTournament()))


def test_prompts_stay_what_they_are(tmp_path: Path) -> None:
    """The shipped ones have no ids; each id follows from its text."""
    lay_out(tmp_path, files_of(tmp_path, NewTournament()))
    bank = read_bank(tmp_path / "bank.jsonl")
    reordered = (tmp_path / "bank.jsonl").read_text(encoding="utf-8").splitlines()[::-1]
    (tmp_path / "bank.jsonl").write_text("\n".join(reordered), encoding="utf-8")

    assert [json.loads(each).keys() for each in reordered] == [{"prompt", "gold_answer"}] * 5
    assert read_bank(tmp_path / "bank.jsonl") == bank[::-1]
