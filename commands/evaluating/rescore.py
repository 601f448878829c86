"""Score recorded samples again with the present code of the evaluations; no entrant runs."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation, rescored
from commands.evaluating.registry import EvaluationSources, Readers, table_evaluations
from commands.importing.bank import bank_named
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from ledger.identity import StreamId
from projections.evaluations.state import EvaluationRun


def rescore(
    runs: Sequence[EvaluationRun], config: Path, readers: Readers
) -> tuple[EvaluationRun, ...]:
    """Return runs with their samples scored again, but for those of lm-evaluation-harness.

    Raises:
        ConfigurationError: The settings file is missing, or lacks an evaluation of a run.
        EvaluationFault: An evaluation's own code fails.
    """
    if not config.exists():
        alone = "weights evaluated by themselves are scored again by the same `tourney evaluate`"
        raise ConfigurationError([f"--rescore needs {config}, with its [[evaluations]]; {alone}"])
    needed = {run.plan.evaluation for run in runs if not run.plan.task}
    known = _configured(needed, read_settings(config, os.environ), config.parent, readers)
    if lacking := needed - known.keys():
        names = ", ".join(sorted(lacking))
        fault = f"--rescore: {config} has no [[evaluations]] with id {names}"
        raise ConfigurationError([f"{fault}; add them, or choose others with --evaluation"])
    return tuple(
        run if run.plan.task else _rescored_run(run, known[run.plan.evaluation]) for run in runs
    )


def rescore_changed(
    runs: Sequence[EvaluationRun], tournament: StreamId, config: Path, readers: Readers
) -> Iterator[EvaluationRun]:
    """Yield runs, those scored again whose evaluation's code changed since.

    A run stays as it was recorded if the settings file is not there, is another tournament's, or
    has no such evaluation.

    Raises:
        ConfigurationError: The settings file is wrong.
        EvaluationFault: An evaluation's own code fails.
    """
    known: Mapping[str, Evaluation] = {}
    scored = {run.plan.evaluation for run in runs if run.plan.scorer and not run.plan.task}
    if scored and config.exists():
        settings = read_settings(config, os.environ)
        is_own = settings.tournament.id == tournament
        known = _configured(scored, settings, config.parent, readers) if is_own else {}
    for run in runs:
        evaluation = known.get(run.plan.evaluation)
        is_changed = evaluation is not None and evaluation.scorer != run.plan.scorer
        is_ours = is_changed and not run.plan.task
        yield _rescored_run(run, evaluation) if evaluation and is_ours else run


def _configured(
    names: Collection[str], settings: Settings, folder: Path, readers: Readers
) -> Mapping[str, Evaluation]:
    """Return the evaluations of some names that the settings have, and their parts."""
    sections = [
        section
        for section in settings.evaluations
        if any(name == section.id or name.startswith(f"{section.id}.") for name in names)
    ]
    named = settings.prompts.bank
    bank = bank_named(named, folder, readers.open_dataset) if sections else ()
    sources = EvaluationSources(folder, bank, readers)
    made = (
        evaluation for section in sections for evaluation in table_evaluations(section, sources)
    )
    return {evaluation.id: evaluation for evaluation in made}


def _rescored_run(run: EvaluationRun, evaluation: Evaluation) -> EvaluationRun:
    again = rescored(evaluation, run.observed)
    return run.scored_as(sample.scored for sample in again if sample.scored)
