"""The files of a run by name, with the fields of the customer's scripts and more.

What a run claims is a function of the results alone: a replay must find the same bytes again. The
report shows the same to people, and is no part of the claim: its words and looks may change.
"""

import json
from collections.abc import Iterable

from ledger.identity import Json
from projections.artifacts.manifest import manifest
from projections.artifacts.ratings import elo_per_perm, elo_ratings, elo_results, pairwise_winrates
from projections.artifacts.records import battles, matches, verdicts
from projections.artifacts.report import report
from projections.artifacts.results import Fields, Results


def files_of(results: Results) -> dict[str, bytes]:
    """Return every file that a run claims, its path relative to the run's folder."""
    return {
        "manifest.json": _json(manifest(results)),
        "matches/matches.jsonl": _jsonl(matches(results)),
        **{
            f"verdicts/{dimension}.jsonl": _jsonl(verdicts(results, settlements))
            for dimension, settlements in results.settlements.items()
        },
        "elo_results.json": _json(elo_results(results)),
        "elo_per_perm.npz": elo_per_perm(results),
        "pairwise_winrates.csv": pairwise_winrates(results),
        "battles.jsonl": _jsonl(battles(results)),
        "elo_ratings.json": _json(elo_ratings(results)),
    }


def renderings_of(results: Results) -> dict[str, bytes]:
    """Return what stands beside those files for people to read, made again at will."""
    return {"report.html": report(results).encode()}


def _json(value: Json) -> bytes:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _jsonl(rows: Iterable[Fields]) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    return "".join(lines).encode()
