"""The ratings of a run, as files."""

import csv
import dataclasses
import io
import json

import numpy as np
import pytest
from msgspec.structs import replace

from ledger.identity import Dimension
from projections.artifacts.files import elo_results, files_of
from projections.artifacts.results import Results, results_of
from projections.intervals import wilson
from projections.ratings.elo.uncertainty import EloBootstrap
from tests.support.builders.events import known
from tests.support.builders.worlds import ELO, Fate, cup, history, publication

FACTUALITY = Dimension("factuality")
FATES: list[Fate] = ["a", "tie", "b", "a", "inconsistent", "refused"]


def after(*fates: Fate, bootstraps: int = 0) -> Results:
    """Return the cup's results after its matches met their fates."""
    tournament = known(*history(cup(), *fates))
    elo = replace(ELO, bootstraps=bootstraps)
    return results_of(tournament, publication(tournament, elo))


def test_elo_results_are_those_of_the_standings_in_the_customers_fields() -> None:
    """Scripts plot them; the interval keeps its name, and the file says what it is of."""
    found = after(*FATES)
    rows = found.standings[FACTUALITY].rows

    files = files_of(found)

    fields = json.loads(files["elo_results.json"])
    assert fields["default_k"] == 16.0
    assert list(fields["k_sensitivity"]["factuality"]) == ["1.0", "4.0", "8.0", "16.0", "32.0"]
    assert fields["n_decisive_matches"] == {"factuality": 3}
    assert "order dependence only" in fields["interval"]
    primary = fields["primary"]["factuality"]
    assert primary == fields["k_sensitivity"]["factuality"]["16.0"]
    assert [*primary] == ["amy", "kim", "zoe"]
    for row in rows:
        mean, sem = row.rating or 0.0, row.order_sem or 0.0
        bounds = {"ci95_low": mean - 1.96 * sem, "ci95_high": mean + 1.96 * sem}
        about = {"entrant_id": row.entrant, "mean": mean, "sem": sem}
        assert primary[row.entrant] == pytest.approx({**about, **bounds})
    with np.load(io.BytesIO(files["elo_per_perm.npz"]), allow_pickle=False) as archive:
        means = archive["factuality__data"].mean(axis=0).tolist()
    assert means == [row["mean"] for row in primary.values()]


def test_nobody_is_in_the_results_before_a_decision() -> None:
    """1400 for everybody would be a rating that nothing speaks for."""
    fields = elo_results(after("tie", "inconsistent"))

    assert fields["primary"] == {"factuality": {}}
    assert fields["n_decisive_matches"] == {"factuality": 0}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("fates", "names"), [(FATES, ["amy", "kim", "zoe"]), (["a"], ["amy", "zoe"]), ([], [])]
)
def test_the_traces_are_read_without_pickle(fates: list[Fate], names: list[str]) -> None:
    """A pickle runs code when it is opened, and results are passed from hand to hand."""
    found = after(*fates)

    content = io.BytesIO(files_of(found)["elo_per_perm.npz"])
    with np.load(content, allow_pickle=False) as archive:
        arrays = dict(archive)

    assert set(arrays) == {"factuality__data", "factuality__entrants"}
    assert arrays["factuality__data"].shape == (4, len(names))
    assert arrays["factuality__data"].dtype == np.float64
    assert arrays["factuality__entrants"].tolist() == names


def test_win_rates_begin_with_the_customers_columns() -> None:
    """Spreadsheets made for the customer's file go on working; ours has columns more."""
    content = files_of(after(*FATES))["pairwise_winrates.csv"].decode()

    header, *rows = csv.reader(io.StringIO(content))

    assert header == [
        *("dimension", "entrant_a", "entrant_b"),
        *("a_wins", "b_wins", "ties", "inconsistent", "missing"),
        *("win_rate", "ci95_low", "ci95_high"),
    ]
    assert [row[:8] for row in rows] == [
        ["factuality", "amy", "kim", "0", "1", "0", "0", "1"],
        ["factuality", "amy", "zoe", "0", "2", "0", "0", "0"],
        ["factuality", "kim", "zoe", "0", "0", "1", "1", "0"],
    ]
    assert [float(cell) for cell in rows[1][8:]] == [0.0, *wilson(0.0, 2)]


def test_what_is_sure_stands_beside_the_noise_of_orders() -> None:
    """The customer's ci95 keeps its place and meaning; the interval over prompts has its own."""
    found = after("b", "b", "b", "a", "pending", "pending", bootstraps=30)

    fields = elo_results(found)

    assert fields["bootstrap"] == {
        "kind": "bootstrap",
        "unit": "prompts",
        "level": 0.95,
        "n_resamples": 30,
        "seed": 7,
        "ratings": {
            "factuality": {
                row.entrant: {"ci95_low": row.ci95_low, "ci95_high": row.ci95_high}
                for row in found.standings[FACTUALITY].rows
            }
        },
    }
    assert "bootstrap" not in elo_results(after("b"))


def test_dimensions_of_very_many_battles_are_named_whose_prompts_were_not_resampled() -> None:
    """Two kinds of interval stand in one table; each says which it is."""
    found = after("b", "b", "b", "a", "pending", "pending", bootstraps=30)
    standing = found.standings[FACTUALITY]
    many = dataclasses.replace(standing, bootstrap=EloBootstrap(0, 4, np.ones(3)))

    vars(found)["standings"] = {FACTUALITY: many}
    fields = elo_results(found)

    bootstrap = fields["bootstrap"]
    assert isinstance(bootstrap, dict)
    assert bootstrap["infinitesimal_jackknife"] == [FACTUALITY]
