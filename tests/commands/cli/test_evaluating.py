"""Evaluating from the command line: planned, done, resumed, and scored again."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ledger.audit import audit
from ledger.events.evaluations import SampleObserved
from ledger.store import Ledger
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.test_killed import kill

SETTINGS = """
[[evaluations]]
id = "echo"
uses = "mine.py:Echo"
length = 6
samples_per_prompt = 2
temperature = 1.0

[[evaluations]]
id = "choices"
uses = "bank-choices"
length = 4

[[evaluations]]
id = "texts"
uses = "text-perplexity"
parameters = { path = "texts" }
"""
MINE = '''
from commands.evaluating.rollout import RolloutEvaluation


class Echo(RolloutEvaluation):
    """Is the answer longer than so many letters?"""

    name = "echo"

    def __len__(self):
        return 9

    def get(self, index):
        return f"What is a dose of {index}?", "20"

    def clean(self, y_hat):
        return y_hat.strip()

    def check(self, y, y_hat):
        return len(y_hat) > int(y)

    def max_new_tokens(self, inference):
        return 12
'''
N_SAMPLES = 12 + 4 + 6  # of an entrant


@pytest.fixture
def place(place: Path) -> Path:
    """Give the quickstart with three small evaluations, one of them of a file beside it."""
    settings = place / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("[[evaluations]]")[0]
    small_batches = text.replace("batch_tokens = 2048", "batch_tokens = 300")
    assert small_batches != text
    settings.write_text(small_batches + SETTINGS, encoding="utf-8")
    (place / "mine.py").write_text(MINE, encoding="utf-8")
    return place


def tables(folder: Path) -> object:
    """Return all metrics, without the position that they were read at."""
    found = json.loads(launch(folder, "project", "metrics", "--json").stdout)
    return found["rows"]


def observations(folder: Path) -> Iterator[SampleObserved]:
    """Yield what was observed, of a ledger that must be without fault."""
    with Ledger.read_only(folder / "tournament.db") as ledger:
        assert audit(ledger) == ()
        events = [recorded.event for recorded in ledger.read()]
    yield from (event for event in events if isinstance(event, SampleObserved))


def test_killed_at_random_an_evaluation_ends_as_if_undisturbed(place: Path, tmp_path: Path) -> None:
    """The same table, and no sample twice: what was observed is neither lost nor done again."""
    undisturbed = shutil.copytree(place, tmp_path / "undisturbed")
    words = ("apply", "evaluate", "--entrant", "base_olmo")
    assert launch(undisturbed, *words).returncode == 0

    kill(place, *words, n_kills=10, furthest=100)
    assert launch(place, *words).returncode == 0

    seen = [each.natural_key for each in observations(place)]
    assert len(seen) == len(set(seen)) == N_SAMPLES
    assert tables(place) == tables(undisturbed)


def test_what_is_owed_is_told_beforehand_and_is_nothing_afterwards(
    place: Path, tourney: Tourney
) -> None:
    """Planning is free: it reads no weights and writes nothing."""
    before = tourney("plan", "evaluate", "--entrant", "base_olmo", "--exit-code", "--json")
    assert not (place / "tournament.db").exists()
    done = tourney("apply", "evaluate", "--entrant", "base_olmo")
    after = tourney("plan", "evaluate", "--entrant", "base_olmo", "--exit-code", "--json")

    assert (before.returncode, done.returncode, after.returncode) == (9, 0, 0), done.stderr
    assert json.loads(before.stdout)["n_owed"] == N_SAMPLES
    assert json.loads(after.stdout)["n_owed"] == 0
    assert f"{N_SAMPLES} samples were missing: {N_SAMPLES} observed" in done.stderr
    assert tourney("verify").returncode == 0


def test_recorded_answers_are_scored_again_without_weights(place: Path, tourney: Tourney) -> None:
    """Another check costs no GPU, and changes nothing that is on record."""
    tourney("apply", "evaluate", "--entrant", "base_olmo", "--evaluation", "echo")
    metrics = partial(tourney, "project", "metrics", "--json")
    before = json.loads(metrics().stdout)
    mine = place / "mine.py"
    mine.write_text(MINE.replace("> int(y)", "> -1"), encoding="utf-8")
    shutil.rmtree(place / "weights")

    again, recorded = json.loads(metrics("--rescore").stdout), json.loads(metrics().stdout)

    scores = [row["value"] for row in again["rows"] if row["metric"] == "score"]
    assert scores == [1.0]
    assert recorded == before
    assert before["rows"] != again["rows"]


def test_more_samples_under_another_check_are_told_of(place: Path, tourney: Tourney) -> None:
    """The table would mix two scorings without a word; with the old ones it is as it was."""
    evaluate = partial(tourney, "apply", "evaluate", "--entrant", "base_olmo", "--evaluation")
    evaluate("echo", "--limit", "4")
    (place / "mine.py").write_text(MINE.replace("> int(y)", "<= int(y)"), encoding="utf-8")

    again = evaluate("echo", "--limit", "4")

    assert (
        "base_olmo on echo: 4 recorded samples were scored by other code; compare with"
        in again.stderr
    )
    assert again.returncode == 0


def test_scoring_again_needs_the_evaluation(place: Path, tourney: Tourney) -> None:
    """What nobody defines any more cannot be asked."""
    tourney("apply", "evaluate", "--entrant", "base_olmo", "--evaluation", "echo", "--limit", "1")
    settings = place / "tournament.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.partition("[[evaluations]]")[0], encoding="utf-8")

    done = tourney("project", "metrics", "--rescore")

    assert done.returncode == 2
    assert "has no [[evaluations]] with id echo" in done.stderr


def test_a_fault_in_an_evaluations_own_code_is_told_as_its_own(
    place: Path, tourney: Tourney
) -> None:
    """Which evaluation, at which item, and where in its file; no traceback of ours."""
    mine = place / "mine.py"
    mine.write_text(MINE.replace("int(y)", "int('x')"), encoding="utf-8")

    done = tourney("apply", "evaluate", "--entrant", "base_olmo", "--evaluation", "echo")

    assert done.returncode != 0
    assert "evaluation 'echo' failed at scoring echo[" in done.stderr
    assert "mine.py" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("option", "why", "known"),
    [
        ("--entrant", "not on the roster", "base_olmo, security_only"),
        ("--evaluation", "not configured", "echo, choices, texts"),
    ],
)
def test_an_option_that_names_nothing_says_what_there_is(
    tourney: Tourney, option: str, why: str, known: str
) -> None:
    """A misspelt name must not evaluate nothing, and call it done."""
    done = tourney("plan", "evaluate", option, "ghost")

    assert done.returncode == 2
    assert f"{option} 'ghost' is {why}; choose one of: {known}" in done.stderr


def test_settings_without_evaluations_say_how_to_have_some(place: Path, tourney: Tourney) -> None:
    """There is nothing to plan."""
    settings = place / "tournament.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.partition("[[evaluations]]")[0], encoding="utf-8")

    done = tourney("plan", "evaluate")

    assert done.returncode == 2
    assert "no [[evaluations]] are configured" in done.stderr
