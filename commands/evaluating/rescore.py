"""Score recorded samples again with the present code of the evaluations; no entrant runs."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation, rescored
from commands.evaluating.registry import evaluation_of
from commands.settings.inputs import read_bank
from commands.settings.reader import read_settings
from ledger.events.evaluations import SampleObserved
from projections.evaluations.state import EvaluationRun


def rescore(runs: Sequence[EvaluationRun], config: Path) -> tuple[EvaluationRun, ...]:
    """Return runs with their samples scored again.

    Raises:
        ConfigurationError: The settings file is missing, or lacks an evaluation of a run.
        EvaluationFault: An evaluation's own code fails.
    """
    settings = read_settings(config, os.environ)
    bank = read_bank(config.parent / settings.prompts.bank)
    needed = {run.plan.evaluation for run in runs}
    known = {
        section.id: evaluation_of(section, config.parent, bank)
        for section in settings.evaluations
        if section.id in needed
    }
    if lacking := needed - known.keys():
        names = ", ".join(sorted(lacking))
        fault = f"--rescore: {config} has no [[evaluations]] with id {names}"
        raise ConfigurationError([f"{fault}; add them, or choose others with --evaluation"])
    return tuple(_rescored_run(run, known[run.plan.evaluation]) for run in runs)


def _rescored_run(run: EvaluationRun, evaluation: Evaluation) -> EvaluationRun:
    fates = (
        (key, rescored(evaluation, fate) if isinstance(fate, SampleObserved) else fate)
        for key, fate in run.fates
    )
    return replace(run, fates=tuple(fates))
