"""`project metrics` with `--curve` and `--samples`, as they are called."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from msgspec.structs import replace

import tourney
from ledger.events.evaluations import ChoicesItem, WayOfAsking
from ledger.events.registry import Event
from ledger.store import Ledger
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    completed,
    item,
    observed,
    plan,
    registrations,
    unscorable,
)
from tests.support.builders.events import STREAM, key
from tests.support.builders.results import trained
from tests.support.command_line.launching import launch

Shown = Callable[..., CompletedProcess[str]]
LONG = f"Given: {'a patient, ' * 40}which dose?"
ENDING = ChoicesItem(context=LONG, choices=(" of", " a"), correct=1)


def evaluated() -> list[Event]:
    """Return two evaluations of base: answers of which two are wrong, and one wrong choice."""
    asked = plan(n_items=4)
    chosen = replace(
        plan(n_items=1, evaluation="endings", kind="comparison", run_key=key("endings")),
        items=(item(0, ENDING).item,),
    )
    answers = [answer(1.0), answer(0.0, "ibuprofen"), answer(0.0, "=1+2")]
    seen: list[Event] = [*observed(asked, answers), unscorable(asked, 3), completed(asked, 3, 1)]
    picked = observed(chosen, [choices(choice(-1.0), choice(-2.0), correct=1)])
    return [*registrations(asked), item(0, ENDING), asked, *seen, chosen, *picked]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with ledgers: of evaluations, of a training, of none, of a system prompt."""
    place = tmp_path_factory.mktemp("metrics")
    asked = plan(n_items=1, asking=WayOfAsking(chat="turns", system="Be brief."))
    warmer = WayOfAsking(chat="turns", system="Be brief.", temperature=0.7)
    again = replace(asked, number=2, run_key=key("again"), asking=warmer)
    held = {
        "tournament": evaluated(),
        "trained": trained(),
        "none": registrations(plan()),
        "prompted": [*registrations(asked), asked, *observed(asked, [answer(1.0)])],
        "replanned": [*registrations(asked), asked, again],
    }
    for name, events in held.items():
        with Ledger.open(place / f"{name}.db") as ledger:
            ledger.append(STREAM, [*events])
    return place


def test_a_plan_that_replaced_another_is_told(folder: Path) -> None:
    """Whoever looks for yesterday's numbers learns why they are gone, and where they are."""
    said = launch(folder, "project", "metrics", "--ledger", "replanned.db").stdout

    assert "base on recall is incomplete: 0 of 1 sample of plan 2; evaluate again" in said
    assert (
        "base on recall: plan 2 replaced plan 1, which had other settings: temperature None and"
        " 0.7; --as-of shows the ledger as it was" in said
    )


@pytest.fixture
def samples(folder: Path) -> Shown:
    """Give `project metrics --samples` on two evaluations."""
    return lambda which, *words: launch(folder, "project", "metrics", *words, "--samples", which)


def rows(done: CompletedProcess[str]) -> list[dict[str, object]]:
    """Return the rows of JSON."""
    found: list[dict[str, object]] = json.loads(done.stdout)["rows"]
    return found


def test_wrong_samples_are_listed_with_what_was_asked(samples: Shown) -> None:
    """Right ones and those given up are left out; the notes count."""
    found = rows(samples("wrong", "--json"))
    table = samples("wrong", "--evaluation", "recall").stdout

    told = [(each["label"], each["answered"], each["expected"]) for each in found]
    assert told == [
        ("endings[0]", " of", " a"),
        ("recall[1]", "ibuprofen", "aspirin"),
        ("recall[2]", "=1+2", "aspirin"),
    ]
    assert found[0]["asked"] == LONG
    assert "base on recall: 2 of 3 answers wrong" in table
    assert "base on recall: 1 unscorable; they do not count as wrong" in table


def test_a_system_prompt_is_told_with_what_was_asked(folder: Path) -> None:
    """Under another one the same weights have other scores."""
    of = ("project", "metrics", "--ledger", "prompted.db")

    assert "base on recall: asked with the system prompt 'Be brief.'" in launch(folder, *of).stdout
    (sample,) = rows(launch(folder, *of, "--samples", "all", "--json"))
    assert sample["system"] == "Be brief."


def test_a_table_of_samples_fits_eighty_columns(
    samples: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long context its end is shown, too: there the question stands."""
    monkeypatch.setenv("COLUMNS", "80")

    shown = samples("wrong").stdout.splitlines()

    notes = [line for line in shown if line.startswith(("base on", "hidden: "))]
    assert max(len(line) for line in shown if line not in notes) <= 80
    assert "Which is number 1?" in " ".join(shown)
    assert any("which dose?" in line or "dose?" in line for line in shown)
    assert len(shown) < 25


def test_samples_are_written_for_other_programs(samples: Shown, folder: Path) -> None:
    """All columns, and no formula; the frame has the same rows."""
    table = [*csv.DictReader(io.StringIO(samples("all", "--format", "csv").stdout))]
    [frame] = [tourney.read(folder / "tournament.db").samples()]

    assert [each["label"] for each in table] == [each.label for each in frame]
    assert {each["evaluation"] for each in table} == {"endings", "recall"}
    assert table[3]["answered"] == "'=1+2"
    assert [each.unscorable for each in frame] == [*[None] * 4, "too_long"]
    assert frame[0].choices == (" of", " a")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--samples all --limit 2", 0, "3 more: raise --limit"),
        (
            "--samples all --evaluation recal",
            2,
            "'recal' is not on record; evaluated: endings, recall",
        ),
        ("--samples all -l none.db", 0, "run `tourney apply evaluate` first"),
        ("--curve", 0, "such as step_50 or checkpoint-60"),
        ("--curve --rescore", 2, "--curve shows what is recorded: leave out --rescore"),
        ("--curve --compare a b", 2, "--curve shows what is recorded: leave out --compare"),
        ("--samples wrong --curve", 2, "--samples lists what is recorded: leave out --curve"),
        ("--samples --json", 2, "'--json' is not one of 'all', 'wrong'"),
        ("--limit 2", 2, "--limit is of samples: add --samples all"),
    ],
)
def test_what_is_not_shown_is_told(folder: Path, words: str, code: int, said: str) -> None:
    """An empty table would look like no evaluation, and an option that does nothing is missed.

    A name is misspelt more often than forgotten.
    """
    done = launch(folder, "project", "metrics", *words.split())

    assert done.returncode == code
    assert said in done.stdout + done.stderr


def test_a_curve_has_every_step_in_each_form(folder: Path) -> None:
    """The newest plan alone is in the plain table."""
    words = ("project", "metrics", "-l", "trained.db")

    told = rows(launch(folder, *words, "--curve", "--json"))
    drawn = launch(folder, *words, "--curve", "--evaluation", "recall", "--format", "svg").stdout
    plain = rows(launch(folder, *words, "--json"))

    scores = [(each["step"], each["value"]) for each in told if each["metric"] == "score"]
    assert scores == [(10, 0.5), (20, 1.0)]
    assert drawn.count('class="curve"') == len(plain)
    assert "probe, recall: score" in drawn
    assert {each["weights"] for each in told} == {"in memory, at step 10", "in memory, at step 20"}
