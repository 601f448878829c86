"""The files of a run by name, with the fields of the customer's scripts and more.

The published files depend on the results alone: a replay must produce the same bytes.
"""

import json
from collections.abc import Mapping
from typing import Final

from ledger.chain import Head
from ledger.events.registration import TournamentOpened
from ledger.identity import Fields, Json
from projections.artifacts.lines import line_files
from projections.artifacts.ratings import elo_per_perm, elo_ratings, elo_results, pairwise_winrates
from projections.artifacts.results import RatedRun, Results


def manifest(results: RatedRun) -> Fields:
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
    lines = {path: b"".join(each) for path, each in line_files(results.pairs).items()}
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


def rating_files(results: RatedRun) -> dict[str, bytes]:
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
