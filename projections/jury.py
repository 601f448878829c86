"""What a jury makes of every planned pairing: the outcomes of several judges become one."""

from collections.abc import Collection, Iterable, Sequence

from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, PromptId
from projections.reconcile import majority
from projections.rule import Rule
from projections.settlement import Settlement, Status, settle
from projections.tournament import Tournament


def settle_by_majority(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judges: Sequence[JudgeSettings],
    parser: str | None = None,
) -> tuple[Settlement, ...]:
    """Say of every planned pairing what most judges found, in the order of the match list.

    A judge counts as soon as it has an outcome, so a pairing may be decided while others are
    pending; it is pending while nothing is decided and some judge is. A judge that was asked
    nothing on the dimension (the pilot's, say) is not waited for, unless less than two were asked.

    Args:
        tournament: What is known.
        prompts: Which prompts count.
        judges: The jury, one at least; the first names the questions of each match.
        parser: Full name of what reads the replies again; None takes what is recorded.
    """
    by_judge = [settle(tournament, prompts, judge, Rule(parser=parser)) for judge in judges]
    awaited = _awaited(tournament, by_judge)
    return tuple(
        row[0]._replace(status=_verdict_of_jury(row, awaited[row[0].pairing.rubric.dimension]))
        for row in zip(*by_judge, strict=True)
    )


def _awaited(
    tournament: Tournament, by_judge: Sequence[Sequence[Settlement]]
) -> dict[Dimension, tuple[int, ...]]:
    """Return which judges, by their place, are waited for on each dimension."""
    asked = [_asked_on(tournament, settlements) for settlements in by_judge]
    awaited = {}
    for rubric in tournament.dimensions:
        places = tuple(place for place, on in enumerate(asked) if rubric.dimension in on)
        # one judge alone is no majority, so another is still to come
        awaited[rubric.dimension] = places if len(places) > 1 else tuple(range(len(asked)))
    return awaited


def _asked_on(tournament: Tournament, settlements: Iterable[Settlement]) -> frozenset[Dimension]:
    """Return the dimensions on which a judge was asked something, or is by a batch in flight."""
    asked = (tournament.attempts, tournament.in_flight, tournament.verdicts)
    return frozenset(
        pairing.rubric.dimension
        for pairing, match, *_ in settlements
        if match is not None
        for question in (match.forward, match.swapped)
        if any(question.query_key in keys for keys in asked)
    )


def _verdict_of_jury(row: Sequence[Settlement], awaited: Sequence[int]) -> Status:
    outcomes = [each.outcome for each in row if each.outcome is not None]
    found = majority(outcomes)
    if found == "inconsistent" and any(row[place].status == "pending" for place in awaited):
        return "pending"
    return found if outcomes else row[awaited[0]].status
