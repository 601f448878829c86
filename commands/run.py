"""Use case: a whole tournament, from registering to ratings; each step does what is still owed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

from commands.command import OpenTournament
from commands.errors import ConfigurationError
from commands.generate import Generated
from commands.judge import Judged
from commands.publish import Run, publish
from commands.recorder import Recorder
from commands.settings import Settings
from ledger.events.ratings import Mode, Terms
from ledger.events.registration import JudgeSettings, Prompt
from ledger.identity import PromptId
from projections.tournament.matches import pilot_prompts, proportional_strata
from projections.tournament.progress import AskingRules
from projections.verdicts.policies import DEFAULT_POLICY

Generating: TypeAlias = Callable[[Sequence[PromptId]], Generated]
"""Has prompts answered that are not, with whatever consent that takes."""

Judging: TypeAlias = Callable[[Sequence[PromptId]], Judged]
"""Asks a judge about prompts, with whatever consent that takes."""


@dataclass(frozen=True)
class Plan:
    """What a run is over, and where its artifacts go."""

    settings: Settings
    opening: OpenTournament
    mode: Mode
    runs: Path


class RunSummary(NamedTuple):
    """What a run did and what came of it."""

    generated: Generated
    judged: Judged
    run: Run


def run_tournament(
    recorder: Recorder,
    plan: Plan,
    *,
    generating: Generating,
    judge: JudgeSettings,
    judging: Judging,
    now: datetime,
) -> RunSummary:
    """Register, generate, judge, reconcile, rate and publish; what is there is not done again."""
    settings = plan.settings
    prompts = selected_prompts(plan.opening.bank, settings, plan.mode)
    recorder.record(plan.opening)
    generated = generating(prompts)
    judged = judging(prompts)
    terms = Terms(
        mode=plan.mode,
        judge=judge.judge_id,
        policy=DEFAULT_POLICY,
        elo=settings.elo.parameters,
        entrants=tuple(entrant.entrant_id for entrant in recorder.state.roster),
        prompts=prompts,
        bradley_terry=settings.bradley_terry.parameters,
    )
    return RunSummary(generated, judged, publish(recorder, terms, runs=plan.runs, now=now))


def asking_rules(settings: Settings) -> AskingRules:
    """Return what the settings say of asking."""
    return AskingRules(settings.judge.retries, skip_identical=settings.judge.skip_identical)


def selected_prompts(
    bank: Sequence[Prompt], settings: Settings, mode: Mode
) -> tuple[PromptId, ...]:
    """Return the prompts of a mode, in bank order: the whole bank, or the pilot's subset.

    Raises:
        ConfigurationError: The pilot asks for more than the bank holds.
    """
    if mode == "headline":
        return tuple(prompt.prompt_id for prompt in bank)
    pilot = settings.pilot
    strata = pilot.strata or proportional_strata(bank, pilot.size)
    try:
        return pilot_prompts(bank, strata, seed=pilot.seed)
    except ValueError as error:
        raise ConfigurationError([str(error)]) from error
