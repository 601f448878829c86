"""`import tourney`: the numbers of the command line, as typed rows and as data frames."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tourney
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.builders.events import (
    NOON,
    STREAM,
    opened,
)
from tests.support.builders.results import evaluated, judged
from tests.support.command_line.launching import launch
from tests.support.command_line.settled import fields

View = Callable[[tourney.TournamentView], tourney.Rows[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a ledger that holds all that the library reads."""
    found = tmp_path_factory.mktemp("recorded")
    hours = (NOON + timedelta(hours=n) for n in count())
    with Ledger.open(found / "tournament.db", lambda: next(hours)) as ledger:
        for events in (judged(), evaluated()):
            ledger.append(STREAM, events)
    return found


@pytest.fixture(scope="module")
def view(folder: Path) -> tourney.TournamentView:
    """Give that ledger's tournament."""
    return tourney.read(folder / "tournament.db")


def of_command_line(folder: Path, command: str) -> list[dict[str, Any]]:
    """Return the rows that a reading command prints as JSON."""
    done = launch(folder, "project", *command.split(), "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = fields(done)["rows"]
    return found


def as_json(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return rows as the command line prints them."""
    return [
        {
            name: value.isoformat()
            if isinstance(value, date)
            else [*value]
            if isinstance(value, tuple)
            else value
            for name, value in row._asdict().items()
        }
        for row in rows
    ]


@pytest.mark.parametrize(
    ("rows", "command"),
    [
        (lambda view: view.elo(), "elo"),
        (lambda view: view.elo(k=32, ties="half"), "elo --k 32 --ties half"),
        (lambda view: view.bradley_terry(), "bt"),
        (
            lambda view: view.bradley_terry(anchor="amy", ties="davidson"),
            "bt --anchor amy=1200 --ties davidson",
        ),
        (lambda view: view.win_rates(), "winrates"),
        (lambda view: view.fragility(), "fragility"),
        (lambda view: view.bias(), "bias"),
        (lambda view: view.spend(), "spend"),
        (lambda view: view.metrics(), "metrics"),
    ],
)
def test_rows_are_those_of_the_command_line(
    folder: Path, view: tourney.TournamentView, rows: View, command: str
) -> None:
    """A notebook and a terminal must never disagree: names, order, and every last digit."""
    found = as_json(rows(view))

    assert found == of_command_line(folder, command)
    assert found


@pytest.mark.parametrize(
    ("chosen", "options"),
    [
        ({"judge": "bob"}, "--judge bob"),
        ({"dimension": "utility"}, "--dimension utility"),
        ({"policy": "majority"}, "--policy majority"),
        ({"parser": "final-line"}, "--parser final-line"),
        ({"as_of": 200}, "--as-of 200"),
        ({"as_of": NOON}, f"--as-of {NOON.isoformat()}"),
        ({"as_of": "2026-04-27T13:00:00+00:00"}, "--as-of 2026-04-27T13:00:00+00:00"),
    ],
)
def test_what_is_read_is_chosen_as_on_the_command_line(
    folder: Path, chosen: dict[str, Any], options: str
) -> None:
    """Judge, dimension, rule and position: each has one meaning."""
    view = tourney.read(folder / "tournament.db", **chosen)

    outcomes = [{"order": None} | row for row in of_command_line(folder, f"matches {options}")]
    assert as_json(view.outcomes()) == [
        {name: row[name] for name in tourney.OutcomeRow._fields} for row in outcomes
    ]
    assert as_json(view.elo()) == of_command_line(folder, f"elo {options}")


def test_spend_is_of_the_judge_and_the_dimension_that_were_chosen(folder: Path) -> None:
    """As `project spend --judge ann --dimension utility`."""
    view = tourney.read(folder / "tournament.db", judge="ann", dimension="utility")

    [bill] = view.spend()

    assert as_json([bill]) == of_command_line(folder, "spend --judge ann --dimension utility")
    assert (bill.judge, bill.dimension, bill.day) == ("ann", "utility", NOON.date())


def test_a_sum_with_an_unknown_price_is_none(view: tourney.TournamentView) -> None:
    """Neither 0 nor NaN: nobody knows what those replies cost."""
    unknown = {bill.usd is None for bill in view.spend() if bill.n_unpriced}

    assert unknown == {True}


def test_responses_are_those_of_the_command_line(
    folder: Path, view: tourney.TournamentView
) -> None:
    """All but the diagnostics, which are no single value."""
    wanted = of_command_line(folder, "responses")

    assert as_json(view.responses()) == [
        {name: row[name] for name in tourney.ResponseRow._fields} for row in wanted
    ]
    assert len(wanted) == 4 * 12


def test_what_entrants_behind_endpoints_cost_is_that_of_the_command_line(
    folder: Path, view: tourney.TournamentView
) -> None:
    """At the prices of their time."""
    told = fields(launch(folder, "project", "spend", "--json"))["entrants"]

    (zoe,) = view.entrant_spend()

    assert [list(zoe)] == [list(each.values()) for each in told]
    assert (zoe.n_answers, zoe.usd, zoe.n_maybe_billed) == (1, 0.25, 0)


def test_a_view_stays_as_it_was_read(tmp_path: Path) -> None:
    """A notebook's cells agree with each other while a run goes on."""
    path = tmp_path / "tournament.db"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, judged()[:200])
        view = tourney.read(path)
        ledger.append(STREAM, (*judged()[200:], *evaluated()))

        assert view.as_of == 200
        assert view.metrics().rows == ()
        assert view.outcomes() != tourney.read(path).outcomes()


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"tournament": "none"}, f"holds no tournament 'none'; it holds {STREAM!r}; name"),
        ({"judge": "dan"}, "^judge 'dan' is not a judge; known: ann, bob, cleo"),
        ({"dimension": "wit"}, "^dimension 'wit' is not a dimension; known: factuality, utility"),
        ({"policy": "mojority"}, "^policy 'mojority' is not known; did you mean 'majority'"),
        ({"parser": "none"}, "^parser 'none' is not known"),
        ({"policy": "majority", "judge": "ann"}, "^policy majority .* leave out judge"),
        ({"as_of": "yesterday"}, "^as_of 'yesterday' is neither a position nor a time"),
    ],
)
def test_an_unknown_name_is_named_as_python_spells_it(
    folder: Path, chosen: dict[str, Any], why: str
) -> None:
    """Whoever wrote judge="dan" never wrote --judge."""
    with pytest.raises(tourney.TourneyError, match=why):
        tourney.read(folder / "tournament.db", **chosen).outcomes()


