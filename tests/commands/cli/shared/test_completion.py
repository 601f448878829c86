"""What a shell offers while one types: names that are on record, quickly, and never a traceback."""

from pathlib import Path
from shutil import copytree

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


@pytest.fixture
def offered(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> "Offered":
    """Give a function that says what bash is offered for the last word of a line."""
    return Offered(recorded, monkeypatch)


class Offered:
    """Bash's side of completion: the line and the number of the word that is typed."""

    run = staticmethod(launch)

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch

    def __call__(self, line: str) -> list[str]:
        """Return what is offered; an error fails the test."""
        self._monkeypatch.setenv("_TOURNEY_COMPLETE", "complete_bash")
        self._monkeypatch.setenv("COMP_WORDS", line)
        self._monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        done = self.run(self.folder)

        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()


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
        ("tourney import battles x.csv --from ", [*FORMATS]),
        ("tourney replay --against ", ["runs/headline_1"]),
        ("tourney batch cancel ", ["msgbatch_01"]),
        ("tourney log --type Ratings", [each for each in EVENTS.types if "Ratings" in each[:7]]),
        ("tourney project win", ["winrates"]),
    ],
)
def test_a_shell_is_offered_what_is_on_record(
    offered: Offered, line: str, names: list[str]
) -> None:
    """Names that nobody remembers to the letter."""
    assert sorted(offered(line)) == sorted(names)


def test_commands_are_offered_by_a_process_of_their_own(offered: Offered) -> None:
    """As a shell begins one."""
    offered.run = launch

    assert offered("tourney pl") == ["plan"]


def test_the_ledger_is_the_one_that_the_line_names(offered: Offered, tmp_path: Path) -> None:
    """By option, by the settings, or by the environment, as when the command runs."""
    offered.folder = copytree(offered.folder, tmp_path / "own")
    (offered.folder / "tournament.db").rename(offered.folder / "other.db")

    assert offered("tourney project elo --tournament ") == []
    assert offered("tourney project elo -l other.db --tournament ") == ["main", "second"]
    (offered.folder / "x.toml").write_text('[tournament]\nid = "main"\nledger = "other.db"\n')
    assert offered("tourney project elo -c x.toml --dimension f") == ["factuality"]


def test_a_ledger_that_cannot_be_read_offers_nothing(offered: Offered, tmp_path: Path) -> None:
    """A traceback would land in the line that is being typed."""
    offered.folder = tmp_path
    (tmp_path / "tournament.db").write_bytes(b"no ledger at all")

    assert offered("tourney project elo --dimension ") == []
    assert offered("tourney replay --against ") == []
    assert offered("tourney project elo -c none.toml --judge ") == []
