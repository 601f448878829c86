"""A tournament to work on: its settings and inputs, and its ledger for one command alone."""

from pathlib import Path

import pytest

from commands.errors import AuditDisagrees, ConfigurationError
from commands.runs.workspace import Workspace, open_workspace
from ledger.events.registration import JudgeRegistered
from ledger.store import Ledger
from tests.support.builders.commands import lay_out, open_tournament, settings, types_of
from tests.support.builders.events import STREAM, opened
from tests.support.faults.hostile import tamper

TOML = """
[tournament]
id = "main"
[[entrants]]
id = "base"
weights = "weights/base"
[[entrants]]
id = "tuned"
weights = "weights/tuned"
[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"
"""
VERSIONS = [("tourney", "1")]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Give a settings file and everything that it names."""
    file = lay_out(tmp_path) / "tournament.toml"
    file.write_text(TOML, encoding="utf-8")
    return file


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a tournament whose ledger is not created yet."""
    return Workspace(settings(), tmp_path, tmp_path / "t.db", open_tournament(opened()))


def test_settings_and_inputs_are_read_and_no_ledger_is_made(config: Path) -> None:
    """A fault in a file is told before anything is written."""
    found = open_workspace(config, None, VERSIONS)

    assert (found.stream, found.folder) == ("main", config.parent)
    assert found.ledger == config.parent / "tournament.db"
    assert [each.prompt_id for each in found.opening.bank] == ["p1", "p2"]
    assert found.opening.opening.versions == (("tourney", "1"),)
    assert not found.ledger.exists()


def test_an_option_replaces_the_ledger_and_a_variable_the_provider(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the judge nothing else is changed."""
    before = open_workspace(config, None, VERSIONS).settings.judge
    monkeypatch.setenv("TOURNEY_JUDGE_PROVIDER", "anthropic")

    found = open_workspace(config, Path("other.db"), VERSIONS)

    assert found.ledger == Path("other.db")
    assert found.settings.judge == before.model_copy(update={"provider": "anthropic"})
    registered = [
        each.judge for each in found.opening.registrations if isinstance(each, JudgeRegistered)
    ]
    assert {judge.provider for judge in registered} == {"anthropic"}


def test_a_missing_file_is_told(config: Path) -> None:
    """With its path."""
    (config.parent / "bank.jsonl").unlink()

    with pytest.raises(ConfigurationError, match=r"bank\.jsonl: there is no such prompt bank"):
        open_workspace(config, None, VERSIONS)


def test_what_a_command_records_is_in_the_ledger(workspace: Workspace) -> None:
    """The ledger is made where there is none."""
    with workspace.recorder(print) as recorder:
        recorder.record(workspace.opening)

    with Ledger.read_only(workspace.ledger) as ledger:
        assert types_of(ledger)[0] == "TournamentOpened"
        assert ledger.streams() == (STREAM,)


def test_nothing_is_built_on_a_damaged_ledger(workspace: Workspace) -> None:
    """What is added would be worth no more than what it stands on."""
    with workspace.recorder(print) as recorder:
        recorder.record(workspace.opening)
    tamper(workspace.ledger, "UPDATE event SET recorded_us = recorded_us + 1 WHERE position = 2")

    with (
        pytest.raises(AuditDisagrees, match=r"t\.db, position 2: .*; see `tourney verify`$"),
        workspace.recorder(print),
    ):
        raise AssertionError("it was opened")
