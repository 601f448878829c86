"""A day without dashes is a number, and a number is a position."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from typer.main import get_command

from commands.cli.app import command_line
from commands.cli.shared.selection import Selection
from commands.errors import ConfigurationError, NothingRecorded
from commands.reading.resolve import position_at
from ledger.errors import NoLedger
from ledger.store import Ledger
from tests.support.builders.events import STREAM, opened, verdicts


@pytest.mark.parametrize("said", ["settings", "option", "variable"])
def test_a_ledger_may_lie_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Shells read `~` at the beginning of a word only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ledger = "~/there.db"
    if said == "settings":
        Path("mine.toml").write_text(f'[tournament]\nid = "x"\nledger = "{ledger}"\n')
    if said == "variable":
        monkeypatch.setenv("TOURNEY_LEDGER", ledger)
    options = {"option": [f"--ledger={ledger}"], "settings": ["--config", "mine.toml"]}

    done = CliRunner().invoke(
        get_command(command_line(["log"])), ["log", *options.get(said, [])], "tourney"
    )

    assert isinstance(done.exception, NoLedger)
    assert done.exception.path.absolute() == tmp_path / "home/there.db"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("20260427", "ends at 3; for the day write 2026-04-27"),
        ("99999", "--as-of 99999: the ledger ends at 3; name an"),
    ],
)
def test_a_position_after_the_end_is_refused(ledger: Ledger, said: str, why: str) -> None:
    """It was mistyped, is of another ledger, or is a day on which half of it was not known."""
    ledger.append(STREAM, verdicts(3))

    assert position_at(ledger, "3", option="--as-of") == 3
    with pytest.raises(ConfigurationError, match=why):
        position_at(ledger, said, option="--as-of")


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("as_of", "named"), [("2026-11-21", "position 0 (2026-11-21)"), ("0", "position 0;")]
)
def test_a_time_before_the_tournament_is_named_as_such(as_of: str, named: str) -> None:
    """The tournament is there, and nobody must go looking for it in another ledger."""
    with Ledger.in_memory(lambda: NOON) as ledger:
        ledger.append(STREAM, opened())

        with pytest.raises(ConfigurationError) as caught:
            Selection(tournament=STREAM, as_of=as_of).state_in(ledger)

    assert f"nothing of tournament {STREAM!r} was recorded up to {named}" in str(caught.value)
    assert "it begins at position 1, 2026-11-22T12:00:00+00:00: name a later" in str(caught.value)


def test_a_stream_that_never_opened_holds_nothing_at_any_time(ledger: Ledger) -> None:
    """No later position would help."""
    ledger.append(STREAM, verdicts(3))

    with pytest.raises(NothingRecorded):
        Selection(tournament=STREAM, as_of="2").state_in(ledger)
