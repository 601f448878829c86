"""Whose verdicts a table counts, said beside it."""

from collections.abc import Sequence

from ledger.events.registration import JudgeSettings


def judged_by(judges: Sequence[JudgeSettings]) -> str:
    """Name the judge, or those whose majority counts."""
    names = ", ".join(each.judge_id for each in judges)
    return f"Judge: {names}" if len(judges) == 1 else f"Judges, by majority: {names}"
