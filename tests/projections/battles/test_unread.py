"""Replies without a verdict, by each program's rule."""

import pytest

from ledger.events.imports import BattlesImported, ImportedBattle
from projections.battles.unread import Unread, with_unread
from tests.support.builders.events import key

WON = ImportedBattle("m", "base", "model_a", 0.25, "q1", "llm-judge", "j1")
UNREAD = ImportedBattle("base", "m", "no verdict", None, "q1", "llm-judge", "j1")
OTHER_JUDGE = WON._replace(judge_model="j2")
OTHER_PROMPT = WON._replace(question_id="q2")
OTHER_PAIR = WON._replace(model_a="n")
VOTE = WON._replace(source="human", pref=None)
MUTE = VOTE._replace(winner="no verdict", question_id="q3")
ALL = [WON, UNREAD, OTHER_JUDGE, OTHER_PROMPT, OTHER_PAIR, VOTE, MUTE]


def imported(*battles: ImportedBattle) -> BattlesImported:
    """Return battles of a file."""
    return BattlesImported.of(
        battles, file_digest=key("file"), mapping=("arena-hard", 1), chunk=1, n_skipped=0
    )


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("drop", WON, UNREAD),
        ("tie", WON, UNREAD._replace(winner="tie")),
        ("drop-pair", WON._replace(winner="no verdict", pref=None), UNREAD),
    ],
)
def test_an_unread_reply_counts_by_the_rule_and_nothing_else_changes(
    rule: Unread, first: ImportedBattle, second: ImportedBattle
) -> None:
    """Another judge, prompt or pair stands for itself; what people did not say is no reply."""
    events = [imported(*ALL[:3]), imported(*ALL[3:])]  # a pair may go over two events

    found = [battle for event in with_unread(events, rule) for battle in event.battles()]

    assert found == [first, second, *ALL[2:]]
