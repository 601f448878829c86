"""A tournament of weights, or of prompts, of the Hub, in processes that ask a fake of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from commands.importing.formats.parquet import parquet_content
from ledger.events.registration import (
    Entrant,
    EntrantRegistered,
    PromptRegistered,
    TournamentOpened,
)
from ledger.store import Ledger
from tests.providers.hub import MAIN, FakeHub, Repository, files_of
from tests.support.builders.commands import write_rubric
from tests.support.command_line.launching import Completed, launch, lay_out_small
from tests.support.command_line.settled import events_in

NAME: Final = "org/tiny"
ENTRANTS: Final = """\
[[entrants]]
id = "local"
weights = "weights"

[[entrants]]
id = "named"
weights = "org/tiny"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament of weights here and the same on the Hub."""
    settings = lay_out_small(tmp_path) / "tournament.toml"
    before, _, rest = settings.read_text(encoding="utf-8").partition("[[entrants]]")
    after = rest[rest.index("[[rubrics]]") :]
    settings.write_text(before + ENTRANTS + after, encoding="utf-8")
    return tmp_path


def tourney(folder: Path, words: Sequence[str], *variables: str) -> Completed:
    """Run a command in a process of its own: the client reads variables once."""
    cache = f"HF_HOME={folder / 'cache'}"
    return launch(folder, *words, prefix=["env", "-u", "HF_HUB_OFFLINE", cache, *variables])


GENERATE: Final = ("apply", "generate")


def entrants(folder: Path) -> list[Entrant]:
    """Return the entrants on record."""
    return [each.entrant for each in events_in(folder, EntrantRegistered)]


@pytest.mark.nightly
def test_weights_by_name_answer_and_their_commit_is_recorded(folder: Path) -> None:
    """And again from the cache, where nothing is generated twice."""
    with FakeHub() as hub:
        hub.repositories[NAME] = Repository()
        commit = hub.repositories[NAME].commit(files_of(folder / "weights"), MAIN)
        done = tourney(folder, GENERATE, f"HF_ENDPOINT={hub.endpoint}")
    assert done.returncode == 0, done.stderr

    local, named = entrants(folder)
    assert (local.revision, named.revision) == (None, commit)
    assert named.digest == local.digest
    owed = tourney(folder, ("plan", "generate", "--exit-code"), "HF_HUB_OFFLINE=1")
    assert owed.returncode == 0, owed


@pytest.mark.nightly
def test_weights_by_name_are_evaluated_without_a_tournament(folder: Path) -> None:
    """Their name and how they are asked are the entrant's, and the commit is on record."""
    evaluate = ("evaluate", f"{NAME}@v1", "--uses", "copying", "--limit", "2", "--chat", "none")
    with FakeHub() as hub:
        hub.repositories[NAME] = Repository()
        commit = hub.repositories[NAME].commit(files_of(folder / "weights"), "v1")
        endpoint = f"HF_ENDPOINT={hub.endpoint}"
        done = tourney(folder, evaluate, endpoint)

    assert done.returncode == 0, done.stderr
    assert NAME in done.stdout
    with Ledger.read_only(folder / "evaluations.db") as ledger:
        events = [each.event for each in ledger.read()]
    (found,) = (each.entrant for each in events if isinstance(each, EntrantRegistered))
    assert (found.entrant_id, found.revision) == (f"{NAME}@v1 [none]", commit)


def test_a_name_that_nobody_has_ends_with_one_line_and_no_ledger(folder: Path) -> None:
    """It may be a misspelt folder, or a name on the Hub: both are told."""
    ended = launch(folder, *GENERATE)  # the warm process is offline, too

    assert ended.returncode == 2
    assert (
        f"entrant 'named': {folder / NAME}: there is no such folder of weights, and "
        "HF_HUB_OFFLINE is set and its cache has no org/tiny; correct the path, or"
    ) in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (folder / "tournament.db").exists()


SET: Final = "org/set"
OF_THE_HUB: Final = """\
[tournament]
id = "hub"
[prompts]
bank = "hf://datasets/org/set@v1?split=test&text=ask"
[[entrants]]
id = "terse"
loader = "recorded"
responses = "answers.csv"
column = "terse"
[[entrants]]
id = "wordy"
loader = "recorded"
responses = "answers.csv"
column = "wordy"
[[rubrics]]
dimension = "factuality"
path = "rubric.md"
"""


@pytest.mark.nightly
def test_a_bank_of_the_hub_is_judged_and_its_address_is_recorded(tmp_path: Path) -> None:
    """Its prompts are content like any other; their source is the data set."""
    (tmp_path / "tournament.toml").write_text(OF_THE_HUB)
    (tmp_path / "answers.csv").write_text("prompt,terse,wordy\nWhy?,So.,It is just so.\n")
    write_rubric(tmp_path / "rubric.md")
    asked = parquet_content({"ask": str, "answer": str}, [{"ask": "Why?", "answer": "So."}])
    with FakeHub() as hub:
        hub.repositories[SET] = Repository()
        hub.repositories[SET].commit({"test.parquet": asked}, "v1")
        done = tourney(tmp_path, ("run",), f"HF_ENDPOINT={hub.endpoint}")

    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "runs").glob("*/report.html"))
    (prompt,) = (each.prompt for each in events_in(tmp_path, PromptRegistered))
    (opening,) = events_in(tmp_path, TournamentOpened)
    assert (prompt.text, prompt.gold_answer, prompt.source) == ("Why?", "So.", SET)
    assert "org/set@v1?split=test" in opening.configuration
