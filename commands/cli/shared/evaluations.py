"""Evaluating from the command line: which entrants, on which evaluations."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from commands.cli.shared.workspace import Workshop
from commands.errors import ConfigurationError
from commands.evaluating.evaluate import PlannedEvaluation, n_scored_otherwise, plan_evaluation
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import evaluation_of
from commands.evaluating.samples import Inference
from commands.evaluating.user_code import blaming
from commands.settings.inputs import read_bank
from commands.settings.reader import read_settings
from commands.settings.sections import EvaluationSection, Terms
from ledger.events.evaluations import SampleObserved
from ledger.events.registration import Entrant, EntrantRegistered
from projections.evaluations.state import Evaluations, Fate, Run


class Planned(NamedTuple):
    """What can be evaluated, entrant by entrant, and why other combinations cannot."""

    evaluations: tuple[PlannedEvaluation, ...]
    refused: tuple[str, ...]


class _Chosen(NamedTuple):
    evaluation: Evaluation
    terms: Terms


def plan_evaluations(
    place: Workshop,
    inference_of: Callable[[Entrant], Inference],
    entrant: str | None,
    evaluation: str | None,
) -> Planned:
    """Plan what the settings, or the options, ask for; no weights are read.

    Raises:
        ConfigurationError: An option names nothing, an evaluation cannot be made, or nothing that
            was asked for is possible.
    """
    entrants = _named(place, entrant)
    chosen = _chosen(place, evaluation)
    planned: list[PlannedEvaluation] = []
    refused: list[str] = []
    for who in entrants:
        inference = inference_of(who)
        for each in chosen:
            try:
                planned.append(plan_evaluation(each.evaluation, inference, each.terms))
            except ConfigurationError as error:
                refused += error.faults
    if not planned:
        raise ConfigurationError(refused)
    return Planned(tuple(planned), tuple(refused))


def mixed_scorings(known: Evaluations, planned: Planned) -> Iterator[str]:
    """Say to which runs samples would be added that are scored otherwise than those on record.

    Raises:
        EvaluationFault: An evaluation's own code fails.
    """
    for each in planned.evaluations:
        if n := n_scored_otherwise(known, each):
            yield (
                f"{each.plan.entrant.label} on {each.plan.evaluation}: {n} samples on record were"
                " scored otherwise; see `tourney project metrics --rescore`"
            )


def n_given_up(known: Evaluations, planned: Planned) -> int:
    """Count the samples that could not be scored; one that two entrants share is one."""
    runs = (known.run(each.plan) for each in planned.evaluations)
    return len({fate.natural_key for run in runs for fate in run.unscorable})


def _named(place: Workshop, entrant: str | None) -> tuple[Entrant, ...]:
    events = place.opening.registrations
    roster = tuple(each.entrant for each in events if isinstance(each, EntrantRegistered))
    named = tuple(each for each in roster if entrant in {None, each.entrant_id})
    if not named:
        known = ", ".join(each.entrant_id for each in roster)
        raise ConfigurationError([f"--entrant {entrant!r} is none of: {known}"])
    return named


def _chosen(place: Workshop, evaluation: str | None) -> tuple[_Chosen, ...]:
    sections = place.settings.evaluations
    if not sections:
        fault = "there are no [[evaluations]]; add a table with an id and what it uses"
        raise ConfigurationError([fault])
    named = [section for section in sections if evaluation in {None, section.id}]
    if not named:
        known = ", ".join(section.id for section in sections)
        raise ConfigurationError([f"--evaluation {evaluation!r} is none of: {known}"])
    return tuple(_made(place, named))


def _made(place: Workshop, sections: Sequence[EvaluationSection]) -> Iterator[_Chosen]:
    """Make all that can be made before saying what is wrong with the others."""
    faults: list[str] = []
    for section in sections:
        try:
            evaluation = evaluation_of(section, place.folder, place.opening.bank)
        except ConfigurationError as error:
            name = f"evaluation {section.id!r}: "
            faults += (f"{name}{fault.removeprefix(name)}" for fault in error.faults)
        else:
            yield _Chosen(evaluation, section.terms)
    if faults:
        raise ConfigurationError(faults)


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
