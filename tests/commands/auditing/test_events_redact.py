"""Redacting: only with consent, once, and so that verify and replay tell of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.auditing.events import redact_with_consent
from commands.auditing.replay import replay
from commands.auditing.verify import verify
from commands.cli.audit import differences_table, event_fields, faults_table
from commands.errors import ConfigurationError, Refused
from commands.ports import no_progress
from commands.reading.parameters import settings_of
from ledger.errors import CannotRedact
from ledger.events.registration import TournamentOpened
from ledger.events.values import EventRedacted
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from tests.support.builders.events import STREAM
from tests.support.builders.games import play, position_of
from tests.support.faults.hostile import hash_again, tamper, unguarded
from tests.support.scripted import ScriptedTerminal

TEXT_FILES = ["matches/matches.jsonl", "verdicts/factuality.jsonl"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a tournament that was played and published."""
    folder = tmp_path_factory.mktemp("played")
    play(folder / "tournament.db")
    return folder


@pytest.fixture
def path(played: Path, tmp_path: Path) -> Path:
    """Give a ledger in a copy of that folder."""
    return shutil.copytree(played, tmp_path / "copy") / "tournament.db"


def redacted(path: Path, type_: str) -> int:
    """Redact the first event of a type; return its position."""
    position = position_of(path, type_)
    with Ledger.open(path) as ledger:
        ledger.redact(position, "a key")
    return position


def test_it_asks_and_names_the_event(path: Path) -> None:
    """What is removed cannot be brought back, so it is shown first what it is."""
    at, terminal = position_of(path, "VerdictReceived"), ScriptedTerminal(answer=True)
    with Ledger.open(path) as ledger:
        redact_with_consent(ledger, at, "a key", agreed=False, console=terminal.console)

        [row] = ledger.rows(after=at - 1, until=at)
        assert row.decode().redacted
        assert event_fields(row)["redacted"] is True
    [question] = terminal.asked
    assert f"position {at}, VerdictReceived of {STREAM}, recorded on " in question
    assert "backups, exports, runs and reports" in terminal.told[-1]


@pytest.mark.parametrize(
    ("terminal", "why"),
    [
        (ScriptedTerminal(), "run again with --yes"),
        (ScriptedTerminal(answer=False), "nothing was changed"),
    ],
    ids=["no terminal", "no"],
)
def test_without_consent_nothing_changes(path: Path, terminal: ScriptedTerminal, why: str) -> None:
    """Exit code 5, as wherever consent is missing."""
    at = position_of(path, "VerdictReceived")
    with Ledger.open(path) as ledger:
        before = list(ledger.rows())

        with pytest.raises(Refused, match=why) as caught:
            redact_with_consent(ledger, at, "a key", agreed=False, console=terminal.console)

        assert caught.value.exit_code == 5
        assert list(ledger.rows()) == before


@pytest.mark.parametrize(
    ("type_", "error"),
    [("PairReconciled", "holds no text"), ("PromptRegistered", "found by the digest")],
)
def test_what_must_stay_is_refused_before_it_asks(path: Path, type_: str, error: str) -> None:
    """A question whose answer changes nothing is not asked."""
    at, terminal = position_of(path, type_), ScriptedTerminal(answer=True)
    with Ledger.open(path) as ledger, pytest.raises(CannotRedact, match=error) as caught:
        redact_with_consent(ledger, at, "a key", agreed=False, console=terminal.console)

    assert caught.value.exit_code == 2
    assert terminal.asked == []


@pytest.mark.parametrize("why", ["", " "])
def test_a_reason_is_needed(path: Path, why: str) -> None:
    """Who finds a tombstone later wants to know."""
    with Ledger.open(path) as ledger, pytest.raises(ConfigurationError, match="--why is empty"):
        redact_with_consent(ledger, 1, why, agreed=True, console=ScriptedTerminal().console)


def test_the_reason_does_not_bring_the_secret_back(path: Path) -> None:
    """What looks like a key is taken out of it."""
    at = position_of(path, "VerdictReceived")
    with Ledger.open(path) as ledger:
        why = "it held sk-ant-0123456789abcdef"
        redact_with_consent(ledger, at, why, agreed=True, console=ScriptedTerminal().console)

        *_, told = ledger.read()
    assert isinstance(told.event, EventRedacted)
    assert told.event.why == "it held [key]"


