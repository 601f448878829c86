"""The rating artifacts of a run: Elo results and traces, win rates, Bradley-Terry ratings."""

import io
from typing import Final

import numpy as np

from ledger.identity import Fields
from projections.artifacts.judgearena import rating_records
from projections.artifacts.results import RatedRun
from projections.ratings.elo.rate import EloRatings
from projections.ratings.elo.uncertainty import INTERVAL
from projections.ratings.standings import win_rates
from projections.results.columns import csv_of
from projections.results.ratings import WinRateRow

_NORMAL_95: Final = 1.96  # half width of a 95 % interval in standard errors


def elo_results(results: RatedRun) -> Fields:
    """Return ratings as the customer's scripts do; `bootstrap` adds intervals, which they lack."""
    return {
        "default_k": results.publication.terms.elo.k,
        "interval": "ci95 is the mean over orders of play +- 1.96 sem: order dependence only",
        "primary": {
            dimension: _ratings(standing.ratings)
            for dimension, standing in results.standings.items()
        },
        "k_sensitivity": {
            dimension: {str(float(k)): _ratings(ratings) for k, ratings in standing.sweep}
            for dimension, standing in results.standings.items()
        },
        "n_decisive_matches": {
            dimension: standing.account.decided for dimension, standing in results.standings.items()
        },
        **_bootstrap(results),
    }


def _bootstrap(results: RatedRun) -> Fields:
    """Return bootstrap intervals of the `primary` ratings; empty if none were asked for."""
    terms = results.publication.terms.elo
    if not terms.bootstraps:
        return {}
    return {
        "bootstrap": {
            **INTERVAL,
            "n_resamples": terms.bootstraps,
            **_computed(results),
            "seed": terms.seed,
            "ratings": {
                dimension: {
                    row.entrant: {"ci95_low": row.ci95_low, "ci95_high": row.ci95_high}
                    for row in standing.rows
                    if row.rating is not None
                }
                for dimension, standing in results.standings.items()
            },
        }
    }


def _computed(results: RatedRun) -> Fields:
    """Name the dimensions of so many battles that prompts were not resampled; empty without any."""
    some = [
        dimension
        for dimension, standing in results.standings.items()
        if standing.bootstrap and not standing.bootstrap.n_resamples
    ]
    return {"infinitesimal_jackknife": some} if some else {}


def _ratings(ratings: EloRatings) -> Fields:
    columns = zip(ratings.entrants, ratings.mean(), ratings.order_sem(), strict=True)
    return {
        entrant: {
            "entrant_id": entrant,
            "mean": float(mean),
            "sem": float(sem),
            "ci95_low": float(mean - _NORMAL_95 * sem),
            "ci95_high": float(mean + _NORMAL_95 * sem),
        }
        for entrant, mean, sem in columns
    }


def elo_per_perm(results: RatedRun) -> bytes:
    """Return an npz of each dimension's final ratings, (n_permutations, n_entrants)."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    for dimension, standing in results.standings.items():
        arrays[f"{dimension}__data"] = standing.ratings.traces
        arrays[f"{dimension}__entrants"] = np.array(standing.ratings.entrants, dtype=np.str_)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def pairwise_winrates(results: RatedRun) -> bytes:
    """Return a CSV of each pair's counts, and of a's share of decided and tied pairs."""
    rows = win_rates(results.comparisons, by_outcome=True)
    return csv_of(WinRateRow._fields, rows).encode()


def elo_ratings(results: RatedRun) -> Fields:
    """Return ratings in the shape of JudgeArena's: by Bradley-Terry, with their intervals."""
    return rating_records(
        results.boards,
        results.publication.terms.bradley_terry,
        arena=results.tournament.stream,
        judge_model=results.judge.model,
    )
