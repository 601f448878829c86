"""Hypothesis strategies: parameters, and histories of a tournament that could happen."""

from collections.abc import Sequence
from typing import Final, get_args

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ledger.events.judging import FailureReason, Verdict
from ledger.events.ratings import EloParameters
from ledger.events.registry import Event
from projections.tournament.matches import Match, planned_responses
from projections.tournament.state import Tournament
from projections.verdicts.policies import swap_consistent
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.events import entrant, known, opened, prompt, responses, verdict
from tests.support.builders.worlds import (
    COUNTERBALANCED,
    RUBRICS,
    everything,
    failure,
    matches_of,
    reconciled,
    unanswerable,
    with_judging,
)

_NAMES: Final = ("zoe", "amy", "kim", "Bob", "élan")
_VERDICTS: Final = st.sampled_from(get_args(Verdict))
_REASONS: Final = st.sampled_from(get_args(FailureReason))


def elo_parameters() -> SearchStrategy[EloParameters]:
    """Return parameters with few permutations."""
    return st.builds(
        EloParameters,
        k=st.floats(min_value=0.5, max_value=64),
        initial_rating=st.floats(min_value=-2000, max_value=2000),
        permutations=st.integers(min_value=1, max_value=6),
        seed=st.integers(min_value=0, max_value=2**32),
    )


@st.composite
def tournament_histories(draw: DrawFn) -> list[Event]:
    """Draw a tournament that went on for a while: some answers, some verdicts, some failures."""
    opening = draw(openings())
    answers = _answers(known(*opening), draw)
    matches = matches_of(known(*opening, *answers))
    judged = [event for match in matches for event in _judged(match, draw)]
    return [*opening, *answers, *judged, *_batched(matches, draw)]


@st.composite
def openings(draw: DrawFn) -> tuple[Event, ...]:
    """Draw an opening, also of pairs in one order; some prompts lack a gold answer."""
    n_entrants = draw(st.integers(min_value=2, max_value=3))
    golds = draw(st.lists(st.sampled_from(("aspirin", None)), min_size=1, max_size=2))
    events = opened(
        entrants=[entrant(name) for name in _NAMES[:n_entrants]],
        prompts=[prompt(f"p{n}", gold=gold) for n, gold in enumerate(golds)],
        rubrics=RUBRICS,
    )
    return with_judging(events, draw(st.sampled_from(("{}", COUNTERBALANCED))))


def _answers(tournament: Tournament, draw: DrawFn) -> list[Event]:
    events: list[Event] = []
    owed = zip(
        planned_responses(tournament, everything(tournament)), responses(tournament), strict=True
    )  # both go through prompts, then the roster
    for cell, response in owed:
        match draw(st.sampled_from(("answered", "answered", "answered", "failed", "owed"))):
            case "answered":
                events.append(response)
            case "failed":
                events.append(unanswerable(cell))
    return events


def _judged(match: Match, draw: DrawFn) -> list[Event]:
    forward, swapped = draw(st.none() | _VERDICTS), draw(st.none() | _VERDICTS)
    events = [*_asked(match.forward, forward, draw), *_asked(match.swapped, swapped, draw)]
    if forward and swapped and draw(st.booleans()):
        events.append(reconciled(match, swap_consistent(forward, swapped)))
    return events


def _batched(matches: Sequence[Match], draw: DrawFn) -> list[Event]:
    """Draw a batch, and how far it came."""
    keys = [query.query_key for each in matches for query in (each.forward, each.swapped)]
    if not keys:
        return []
    plan = planned_batch(*draw(st.lists(st.sampled_from(keys), max_size=3, unique=True)))
    fates: list[list[Event]] = [
        [],
        [plan],
        [plan, not_created(plan.batch_key)],
        [plan, sent(plan.batch_key)],
        [plan, sent(plan.batch_key), ended(plan.batch_key)],
    ]
    return draw(st.sampled_from(fates))


def _asked(question: JudgeQuery, said: Verdict | None, draw: DrawFn) -> list[Event]:
    reasons = draw(st.lists(_REASONS, max_size=2))
    failures = [failure(question, reason, attempt=n) for n, reason in enumerate(reasons, start=1)]
    return [*failures, *([] if said is None else [verdict(question.query_key, said)])]
