"""The files of a run by name, with the fields of the customer's scripts and more.

The published files depend on the results alone: a replay must produce the same bytes. A line of a
`.jsonl` file is a JSON object, with blanks where Python's `json` has them.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec
import numpy as np

from ledger.chain import Head
from ledger.events.judging import Order
from ledger.events.money import Usage
from ledger.events.registration import TournamentOpened
from ledger.identity import Digest, Dimension, Fields, Json
from ledger.recorded import moment
from projections.artifacts.judgearena import of_settlements, rating_records
from projections.artifacts.results import Results, SettledPairs
from projections.ratings.elo.rate import EloRatings
from projections.ratings.elo.uncertainty import INTERVAL
from projections.ratings.standings import win_rates
from projections.results.columns import csv_of
from projections.results.ratings import WinRateRow
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement


def manifest(results: Results) -> Fields:
    """Return what was run, with which settings, and the outcome counts of its pairings."""
    publication, tournament = results.publication, results.tournament
    opening, newest = tournament.opening, tournament.newest
    configuration: Fields = json.loads(opening.configuration) if opening else {}
    return {
        "run": publication.run,
        "mode": publication.terms.mode,
        "config_path": None,  # true on one machine only; `configuration` is what the file said
        "tournament": tournament.stream,
        "judge_model": results.judge.model,
        "judge": results.judge.fields,
        "policy": publication.terms.policy,
        "entrants": list(publication.terms.entrants),
        "prompts": list(publication.terms.prompts),
        "bank_size": len(tournament.bank),
        "selected_prompt_count": len(publication.terms.prompts),
        "n_perms": publication.terms.elo.permutations,
        "shuffle_seed": publication.terms.elo.seed,
        "pilot_seed": _pilot_seed(configuration),
        "elo": publication.terms.elo.fields,
        "bradley_terry": publication.terms.bradley_terry.fields,
        "instructions": _instructions(opening),
        "rubrics": {
            rubric.dimension: {"version": rubric.version, "digest": rubric.digest}
            for rubric in tournament.dimensions
        },
        "accounts": {
            dimension: standing.account.fields()
            for dimension, standing in results.standings.items()
        },
        "configuration": configuration,
        "versions": dict(opening.versions) if opening else {},
        "started_at": publication.started_at.isoformat(),
        "finished_at": newest.recorded_at.isoformat() if newest else None,
        "as_of": publication.as_of,
        "head": publication.head,
        "checkpoint": str(Head(publication.as_of, publication.head)),
    }


def _instructions(opening: TournamentOpened | None) -> Json:
    instructions = opening.instructions if opening else None
    return (
        {"version": instructions.version, "digest": instructions.digest} if instructions else None
    )


def _pilot_seed(configuration: Fields) -> Json:
    pilot = configuration.get("pilot")
    return pilot["seed"] if isinstance(pilot, Mapping) else None


def holds_texts(path: str) -> bool:
    """Say whether a published file holds texts of events, and changes if one is redacted."""
    return path == "manifest.json" or path.startswith(("matches/", "verdicts/"))


def holds_ratings(path: str) -> bool:
    """Say whether a published file holds ratings, whose digits depend on the arithmetic."""
    return path in {"elo_results.json", "elo_per_perm.npz", "elo_ratings.json"}


def files_of(results: Results) -> dict[str, bytes]:
    """Return every published file of a run, by its path relative to the run's folder."""
    lines = {path: b"".join(pieces) for path, pieces in line_files(results.pairs).items()}
    files = rating_files(results) | lines
    return dict(sorted(files.items(), key=_place))


_ORDER: Final = (
    "manifest",
    "matches/",
    "verdicts/",
    "elo_results",
    "elo_per_perm",
    "pairwise_winrates",
    "battles",
    "elo_ratings",
)
"""How the paths of files begin, in the order in which a publication names them."""


def _place(file: tuple[str, bytes]) -> int:
    return next(place for place, beginning in enumerate(_ORDER) if file[0].startswith(beginning))


def rating_files(results: Results) -> dict[str, bytes]:
    """Return the files that say of the run as a whole how it ended."""
    return {
        "manifest.json": _json(manifest(results)),
        "elo_results.json": _json(elo_results(results)),
        "elo_per_perm.npz": elo_per_perm(results),
        "pairwise_winrates.csv": pairwise_winrates(results),
        "elo_ratings.json": _json(elo_ratings(results)),
    }


def _json(value: Json) -> bytes:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


_NORMAL_95: Final = 1.96  # half width of a 95 % interval in standard errors


def elo_results(results: Results) -> Fields:
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


def _bootstrap(results: Results) -> Fields:
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


def _computed(results: Results) -> Fields:
    """Name the dimensions of so many battles that prompts were not resampled; empty without any."""
    dimensions = [
        dimension
        for dimension, standing in results.standings.items()
        if standing.bootstrap and not standing.bootstrap.n_resamples
    ]
    return {"infinitesimal_jackknife": dimensions} if dimensions else {}


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


