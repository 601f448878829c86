"""Ledgers that exist: of each format a file is kept for ever, and read, extended and verified."""

from functools import partial
from pathlib import Path

import pytest

from ledger.storage import schema
from ledger.store import Ledger
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields
from tests.support.goldens.ledger_files import LEDGERS, golden, unpack

FORMATS = range(1, schema.FORMAT + 1)
RATINGS = {"elo_results.json", "elo_per_perm.npz"}  # which differ in their last digits
BATTLES = "model_a,model_b,winner\nx,y,model_a\ny,x,model_a\nx,y,tie\n"
WON = "SELECT winner, count(*) AS n FROM outcomes GROUP BY winner ORDER BY winner"
SAID = "SELECT slot_order, winner, reply IS NOT NULL FROM verdicts ORDER BY position"


@pytest.fixture(params=FORMATS)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Give the ledger of a tournament that was run and published by a version of that format."""
    return unpack(golden(request.param), tmp_path / "tournament.db")


@pytest.fixture
def tourney(path: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, path.parent)


def test_each_format_has_a_golden() -> None:
    """A new format comes with a file of its own, and those before it stay."""
    assert {*LEDGERS.glob("*.db.gz")} == {golden(each) for each in FORMATS}


def test_a_ledger_of_any_format_is_read_as_it_is(path: Path, tourney: Tourney) -> None:
    """Whoever kept it may not write to it any more."""
    before = path.read_bytes()

    assert "0 faults" in tourney("verify").stdout
    rebuilt = fields(tourney("replay", "--json"))
    assert rebuilt["runs"]
    assert {each["path"] for each in rebuilt["rows"]} <= RATINGS
    assert fields(tourney("project", "elo", "--json"))["rows"]
    assert fields(tourney("sql", WON, "--json"))["rows"]

    assert path.read_bytes() == before


def test_a_ledger_of_any_format_is_extended_and_says_the_same(path: Path, tourney: Tourney) -> None:
    """It goes on where it ended, and what it said before it says still."""
    asked = (("project", "elo"), ("sql", WON), ("sql", SAID))
    before = [tourney(*words, "--json").stdout for words in asked]
    (path.parent / "votes.csv").write_text(BATTLES, encoding="utf-8")
    with Ledger.read_only(path) as ledger:
        head = ledger.head

    with Ledger.open(path) as ledger:
        facts = [(each.stream, each.event) for each in ledger.read()]
        again = [ledger.append(stream, [event])[0] for stream, event in facts]
        assert ledger.head == head
    assert not any(receipt.is_new for receipt in again)
    after = [tourney(*words, "--json").stdout for words in asked]
    done = tourney("import", "battles", "votes.csv", "--name", "votes")

    assert after == before
    assert done.returncode == 0, done.stderr
    verified = tourney("verify", "--checkpoint", str(head))
    assert (verified.returncode, "0 faults" in verified.stdout) == (0, True), verified.stdout
    with Ledger.read_only(path) as ledger:
        assert ledger.head.position == head.position + 1
        assert ledger.select("PRAGMA user_version") == [(schema.FORMAT,)]
        assert schema.has_own_views(ledger.select)
