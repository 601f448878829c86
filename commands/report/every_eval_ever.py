"""Ratings as records of Every Eval Ever, a JSON file for each entrant.

What only the user knows, such as who made a model, is said to be unknown, in the schema's words.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from commands.reading.parameters import settings_of
from commands.report.subject import RatedDimension, Subject
from commands.settings.hub_dataset import hub_dataset
from commands.settings.version import VERSION
from ledger.events.registration import Entrant
from ledger.identity import Fields, digest_of
from projections.results.ratings import BradleyTerryRow

SCHEMA_VERSION: Final = "0.3.0"  # of every-eval-ever on PyPI; a copy is beside the tests
_UNKNOWN: Final = "unknown"
_UNSAFE: Final = re.compile(r"[^\w.+-]")  # in the name of a folder


def records_of(subject: Subject, now: datetime) -> Iterator[tuple[str, Fields]]:
    """Yield a record of each rated entrant, with the path that the database has for it."""
    state = subject.results.tournament
    for entrant in state.roster:
        results = [*_results(subject, entrant)]
        if results:
            developer, slash, name = _model_id(entrant).partition("/")
            folders = (state.stream, *((developer, name) if slash else (_UNKNOWN, developer)))
            file = _file_name([state.stream, entrant.digest, subject.head.chain])
            path = "/".join(_UNSAFE.sub("_", folder).strip(".") or "_" for folder in folders)
            yield f"data/{path}/{file}", _record(subject, entrant, results, now)


def _file_name(content: list[str]) -> str:
    """Return the name of a file, in the form of a random UUID; the same again for the same."""
    digest = digest_of(content)
    parts = digest[:8], digest[8:12], f"4{digest[13:16]}", f"8{digest[17:20]}", digest[20:32]
    return f"{'-'.join(parts)}.json"


def _record(subject: Subject, entrant: Entrant, results: list[Fields], now: datetime) -> Fields:
    stream, created = subject.results.tournament.stream, f"{now.timestamp():.0f}"
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{stream}/{_model_id(entrant)}/{created}",
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_name": stream,
            "source_type": "evaluation_run",
            "source_organization_name": _UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "tourney",
            "version": VERSION,
            "additional_details": {"ledger_head": str(subject.head)},
        },
        "model_info": _model(entrant),
        "evaluation_results": results,
    }


def _model_id(entrant: Entrant) -> str:
    """Return the name of a model on the Hub or of a server; of others, the entrant's own."""
    is_named = entrant.loader == "endpoint" or entrant.revision is not None
    return entrant.weights if is_named and not entrant.adapters else entrant.entrant_id


def _model(entrant: Entrant) -> Fields:
    is_here, is_of_hub = entrant.loader in {"hf", "hydra"}, entrant.loader == "hf"
    is_open = is_of_hub and entrant.revision is not None
    return {
        "name": entrant.entrant_id,
        "id": _model_id(entrant),
        "additional_details": {
            "deployment_type": "self_deployed" if is_here else _UNKNOWN,
            "model_availability": "open_weights" if is_open else _UNKNOWN,
            **({"revision": entrant.revision} if entrant.revision else {}),
        },
    }


def _results(subject: Subject, entrant: Entrant) -> Iterator[Fields]:
    state = subject.results.tournament
    for rated in subject.dimensions:
        row = next((row for row in rated.board.rows if row.entrant == entrant.entrant_id), None)
        if row is not None and row.rating is not None:
            yield {
                "evaluation_result_id": f"{state.stream}/{rated.name}",
                "evaluation_name": rated.name,
                "source_data": _source(subject),
                "metric_config": _metric(subject, rated),
                "score_details": _score(rated, row),
                **_decoding(entrant),
            }


def _decoding(entrant: Entrant) -> Fields:
    if entrant.loader == "recorded":  # nobody knows how those were made
        return {}
    chosen = {"temperature": entrant.temperature or 0.0, "max_tokens": entrant.max_new_tokens}
    return {"generation_config": {"generation_args": chosen}}


def _source(subject: Subject) -> Fields:
    state = subject.results.tournament
    dataset = hub_dataset(str(settings_of(state, "prompts").get("bank", "")))
    if dataset is None:
        return {"dataset_name": state.stream, "source_type": "other"}
    return {
        "dataset_name": dataset.name,
        "source_type": "hf_dataset",
        "hf_repo": dataset.name,
        **({"hf_split": dataset.split} if dataset.split else {}),
        "samples_number": len(state.bank),
    }


def _metric(subject: Subject, rated: RatedDimension) -> Fields:
    judge, roster = subject.results.judge, ", ".join(rated.board.ratings.entrants)
    return {
        "evaluation_description": f"Pairwise comparison, in both orders, of {roster}",
        "metric_id": "tourney.bradley_terry",
        "metric_name": "Bradley-Terry rating",
        "metric_kind": "elo",
        "metric_unit": "points",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": "-Infinity",
        "max_score": "Infinity",
        **({} if judge.provider == "reference" else {"llm_scoring": _scoring(subject, rated)}),
    }


def _scoring(subject: Subject, rated: RatedDimension) -> Fields:
    state, judge = subject.results.tournament, subject.results.judge
    assert state.opening is not None  # noqa: S101  # it was read
    rubric = next(one for one in state.dimensions if one.dimension == rated.name)
    about = {"deployment_type": _UNKNOWN, "model_availability": _UNKNOWN}
    model: Fields = {"name": judge.judge_id, "id": judge.model, "additional_details": about}
    told = f"{judge.told(state.opening.instructions).guidance}\n\n{rubric.guidance}"
    return {"judges": [{"model_info": model}], "input_prompt": told}


def _score(rated: RatedDimension, row: BradleyTerryRow) -> Fields:
    parameters = rated.board.ratings.parameters
    uncertainty: Fields = {"num_samples": row.n_battles}
    if row.low is not None and row.high is not None:
        interval = {
            "lower": row.low,
            "upper": row.high,
            "confidence_level": parameters.level,
            "method": parameters.interval,
        }
        uncertainty = {"confidence_interval": interval, **uncertainty}
    details = {"rank": row.rank, "group": None if row.group is None else str(row.group)}
    return {
        "score": row.rating,
        "uncertainty": uncertainty,
        "details": {name: value for name, value in details.items() if value is not None},
    }
