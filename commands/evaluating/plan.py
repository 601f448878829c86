"""Use case: evaluate entrants on what is missing, within a cap and with consent."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from commands.decisions.commands import OpenTournament
from commands.decisions.recorder import EvaluationRecorder, Recorder
from commands.errors import ConfigurationError
from commands.evaluating.evaluate import (
    Evaluated,
    PlannedEvaluation,
    evaluate_all,
    n_scored_otherwise,
    owed_requests,
    plan_evaluation,
)
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import evaluation_of
from commands.evaluating.samples import Inference
from commands.ports import Console
from commands.settings.schema import Settings
from commands.settings.sections import EvaluationOptions, EvaluationSection
from commands.spending.approval import approve_requests
from commands.spending.consent import SpendingOptions
from commands.spending.pricing import PriceBook
from ledger.events.registration import Entrant, EntrantRegistered
from projections.evaluations.state import Evaluations


class Planned(NamedTuple):
    """What can be evaluated, entrant by entrant, and why other combinations cannot."""

    evaluations: tuple[PlannedEvaluation, ...]
    refused: tuple[str, ...]


class _Chosen(NamedTuple):
    evaluation: Evaluation
    terms: EvaluationOptions


def plan_evaluations(
    settings: Settings,
    folder: Path,
    opening: OpenTournament,
    inference_of: Callable[[Entrant], Inference],
    *,
    entrant: str | None,
    evaluation: str | None,
) -> Planned:
    """Plan what the settings, or the options, ask for; no weights are read.

    Args:
        settings: The configuration.
        folder: What its relative paths start from.
        opening: Bank and entrants, as they are to be registered.
        inference_of: What puts an entrant to work.
        entrant: Only this one; None: all.
        evaluation: Only this one; None: all.

    Raises:
        ConfigurationError: An option names nothing, an evaluation cannot be made, or nothing that
            was asked for is possible.
    """
    entrants = _named(opening, entrant)
    sections = _sections(settings, evaluation)
    chosen = tuple(_made(sections, folder, opening))
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


def _named(opening: OpenTournament, entrant: str | None) -> tuple[Entrant, ...]:
    events = opening.registrations
    roster = tuple(each.entrant for each in events if isinstance(each, EntrantRegistered))
    named = tuple(each for each in roster if entrant in {None, each.entrant_id})
    if not named:
        known = ", ".join(each.entrant_id for each in roster)
        raise ConfigurationError([f"--entrant {entrant!r} is none of: {known}"])
    return named


def _sections(settings: Settings, evaluation: str | None) -> Sequence[EvaluationSection]:
    sections = settings.evaluations
    if not sections:
        fault = "there are no [[evaluations]]; add a table with an id and what it uses"
        raise ConfigurationError([fault])
    named = [section for section in sections if evaluation in {None, section.id}]
    if not named:
        known = ", ".join(section.id for section in sections)
        raise ConfigurationError([f"--evaluation {evaluation!r} is none of: {known}"])
    return named


def _made(
    sections: Sequence[EvaluationSection], folder: Path, opening: OpenTournament
) -> Iterator[_Chosen]:
    """Make all that can be made before saying what is wrong with the others."""
    faults: list[str] = []
    for section in sections:
        try:
            evaluation = evaluation_of(section, folder, opening.bank)
        except ConfigurationError as error:
            name = f"evaluation {section.id!r}: "
            faults += (f"{name}{fault.removeprefix(name)}" for fault in error.faults)
        else:
            yield _Chosen(evaluation, section.terms)
    if faults:
        raise ConfigurationError(faults)


class EvaluationDone(NamedTuple):
    """What one command observed, and how many samples cannot be scored at all."""

    evaluated: Evaluated
    n_unscorable: int


def evaluate_with_consent(
    recorder: Recorder,
    planned: Planned,
    book: PriceBook,
    spending: SpendingOptions,
    console: Console,
) -> EvaluationDone:
    """Observe every missing sample, after asking about what endpoint entrants cost.

    Raises:
        Refused: Nobody agreed, or the cap is too low; nothing was sent.
        LeftUnanswered: To some there came no answer, after all plans had their turn.
        EvaluationFault: An evaluation's own code fails.
    """
    for fault in planned.refused:
        console.tell(fault)
    evaluations = EvaluationRecorder(recorder.ledger, recorder.state.stream)
    for warning in mixed_scorings(evaluations.state, planned):
        console.tell(warning)
    owed = owed_requests(evaluations.state, planned.evaluations, limit=spending.limit)
    approve_requests(recorder, owed, book, spending, console)
    done = evaluate_all(
        evaluations, planned.evaluations, on_progress=console.on_progress, limit=spending.limit
    )
    return EvaluationDone(done, _n_unscorable(evaluations.state, planned))


def mixed_scorings(known: Evaluations, planned: Planned) -> Iterator[str]:
    """Say to which runs samples would be added that are scored otherwise than those on record."""
    for each in planned.evaluations:
        if n := n_scored_otherwise(known, each):
            yield (
                f"{each.plan.entrant.label} on {each.plan.evaluation}: {n} samples on record were"
                " scored otherwise; see `tourney project metrics --rescore`"
            )


def _n_unscorable(known: Evaluations, planned: Planned) -> int:
    """Count the samples that could not be scored; one that two entrants share is one."""
    runs = (known.run(each.plan) for each in planned.evaluations)
    return len({fate.natural_key for run in runs for fate in run.unscorable})
