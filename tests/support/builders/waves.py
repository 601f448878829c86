"""Tournaments that are judged in waves, and looks at them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from ledger.events.judging import DimensionLook, LookTaken, PairOfEntrants
from ledger.events.registration import (
    Entrant,
    Instructions,
    JudgeSettings,
    Prompt,
    Reference,
    Rubric,
    TournamentOpened,
)
from ledger.events.registry import Event
from projections.tournament.state import Tournament
from projections.tournament.waves import (
    entrant_reference,
    judge_reference,
    open_wave,
    prompts_so_far,
)
from tests.support.builders.events import entrant, opened, prompt, rubric
from tests.support.builders.worlds import everything

FOUR = [entrant(name) for name in ("zoe", "amy", "kim", "bob")]
Names: TypeAlias = tuple[str, str]  # of two entrants


def bank(n: int, n_samples: int = 1, sources: Sequence[str] = ("recall",)) -> list[Prompt]:
    """Return so many prompts, sources in turn, and behind them all further samples of them."""
    return [
        prompt(
            f"p{number}" + (f"#{sample + 1}" if sample else ""),
            text=f"Question {number}?",
            source=sources[number % len(sources)],
        )
        for sample in range(n_samples)
        for number in range(n)
    ]


def opening(
    prompts: Sequence[Prompt] | None = None,
    *,
    n_looks: int | None = 4,
    design: Mapping[str, object] | None = None,
    sections: Mapping[str, object] | None = None,
    entrants: Sequence[Entrant] = FOUR,
    rubrics: Sequence[Rubric] | None = None,
    judges: Sequence[JudgeSettings] | None = None,
    told: Instructions | None = None,
) -> tuple[Event, ...]:
    """Return the events that open a tournament of four entrants with looks."""
    first, *others = opened(
        prompts=prompts or bank(8),
        entrants=entrants,
        rubrics=rubrics or [rubric()],
        judges=judges,
        told=told,
    )
    assert isinstance(first, TournamentOpened)
    judging: dict[str, object] = {"looks": n_looks, **(design or {})}
    configured = {"judging": judging, "pilot": None, **(sections or {})}
    return replace(first, configuration=json.dumps(configured)), *others


def wave_of(state: Tournament) -> tuple[Reference, ...]:
    """Return the prompts of the open wave as they are registered."""
    wave = {*open_wave(state)}
    return (
        tuple(each for each in state.opening.prompts if each.label in wave) if state.opening else ()
    )


def look(
    state: Tournament,
    *,
    decided: Iterable[Names] = (),
    futile: Iterable[Names] = (),
    dimension: str = "factuality",
    widening: float = 1.04,
) -> LookTaken:
    """Return a look at the open wave, which stops some pairs."""
    references = {str(each.entrant_id): entrant_reference(each) for each in state.roster}
    (about,) = [each for each in state.dimensions if each.dimension == dimension]
    as_decided, as_futile = (
        tuple(PairOfEntrants(*(references[name] for name in pair)) for pair in pairs)
        for pairs in (decided, futile)
    )
    return LookTaken(
        number=len(state.looks) + 1,
        judge=judge_reference(state),
        n_looks=4,
        prompts=wave_of(state),
        dimensions=(
            DimensionLook(
                rubric=Reference(label=about.dimension, digest=about.digest),
                n_prompts=len(prompts_so_far(state, everything(state))),
                n_planned=len(state.bank),
                critical=3.0,
                widening=widening,
                decided=as_decided,
                futile=as_futile,
            ),
        ),
    )