def test_a_ledger_that_is_not_there_is_told_without_an_option(tmp_path: Path) -> None:
    """Whoever wrote tourney.read("none.db") never wrote --ledger."""
    with pytest.raises(tourney.TourneyError, match="there is no ledger at") as caught:
        tourney.read(tmp_path / "none.db")

    assert "--" not in str(caught.value)


BAYESIAN: dict[str, Any] = {"interval": "bayesian"}


@pytest.mark.parametrize(
    ("rate", "first", "second"),
    [
        *(
            ("bradley_terry", {}, chosen)
            for chosen in (
                {"prior_sd": 50.0},
                {"unit": "battles"},
                {"level": 0.8},
                BAYESIAN,
            )
        ),
        ("bradley_terry", {"anchor": "amy"}, {"anchor": "amy", "anchor_rating": 0.0}),
        ("bradley_terry", BAYESIAN, BAYESIAN | {"bootstraps": 40}),
        ("bradley_terry", BAYESIAN, BAYESIAN | {"seed": 7}),
        *(
            ("elo", {}, chosen)
            for chosen in ({"permutations": 3}, {"seed": 7}, {"initial_rating": 0.0}, {"k": 8})
        ),
    ],
)
def test_what_a_notebook_chooses_is_what_it_gets(
    view: tourney.TournamentView, rate: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """The command line has no option for some of it, and its messages send people here."""
    assert getattr(view, rate)(**first) != getattr(view, rate)(**second)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (lambda view: view.elo(initial_rating=float("nan")), "^initial_rating nan: "),
        (lambda view: view.elo(k=0), "^k 0: must be above 0"),
        (lambda view: view.elo(bootstraps=3), "^bootstraps 3: "),
        (lambda view: view.bradley_terry(level=2), "^level 2: "),
        (
            lambda view: view.bradley_terry(anchor="dan"),
            "anchor 'dan' is not an entrant; known: zoe",
        ),
    ],
)
def test_a_setting_out_of_range_is_refused(
    view: tourney.TournamentView, rows: View, why: str
) -> None:
    """The same ranges hold as on the command line."""
    with pytest.raises(tourney.TourneyError, match=why):
        rows(view)


def test_one_tournament_of_several_is_named(tmp_path: Path) -> None:
    """Guessing would rate another tournament."""
    path = tmp_path / "tournament.db"
    with Ledger.open(path) as ledger:
        for name in ("first", "second"):
            ledger.append(StreamId(name), opened())

    with pytest.raises(tourney.TourneyError, match="first, second; choose one with tournament"):
        tourney.read(path)
    assert tourney.read(path, tournament="second").tournament == "second"


