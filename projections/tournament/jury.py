"""Outcomes of a jury: the majority of several judges on every planned pairing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, PromptId
from projections.tournament.bank import recorded_pilot
from projections.tournament.settlement import Settlement, Status, settle
from projections.tournament.state import PairNames, Tournament
from projections.verdicts.policies import Rule, majority

_QUORUM: Final = 2  # one judge alone is no majority

AskedPrompts: TypeAlias = Mapping[Dimension, AbstractSet[PromptId]]
"""The prompts that a judge was asked about, by dimension."""


def settle_by_majority(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judges: Sequence[JudgeSettings],
    parser: str | None = None,
) -> tuple[Settlement, ...]:
    """Settle every planned pairing by the majority of judges, in match order.

    A judge counts as soon as it has an outcome, so a pairing may be decided while others are
    pending; it is pending while nothing is decided and the jury waits for some judge. Where shares
    of the prompts leave fewer than two judges, no majority is planned.

    On each dimension the jury does not wait for a judge that was asked nothing, and waits on the
    pilot's prompts only for one that was asked about nothing else. For any other judge, queries
    that were not sent yet are still expected, as after an interrupted run, so the pairing stays
    pending. Where fewer than two judges are left, it waits for all.

    Args:
        tournament: The state.
        prompts: The prompts that count.
        judges: The jury, at least one; a match has the queries of the first.
        parser: Full name of the parser to read replies again with; None: verdicts as recorded.
    """
    by_judge = [settle(tournament, prompts, judge, Rule(parser=parser)) for judge in judges]
    asked = [_asked_prompts(tournament, settlements) for settlements in by_judge]
    rows: dict[PairNames, dict[int, Settlement]] = {}
    for place, settlements in enumerate(by_judge):
        for settlement in settlements:
            rows.setdefault(settlement.pairing.names, {})[place] = settlement
    pilot = recorded_pilot(tournament.bank, tournament.configuration)
    return tuple(
        _first(row)._replace(status=_jury_status(row, _awaited(row, asked, pilot)), said=())
        for row in rows.values()
        if len(row) >= min(_QUORUM, len(judges))
    )


def _first(row: Mapping[int, Settlement]) -> Settlement:
    return next(iter(row.values()))


def _asked_prompts(tournament: Tournament, settlements: Iterable[Settlement]) -> AskedPrompts:
    """Return the prompts that a judge was asked about, batches in flight included."""
    prompts: dict[Dimension, set[PromptId]] = {
        rubric.dimension: set() for rubric in tournament.dimensions
    }
    for pairing, match, *_ in settlements:
        keys = () if match is None else (match.forward_key, match.swapped_key)
        if any(map(tournament.was_asked, keys)):
            prompts[pairing.rubric.dimension].add(pairing.prompt.prompt_id)
    return prompts


def _awaited(
    row: Mapping[int, Settlement], asked: Sequence[AskedPrompts], pilot: AbstractSet[PromptId]
) -> tuple[int, ...]:
    """Return the indices of the judges that a pairing waits for, of those that are asked on it."""
    dimension, prompt_id = _first(row).dimension, _first(row).prompt_id
    places = tuple(
        place
        for place in row
        if (about := asked[place][dimension]) and (prompt_id in pilot or not about <= pilot)
    )
    # one judge alone is no majority, so another is still to come
    return places if len(places) >= _QUORUM else tuple(row)


def _jury_status(row: Mapping[int, Settlement], awaited: Sequence[int]) -> Status:
    outcomes = [settlement.outcome for settlement in row.values() if settlement.outcome is not None]
    outcome = majority(outcomes)
    if outcome == "inconsistent" and any(row[place].status == "pending" for place in awaited):
        return "pending"
    return outcome if outcomes else row[awaited[0]].status
