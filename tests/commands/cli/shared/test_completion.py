"""What a shell offers while one types: names that are on record, quickly, and never a traceback."""

from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import TypeAlias

import pytest

from commands.importing.formats.catalogue import FORMATS
from ledger.events.ratings import Publication, RatingsPublished
from ledger.events.registry import EVENTS
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.verdicts.policies import POLICY_NAMES
from tests.support.builders.batches import planned_batch, sent
from tests.support.builders.commands import terms
from tests.support.builders.evaluations import plan
from tests.support.builders.events import NOON, STREAM, entrant, judge, key, opened, rubric
from tests.support.command_line.launching import launch

VOTES = "model_a,model_b,winner\nbase,tuned,tie\n"
BATCH = planned_batch(key("q1"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a ledger of two tournaments and an imported set."""
    folder = tmp_path_factory.mktemp("recorded")
    run = Publication("headline_1", terms(), NOON, 1, key("head"))
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [*opened(rubrics=[rubric("factuality"), rubric("utility")])])
        ledger.append(STREAM, [plan(), BATCH, sent(BATCH.batch_key), RatingsPublished(run, ())])
        others = opened(entrants=[entrant("zoe"), entrant("amy")], judges=[judge("strict")])
        ledger.append(StreamId("second"), [*others])
    (folder / "votes.csv").write_text(VOTES)
    assert launch(folder, "import", "battles", "votes.csv", "--name", "people").returncode == 0
    return folder


Offered: TypeAlias = Callable[..., list[str]]


@pytest.fixture
def offered(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Offered:
    """Give a function that says what bash is offered for the last word of a line."""

    def offer(line: str, folder: Path = recorded) -> list[str]:
        monkeypatch.setenv("_TOURNEY_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        done = launch(folder)

        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return offer


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("tourney project elo --dimension ", ["factuality", "utility"]),
        ("tourney project elo --dimension u", ["utility"]),
        ("tourney project elo --judge ", ["strict", "reference"]),
        ("tourney project elo --tournament main --judge ", ["reference"]),
        ("tourney project elo --tournament ", ["main", "second"]),
        ("tourney project elo --policy ", [*POLICY_NAMES]),
        ("tourney project elo --parser len", ["lenient-tap"]),
        ("tourney project elo --format j", ["json", "jsonl"]),
        ("tourney project bt --with ", ["people"]),
        ("tourney project bt --name ", ["people"]),
        ("tourney project bt --tournament second --anchor ", ["zoe", "amy"]),
        ("tourney project bt --fit-temperature ", ["people"]),
        ("tourney project metrics --entrant b", ["base"]),
        ("tourney project metrics --evaluation ", ["recall"]),
        ("tourney apply judge --judge s", ["strict"]),
        ("tourney plan judge --show-prompt ", ["p1"]),
        ("tourney export battles --name ", ["people"]),
        ("tourney import battles x.csv --layout ", [*FORMATS]),
        ("tourney replay --against ", ["runs/headline_1"]),
        ("tourney batch cancel ", ["msgbatch_01"]),
        ("tourney log Ratings", [each for each in EVENTS.types if "Ratings" in each[:7]]),
        ("tourney project win", ["winrates"]),
        ("tourney pl", ["plan"]),
    ],
)
def test_a_shell_is_offered_what_is_on_record(
    offered: Offered, line: str, names: list[str]
) -> None:
    """Names that nobody remembers to the letter."""
    assert sorted(offered(line)) == sorted(names)


def test_the_ledger_is_the_one_that_the_line_names(
    offered: Offered, recorded: Path, tmp_path: Path
) -> None:
    """By option, by the settings, or by the environment, as when the command runs."""
    folder = copytree(recorded, tmp_path / "own")
    (folder / "tournament.db").rename(folder / "other.db")

    assert offered("tourney project elo --tournament ", folder) == []
    assert offered("tourney project elo -l other.db --tournament ", folder) == ["main", "second"]
    (folder / "x.toml").write_text('[tournament]\nid = "main"\nledger = "other.db"\n')
    assert offered("tourney project elo -c x.toml --dimension f", folder) == ["factuality"]


def test_a_ledger_that_cannot_be_read_offers_nothing(offered: Offered, tmp_path: Path) -> None:
    """A traceback would land in the line that is being typed."""
    (tmp_path / "tournament.db").write_bytes(b"no ledger at all")

    assert offered("tourney project elo --dimension ", tmp_path) == []
    assert offered("tourney replay --against ", tmp_path) == []
    assert offered("tourney project elo -c none.toml --judge ", tmp_path) == []
