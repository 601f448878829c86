"""manifest.json: what a run was, enough to check and to repeat it."""

import json
from collections.abc import Mapping

from ledger.chain import Head
from ledger.identity import Json
from projections.artifacts.results import Fields, Results


def manifest(results: Results) -> Fields:
    """Say what was run, on what, with which settings, and what became of every pairing."""
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


def _pilot_seed(configuration: Fields) -> Json:
    pilot = configuration.get("pilot")
    return pilot["seed"] if isinstance(pilot, Mapping) else None
