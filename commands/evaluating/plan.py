"""Use case of `tourney apply evaluate`: plan the configured evaluations and run what is missing.

Endpoint entrants cost money, so this asks for consent and keeps to the cap before it runs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from commands.decisions.commands import OpenTournament
from commands.decisions.recorder import EvaluationRecorder, Recorder
from commands.errors import ConfigurationError
from commands.evaluating import evaluate
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import (
    SHIPPED,
    STANDALONE,
    EvaluationSources,
    Readers,
    table_evaluations,
)
from commands.evaluating.samples import Inference
from commands.ports import Console
from commands.settings.schema import Settings
from commands.settings.sections import EvaluationOptions, EvaluationSection
from commands.spending import consent, pricing
from commands.spending.budget import SpendingOptions
from commands.spending.endpoints import LedgerBilling, close_abandoned
from ledger.events.evaluations import EvaluationPlanned, ScoredBy, scoring_digest
from ledger.events.registration import (
    Entrant,
    EntrantRegistered,
    JudgeRegistered,
    RubricRegistered,
)
from ledger.identity import JudgeId
from projections.evaluations.state import Evaluations
from projections.tournament.bank import first_samples

Thing = TypeVar("Thing")


class EvaluationPlans(NamedTuple):
    """The plan of each possible entrant and evaluation, and why other combinations cannot run."""

    evaluations: tuple[evaluate.PlannedEvaluation, ...]
    refused: tuple[str, ...]

    @property
    def plans(self) -> tuple[EvaluationPlanned, ...]:
        """The plans as they are to be recorded."""
        return tuple(evaluation.plan for evaluation in self.evaluations)


def plan_evaluations(
    settings: Settings,
    folder: Path,
    opening: OpenTournament,
    inference_of: Callable[[Entrant], Inference],
    readers: Readers,
    *,
    entrants: Sequence[str] = (),
    evaluations: Sequence[str] = (),
) -> EvaluationPlans:
    """Plan the configured evaluations of each entrant; no weights are loaded.

    With entrants or evaluations named: only theirs. Relative paths start from the folder.

    Raises:
        ConfigurationError: An option names no entrant or evaluation, an evaluation cannot be made,
            or no entrant supports any of the evaluations.
    """
    events = (
        registration
        for registration in opening.registrations
        if isinstance(registration, EntrantRegistered)
    )
    roster: dict[str, Entrant] = {event.entrant.entrant_id: event.entrant for event in events}
    chosen_entrants = _chosen("entrant", entrants, roster, "on the roster")
    bank = first_samples(opening.bank, settings.generation.samples)
    sources = EvaluationSources(folder, bank, readers)
    chosen = tuple(_make_evaluations(settings.evaluations, evaluations, sources, opening))
    planned: list[evaluate.PlannedEvaluation] = []
    refused: list[str] = []
    for who in chosen_entrants:
        inference = inference_of(who)
        for made, options, scored_by in chosen:
            try:
                planned.append(evaluate.plan_evaluation(made, inference, options, scored_by))
            except ConfigurationError as error:
                refused += error.faults
    if not planned:
        raise ConfigurationError(refused)
    return EvaluationPlans(tuple(planned), tuple(refused))


def plan_alone(
    uses: Sequence[str],
    inference: Inference,
    readers: Readers,
    options: EvaluationOptions,
) -> tuple[evaluate.PlannedEvaluation, ...]:
    """Plan evaluations of one entrant that belongs to no tournament, by what `uses` can say.

    Relative paths start where the process runs.

    Raises:
        ConfigurationError: An evaluation cannot be made, two have one name, or the entrant does
            not support one.
    """
    if faults := [_needs_table(each) for each in uses if each in {"", *SHIPPED} - {*STANDALONE}]:
        raise ConfigurationError(faults)
    sources = EvaluationSources(Path(), (), readers)
    tables = [
        EvaluationSection(id=_id_of(each), uses=each, **options.model_dump()) for each in uses
    ]
    made = [
        evaluation
        for table in tables
        for evaluation in table_evaluations(table, sources, is_named=False)
    ]
    names = [evaluation.id for evaluation in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError([f"several evaluations are called {', '.join(twice)}"])
    return tuple(evaluate.plan_evaluation(evaluation, inference, options) for evaluation in made)


def _needs_table(uses: str) -> str:
    there_are = (
        f"{', '.join(STANDALONE)}, file.py:Class, module:Class, and tasks of lm-evaluation-harness"
        " by name or file (.yaml)"
    )
    if not uses:
        return f"--uses is empty; there are {there_are}"
    return (
        f"--uses {uses}: it needs parameters or prompts, which an [[evaluations]] table names, for"
        f" `tourney apply evaluate`; without a tournament there are {there_are}"
    )


def _id_of(uses: str) -> str:
    """Return the id that a table would have: the name of the file or module."""
    place, _, name = uses.rpartition(":")
    is_file = place or Path(name).suffix in {".yaml", ".yml"}
    return re.sub(r"[^\w.-]+", "-", Path(place or name).stem if is_file else name) or "-"


def _chosen(
    option: str, names: Sequence[str], things: Mapping[str, Thing], where: str
) -> tuple[Thing, ...]:
    """Return what an option names; without a name everything."""
    there_are = f"is not {where}; choose one of: {', '.join(things)}"
    if faults := [f"--{option} {name!r} {there_are}" for name in names if name not in things]:
        raise ConfigurationError(faults)
    return tuple(thing for key, thing in things.items() if not names or key in names)


def _make_evaluations(
    sections: Sequence[EvaluationSection],
    names: Sequence[str],
    sources: EvaluationSources,
    opening: OpenTournament,
) -> Iterator[tuple[Evaluation, EvaluationOptions, ScoredBy | None]]:
    """Make the evaluations named, or all; raise for all faulty ones together at the end."""
    if not sections:
        fault = "no [[evaluations]] are configured; add a table with `id` and `uses`"
        raise ConfigurationError([fault])
    faults: list[str] = []
    by_id = {section.id: section for section in sections}
    for section in _chosen("evaluation", names, by_id, "configured"):
        try:
            scored_by = _scored_by(section, opening)
            made = table_evaluations(section, sources)
        except ConfigurationError as error:
            prefix = f"evaluation {section.id!r}: "
            faults += (f"{prefix}{fault.removeprefix(prefix)}" for fault in error.faults)
        else:
            yield from ((evaluation, section.options, scored_by) for evaluation in made)
    if faults:
        raise ConfigurationError(faults)


def _scored_by(section: EvaluationSection, opening: OpenTournament) -> ScoredBy | None:
    """Return the judge and the rubric that a table names, if it does.

    Raises:
        ConfigurationError: The judge is not on the panel.
    """
    if section.rubric is None:
        return None
    registered = opening.registrations
    panel = [each for each in registered if isinstance(each, JudgeRegistered)]
    (rubric,) = (
        each
        for each in registered
        if isinstance(each, RubricRegistered)
        and each.rubric.scale
        and each.rubric.dimension == section.id
    )
    judges = {each.judge.judge_id: each for each in panel}
    judge = judges.get(JudgeId(section.judge)) if section.judge else panel[0]
    if judge is None:
        known = ", ".join(judges)
        fault = f"judge {section.judge!r} is not on the panel; choose one of: {known}"
        raise ConfigurationError([f"evaluation {section.id!r}: {fault}"])
    scoring = scoring_digest(judge.judge.digest, rubric.rubric.digest)
    return ScoredBy(judge=judge.reference, rubric=rubric.reference, scoring=scoring)


def evaluate_with_consent(
    recorder: Recorder,
    planned: EvaluationPlans,
    book: pricing.PriceBook,
    spending: SpendingOptions,
    console: Console,
) -> tuple[evaluate.EvaluationCounts, int]:
    """Observe every missing sample, after asking about what endpoint entrants cost.

    With the counts comes how many samples are unscorable in all.

    Raises:
        Refused: Spending was not confirmed, or the cap is too low or reached; answers are recorded.
        LeftUnanswered: Some requests got no answer; raised after all plans had their turn.
        EvaluationFault: An evaluation's own code fails.
    """
    for fault in planned.refused:
        console.tell(fault)
    close_abandoned(recorder)
    evaluations = EvaluationRecorder(recorder.ledger, recorder.state.stream)
    for warning in mixed_scorings(evaluations.state, planned):
        console.tell(warning)
    requests = evaluate.missing_requests(
        evaluations.state, planned.evaluations, limit=spending.limit
    )
    consent.approve_requests(recorder, requests, book, spending, console)
    billing = LedgerBilling(recorder, book.table, spending.max_usd, console.tell)
    try:
        done = evaluate.evaluate_all(
            evaluations,
            [evaluation.billed_by(billing) for evaluation in planned.evaluations],
            on_progress=console.on_progress,
            limit=spending.limit,
        )
    finally:
        recorder.record()  # what was paid for an answer that no evaluation could score
    runs = (evaluations.state.run(evaluation.plan) for evaluation in planned.evaluations)
    unscorable = {fate.natural_key for run in runs for fate in run.unscorable}  # some are shared
    return done, len(unscorable)


def mixed_scorings(known: Evaluations, planned: EvaluationPlans) -> Iterator[str]:
    """Warn of runs whose recorded samples the present code would score differently."""
    for evaluation in planned.evaluations:
        if n := evaluate.n_rescored_differently(known, evaluation):
            yield (
                f"{evaluation.plan.entrant.label} on {evaluation.plan.evaluation}: {n} recorded"
                " samples were scored by other code; they are scored again when all samples are"
                " there"
            )
