"""Score recorded samples again, by the evaluations as they are now; nothing is asked."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import evaluation_of
from commands.evaluating.user_code import blaming
from commands.settings.inputs import read_bank
from commands.settings.reader import read_settings
from ledger.events.evaluations import SampleObserved
from projections.evaluations.state import EvaluationRun, SampleFact


def rescored(runs: Sequence[EvaluationRun], config: Path) -> tuple[EvaluationRun, ...]:
    """Return runs as the evaluations that the settings name would score them now.

    Raises:
        ConfigurationError: The settings are missing, or lack an evaluation of a run.
        EvaluationFault: An evaluation's own code fails.
    """
    settings = read_settings(config, os.environ)
    bank = read_bank(config.parent / settings.prompts.bank)
    wanted = {run.plan.evaluation for run in runs}
    known = {
        section.id: evaluation_of(section, config.parent, bank)
        for section in settings.evaluations
        if section.id in wanted
    }
    if lacking := wanted - known.keys():
        names = ", ".join(sorted(lacking))
        fault = f"--rescore: {config} has no [[evaluations]] with id {names}; name another"
        raise ConfigurationError([f"{fault} by --evaluation"])
    return tuple(_rescored(run, known[run.plan.evaluation]) for run in runs)


def _rescored(run: EvaluationRun, evaluation: Evaluation) -> EvaluationRun:
    fates = tuple((key, _again(fate, evaluation)) for key, fate in run.fates)
    return replace(run, fates=fates)


def _again(fate: SampleFact | None, evaluation: Evaluation) -> SampleFact | None:
    if not isinstance(fate, SampleObserved):
        return fate
    with blaming(evaluation.name, f"scoring {fate.label}"):
        observation = evaluation.rescored(fate.observation)
    return msgspec.structs.replace(fate, observation=observation)