def elo_per_perm(results: Results) -> bytes:
    """Return an npz of each dimension's final ratings, (n_permutations, n_entrants)."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    for dimension, standing in results.standings.items():
        arrays[f"{dimension}__data"] = standing.ratings.traces
        arrays[f"{dimension}__entrants"] = np.array(standing.ratings.entrants, dtype=np.str_)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def pairwise_winrates(results: Results) -> bytes:
    """Return a CSV of each pair's counts, and of a's share of decided and tied pairs."""
    rows = win_rates(results.comparisons, by_outcome=True)
    return csv_of(WinRateRow._fields, rows).encode()


def elo_ratings(results: Results) -> Fields:
    """Return ratings in the shape of JudgeArena's: by Bradley-Terry, with their intervals."""
    return rating_records(
        results.boards,
        results.publication.terms.bradley_terry,
        arena=results.tournament.stream,
        judge_model=results.judge.model,
    )


_JUDGED: Final = frozenset({"a", "b", "tie", "inconsistent"})

_TOKENS: Final = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
)

Pieces: TypeAlias = Iterable[bytes]
"""What joined is a file."""


def line_files(results: SettledPairs) -> dict[str, Iterator[bytes]]:
    """Return the lines of each file; of a part of the prompts, that part of the run's lines."""
    return {
        "matches/matches.jsonl": map(_line, _matches(results)),
        **{
            f"verdicts/{dimension}.jsonl": map(_line, _verdicts(results, dimension))
            for dimension in results.settlements
        },
        "battles.jsonl": map(_line, _battles(results)),
    }


def _line(fields: Fields) -> bytes:
    return msgspec.json.format(msgspec.json.encode(fields), indent=0) + b"\n"


def _matches(results: SettledPairs) -> Iterator[Fields]:
    """Yield every pair that could be judged, with both responses."""
    for settlement in _in_match_order(results):
        if settlement.match is not None:
            yield {"dimension": settlement.dimension, **_pair(settlement.match)}


def _in_match_order(results: SettledPairs) -> list[Settlement]:
    """Return every settlement: prompts in bank order, then dimensions, then pairs."""
    order = {prompt.prompt_id: n for n, prompt in enumerate(results.tournament.bank)}
    settled = [settlement for group in results.settlements.values() for settlement in group]
    return sorted(settled, key=lambda each: order[each.pairing.prompt.prompt_id])


def _pair(match: Match) -> Fields:
    pairing, prompt = match.pairing, match.pairing.prompt
    return {
        "prompt_id": prompt.prompt_id,
        "source": prompt.source,
        "prompt_text": prompt.text,
        "entrant_a": pairing.a.entrant.entrant_id,
        "entrant_b": pairing.b.entrant.entrant_id,
        "response_a": match.response_a.text,
        "response_b": match.response_b.text,
        "gold_answer": prompt.gold_answer,
        "expected_behavior": prompt.expected_behavior,
    }


def _verdicts(results: SettledPairs, dimension: Dimension) -> Iterator[Fields]:
    """Yield every judged pair of a dimension, with the complete replies in its orders."""
    for settlement in results.settlements[dimension]:
        match, status = settlement.match, settlement.status
        if match is None or status not in _JUDGED:
            continue
        _, prompt_id, a, b = settlement.pairing.names
        tied_unasked = match.is_identical and match.forward_key not in results.tournament.verdicts
        replies = () if tied_unasked else match.keys
        yield {
            "prompt_id": prompt_id,
            "dimension": dimension,
            "entrant_a": a,
            "entrant_b": b,
            "winner": {"a": a, "b": b}.get(status),
            "inconsistent": status == "inconsistent",
            "outcome": status,
            "raw": [_reply(results, match, order, key) for order, key in replies],
            **({"basis": "identical"} if tied_unasked else {}),
        }


def _reply(results: SettledPairs, match: Match, order: Order, key: Digest) -> Fields:
    verdict, recorded_us = results.tournament.verdicts[key]
    return {
        "cache_key": key,
        "pair": _pair(match),
        "rubric_version": match.pairing.rubric.version,
        "judge_model": verdict.model,
        "position_swap": order == "swapped",
        "verdict": verdict.verdict,
        "reasoning": verdict.reply,
        "parser": verdict.parser,
        "stop_reason": verdict.stop_reason,
        "timestamp": moment(recorded_us).isoformat(),
        **_tokens(verdict.usage),
    }


def _tokens(usage: Usage | None) -> Fields:
    """Return a reply's tokens; an offline judge counts none."""
    counts: tuple[int | None, ...] = (None,) * len(_TOKENS)
    if usage is not None:
        written = usage.n_cache_write_5m + usage.n_cache_write_1h
        counts = written, usage.n_cache_read, usage.n_input, usage.n_output
    return dict(zip(_TOKENS, counts, strict=True))


def _battles(results: SettledPairs) -> Iterator[Fields]:
    """Yield the pairs with a verdict in JudgeArena's battle format."""
    for settlement in _in_match_order(results):
        for record in of_settlements([settlement], results.judge.model):
            yield {**record, "dimension": settlement.dimension}
