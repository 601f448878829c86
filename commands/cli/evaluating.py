"""Evaluating from the command line: which entrants, on which evaluations."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from commands.cli.workshop import Workshop
from commands.errors import ConfigurationError
from commands.evaluate import PlannedEvaluation, n_scored_otherwise, plan_evaluation
from commands.evaluations.evaluation import Evaluation
from commands.evaluations.inference import Inference
from commands.evaluations.registry import evaluation_of
from commands.evaluations.section import EvaluationSection
from commands.evaluations.terms import Terms
from ledger.events.registration import Entrant, EntrantRegistered
from projections.evaluations.state import Evaluations


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
