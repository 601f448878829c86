"""The battles that a report shows."""

import pytest

from commands.report.battles import (
    ChosenBattles,
    WhichBattles,
    battles_of,
)
from commands.report.text import Piece
from ledger.events.registry import Event
from tests.support.builders.events import known, opened, responses
from tests.support.builders.reports import subject
from tests.support.builders.worlds import (
    Fate,
    become,
    cup,
    history,
    matches_of,
)


def battles(*events: Event, which: WhichBattles = "all") -> ChosenBattles:
    """Return the battles of a report on events."""
    return battles_of(subject(*events), which)


def test_a_battle_has_both_responses_and_what_was_said_in_both_orders() -> None:
    """Whoever doubts an outcome reads what the judge read."""
    (found,) = battles(*history(opened(), "b")).shown

    assert (found.dimension, found.prompt_id) == ("factuality", "p1")
    assert [turn.text for turn in found.prompt.turns] == ["Question p1?"]
    assert (found.gold, found.says, found.is_disputed) == ("aspirin", "tuned won", False)
    assert found.a.text.turns[0].pieces == (Piece("base ", True), Piece("on p1", False))
    assert found.b.text.turns[0].pieces == (Piece("tuned ", True), Piece("on p1", False))
    assert [(reply.order, reply.first, reply.verdict) for reply in found.replies] == [
        ("forward", "base", "B, tuned"),
        ("swapped", "tuned", "A, tuned"),
    ]


@pytest.mark.parametrize(
    ("fate", "says", "is_disputed"),
    [
        ("a", "base won", False),
        ("tie", "tie", False),
        ("inconsistent", "inconsistent: opposite winners", True),
    ],
)
def test_an_outcome_is_said_in_words(fate: Fate, says: str, is_disputed: bool) -> None:
    """Colours are not for everybody."""
    tournament = history(opened())
    (match,) = matches_of(known(*tournament))
    (found,) = battles(*tournament, *become(match, fate)).shown

    assert (found.says, found.is_disputed) == (says, is_disputed)


def test_what_was_not_judged_is_no_battle() -> None:
    """A pair without an outcome has nothing to show yet."""
    assert battles(*history(cup(), "refused")).shown == ()


def test_a_sample_has_some_of_every_outcome_of_every_pair() -> None:
    """The first so many would be of one pair, and say nothing of the others."""
    n_prompts = 40
    fates: list[Fate] = [fate for _ in range(n_prompts - 1) for fate in ("a", "tie", "b")]
    events = history(cup(n_prompts), *fates, "inconsistent", "b", "a")

    found = battles(*events, which="sample")

    assert found.n_all == 3 * n_prompts
    assert len(found.shown) == 40
    kinds = {(each.a.entrant, each.b.entrant, each.outcome) for each in found.shown}
    assert kinds == {
        ("zoe", "amy", "a"),
        ("zoe", "amy", "inconsistent"),
        ("zoe", "kim", "tie"),
        ("zoe", "kim", "b"),
        ("amy", "kim", "b"),
        ("amy", "kim", "a"),
    }
    assert battles(*events, which="sample") == found
    assert battles(*events, which="none").n_all == 3 * n_prompts


def test_identical_responses_have_no_replies() -> None:
    """They tie without being asked."""
    opening = opened()
    texts = {("base", "p1"): "same", ("tuned", "p1"): "same"}
    answered = (*opening, *responses(known(*opening), texts))
    (match,) = matches_of(known(*answered))
    outcome = become(match, "tie")[-1]

    (found,) = battles(*answered, outcome).shown

    assert found.replies == ()
    assert found.says == "tie: identical responses"
    assert found.a.text.turns[0].pieces == (Piece("same", False),)