def test_rows_are_a_sequence_that_keeps_its_kind(view: tourney.TournamentView) -> None:
    """The best three can become a frame, too."""
    rows = view.elo()

    assert rows[:3].rows == tuple(rows)[:3]
    assert list(rows[:0].to_frame().columns) == list(tourney.EloRow._fields)
    assert repr(rows[:2]) == f"{rows[0]!r}\n{rows[1]!r}"
    assert repr(rows[:0]) == "no EloRow"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_every_value(view: tourney.TournamentView, library: str) -> None:
    """A column for each field, a line for each row, and missing where Python has None."""
    rows = view.elo(bootstraps=0)

    frame: Any = rows.to_frame(library)  # type: ignore[call-overload]  # one test of both

    assert type(frame).__module__.partition(".")[0] == library
    assert list(frame.columns) == list(tourney.EloRow._fields)
    assert list(frame["rating"]) == [row.rating for row in rows]
    missing = frame["ci95_low"].isna() if library == "pandas" else frame["ci95_low"].is_null()
    assert missing.all()


def test_polars_makes_the_frame_where_it_is_alone(
    view: tourney.TournamentView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody needs both."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    assert type(view.win_rates().to_frame()).__module__.startswith("polars")


def test_without_a_library_of_frames_it_is_said_what_to_install(
    view: tourney.TournamentView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is a dependency."""
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        view.elo().to_frame()
    with pytest.raises(ModuleNotFoundError, match=r"needs polars, .* pip install polars"):
        view.elo().to_frame("polars")


def test_a_misspelt_library_of_frames_is_not_to_be_installed(view: tourney.TournamentView) -> None:
    """Whoever took its name on the index would be run."""
    with pytest.raises(tourney.TourneyError, match="library 'polar' is not known; known: pandas"):
        view.elo().to_frame("polar")  # type: ignore[call-overload]


def test_importing_it_imports_nothing_that_takes_time() -> None:
    """A notebook's first cell answers at once; what a method needs it imports itself."""
    code = "import sys, tourney; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    imported = {name.partition(".")[0] for name in done.stdout.split()}
    foreign = imported - sys.stdlib_module_names
    assert {"tourney", "commands", "ledger"} <= foreign
    assert foreign.isdisjoint(
        {"numpy", "pandas", "polars", "pydantic", "msgspec", "typer", "rich", "torch", "anthropic"}
    )


def test_reading_needs_no_command_line(folder: Path) -> None:
    """The logic is outside the CLI, and stays there."""
    code = (
        "import sys, tourney; view = tourney.read('tournament.db'); view.elo(); view.spend();"
        " view.metrics(); view.entrant_spend(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )

    imported = done.stdout.split()
    assert "commands.reading.rows" in imported
    assert not [name for name in imported if name.startswith(("commands.cli", "typer", "torch"))]


def test_what_evaluations_are_written_with_comes_through_one_door() -> None:
    """Nobody should learn the house to write ten lines."""
    names = {*tourney.__all__} & {*tourney._DOOR}

    assert names
    assert {getattr(tourney, name).__name__ for name in names} == names


def test_the_door_opens_to_nothing_else() -> None:
    """A misspelt name is told as any module tells it."""
    assert tourney._DOOR.keys() <= {*tourney.__all__}
    with pytest.raises(AttributeError, match="has no attribute 'RolloutEvaluatoin'"):
        tourney.RolloutEvaluatoin  # noqa: B018  # it is looked up


def test_an_evaluator_without_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a ledger needs none of it."""
    monkeypatch.delitem(sys.modules, "commands.backends.jobs.evaluator", raising=False)
    monkeypatch.setitem(sys.modules, "commands.backends.jobs.subject", None)

    with pytest.raises(tourney.TourneyError, match="models"):
        tourney.Evaluator  # noqa: B018  # as above


def test_rows_in_a_notebook_are_a_table_in_which_no_name_has_an_effect() -> None:
    """A notebook shows HTML as it is."""
    row = tourney.WinRateRow._make(["<img src=x onerror=alert(1)>\u202e"] * 11)
    found = tourney.Rows(tourney.WinRateRow, (row,) * 70)._repr_html_()

    assert found.count("<tr>") == 61
    assert "and 10 more" in found
    assert "&lt;img src=x onerror=alert(1)&gt;\\u202e" in found
    assert "<img" not in found