class Erasing(Ledger):
    """A ledger that counts how often its old bytes are removed."""

    n_erased = 0

    def erase(self) -> None:
        """Count, and remove them."""
        self.n_erased += 1
        super().erase()


def test_a_second_time_only_the_file_is_written_anew(path: Path) -> None:
    """A command that was killed after the redaction was recorded can be repeated."""
    at, terminal = redacted(path, "VerdictReceived"), ScriptedTerminal()
    with Erasing.open(path) as ledger:
        before = list(ledger.rows())

        redact_with_consent(ledger, at, "a key", agreed=False, console=terminal.console)

        assert (list(ledger.rows()), ledger.n_erased) == (before, 1)
    assert terminal.told == [f"position {at} was redacted before; {path} is written anew"]


@pytest.mark.parametrize(
    ("type_", "files"), [("VerdictReceived", TEXT_FILES[1:]), ("ResponseGenerated", TEXT_FILES)]
)
def test_verify_counts_it_and_names_what_cannot_be_made_again(
    path: Path, type_: str, files: list[str]
) -> None:
    """Ratings follow as before; only the files that held the text cannot be rebuilt."""
    at = redacted(path, type_)

    with Ledger.read_only(path) as ledger:
        found = verify(ledger, [], no_progress)

    assert found.faults == ()
    assert [each.path for each in found.unmade] == files
    assert {each.why for each in found.unmade} == {
        f"differs from what was published: texts were redacted at position {at}"
    }
    table = faults_table(found)
    told = f"position {at} ({type_}) was redacted; reason (position {found.head.position}): a key"
    assert told in table.notes
    assert (table.facts or {})["n_redacted"] == 1


def test_replay_tells_of_it_too(path: Path) -> None:
    """Of a run's folder as well, which still holds the text."""
    [folder] = (path.parent / "runs").iterdir()
    redacted(path, "VerdictReceived")

    with Ledger.read_only(path) as ledger:
        found = replay(ledger, STREAM, against=folder)

    assert {each.path for each in found.differences} == {TEXT_FILES[1]}
    assert not any(each.is_fault for each in found.differences)
    assert [row["path"] for row in differences_table(found).rows] == [TEXT_FILES[1]] * 2


def change_an_outcome(path: Path) -> None:
    """Let another win a pair, with all hashes computed anew."""
    with unguarded(path) as connection:
        connection.execute(
            'UPDATE event SET data = CAST(replace(CAST(data AS TEXT), \'"outcome":"b"\','
            " '\"outcome\":\"a\"') AS BLOB) WHERE type = 'PairReconciled'"
        )
        hash_again(connection)


def cut_what_tells(path: Path) -> None:
    """Remove the event that tells of the redaction."""
    tamper(path, "DELETE FROM event WHERE type = 'EventRedacted'")


@pytest.mark.parametrize("attack", [change_an_outcome, cut_what_tells])
def test_a_redaction_excuses_nothing_else(path: Path, attack: Callable[[Path], None]) -> None:
    """Files of ratings hold no text, and must still follow."""
    redacted(path, "VerdictReceived")
    attack(path)

    with Ledger.read_only(path) as ledger:
        assert verify(ledger, [], no_progress).faults != ()


def test_settings_that_were_redacted_are_not_guessed(path: Path) -> None:
    """Ratings as of then would silently be by the defaults of today."""
    with Ledger.open(path) as ledger:
        first = next(ledger.read(types={"TournamentOpened"}))
        assert isinstance(first.event, TournamentOpened)
        ledger.append(STREAM, [replace(first.event, opening=2)])
        before = fold(tournament_of(STREAM), ledger.read())
        ledger.redact(first.position, "a key in a URL")

        then = fold(tournament_of(STREAM), ledger.read(until=first.position))
        now = fold(tournament_of(STREAM), ledger.read())

    with pytest.raises(ConfigurationError, match="read a later position"):
        settings_of(then, "elo")
    assert settings_of(now, "elo") == settings_of(before, "elo")
