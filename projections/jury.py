"""What a jury makes of every planned pairing: the outcomes of several judges become one."""

from collections.abc import Collection, Sequence

from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
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
    pending; it is pending while nothing is decided and some judge is.

    Args:
        tournament: What is known.
        prompts: Which prompts count.
        judges: The jury, one at least; the first names the questions of each match.
        parser: Full name of what reads the replies again; None takes what is recorded.
    """
    by_judge = [settle(tournament, prompts, judge, Rule(parser=parser)) for judge in judges]
    return tuple(
        row[0]._replace(status=_verdict_of_jury(row)) for row in zip(*by_judge, strict=True)
    )


def _verdict_of_jury(row: Sequence[Settlement]) -> Status:
    outcomes = [each.outcome for each in row if each.outcome is not None]
    found = majority(outcomes)
    if found == "inconsistent" and any(each.status == "pending" for each in row):
        return "pending"
    return found if outcomes else row[0].status
