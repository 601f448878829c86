"""Scoring what was recorded by the evaluations as they are now: no weights are read."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from commands.bank import read_bank
from commands.errors import ConfigurationError
from commands.evaluations.evaluation import Evaluation
from commands.evaluations.faults import blaming
from commands.evaluations.registry import evaluation_of
from commands.settings_file import read_settings
from ledger.events.evaluations import SampleObserved
from projections.evaluations.state import Fate, Run


def rescored(runs: Sequence[Run], config: Path) -> tuple[Run, ...]:
    """Return runs as they would be scored now, by the evaluations that settings name.

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


def _rescored(run: Run, evaluation: Evaluation) -> Run:
    fates = tuple((key, _again(fate, evaluation)) for key, fate in run.fates)
    return replace(run, fates=fates)


def _again(fate: Fate | None, evaluation: Evaluation) -> Fate | None:
    if not isinstance(fate, SampleObserved):
        return fate
    with blaming(evaluation.name, f"scoring {fate.label}"):
        observation = evaluation.rescored(fate.observation)
    return msgspec.structs.replace(fate, observation=observation)
