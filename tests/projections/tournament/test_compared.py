"""What became of comparisons, counted; the counts of pairings are tested with settlements."""

from collections import Counter
from collections.abc import Sequence

import pytest

from ledger.events.imports import CodedColumn, Winner
from projections.battles.imported import battles_of_set
from projections.tournament.compared import Account, ComparedBattle, account_from
from projections.tournament.settlement import account_of
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import known, opened, prompt


def battles(winners: Sequence[Winner]) -> tuple[ComparedBattle, ...]:
    """Return battles of x and y."""
    n = len(winners)
    event = imported_battles(("x",) * n, ("y",) * n, winners=CodedColumn.of(winners))
    return battles_of_set([event]).compared("arena")


def test_every_imported_battle_is_in_the_account() -> None:
    """Without a verdict is no tie; nothing is pending, and nothing inconsistent."""
    account = account_of(battles(["model_a", "model_b", "tie", "tie (bothbad)", "no verdict"]))

    assert account.sentence() == "5 battles = 2 decided + 2 tied + 1 without a verdict"
    assert account.fields()["failed"] == {"no verdict": 1}
    assert account.n_failed == 1


def test_nothing_compared_is_no_pair() -> None:
    """As before anything was imported or planned."""
    assert account_of([]).sentence() == "0 pairs = 0 decided + 0 tied + 0 inconsistent + 0 pending"


def test_a_battle_is_the_same_seen_from_either_side() -> None:
    """Only who is named first changes."""
    battle = ComparedBattle("arena", "p1", 0, "x", "y", "a", pref=0.25)

    assert battle.seen_from("x") is battle
    assert battle.seen_from("y") == ComparedBattle("arena", "p1", 0, "y", "x", "b", pref=0.75)
    assert battle.seen_from("y").seen_from("x") == battle
    assert battle._replace(status="tie", pref=None).seen_from("y").status == "tie"


@pytest.mark.parametrize(
    ("planned", "pending", "said"),
    [(1_125, 826, "299 of 1,125 pairs judged so far"), (9, 9, None), (9, 0, None)],
)
def test_what_is_under_way_says_how_far_it_is(planned: int, pending: int, said: str | None) -> None:
    """Numbers of a part are not those of the whole; identical responses have an outcome, too."""
    n_tied = (planned - pending) // 2
    n_decided = planned - pending - n_tied
    account = Account(planned, n_decided, n_tied, 0, (), pending, identical=n_tied)

    assert account.so_far == said
    assert account.sentence().endswith(f"{pending} pending" + (f" ({said})" if said else ""))


def test_a_battle_without_a_verdict_has_no_share() -> None:
    """Even where a file gives a preference."""
    battle = ComparedBattle("arena", "p1", 0, "x", "y", "no verdict", pref=0.25)

    assert battle.share is None


def test_it_is_said_how_pairs_are_inconsistent() -> None:
    """Identical responses are not among the judged; a published account has the sum alone."""
    ended = ["a", "tie", "identical", "identical", "opposite winners"]
    beside = ["a tie beside a win"] * 2

    account = account_from(Counter([*ended, *beside]), "pairs")
    unread = account_from(Counter(["a", "inconsistent"]), "pairs")
    empty = account_from({}, "pairs")

    assert account.sentence() == "7 pairs = 1 decided + 3 tied + 3 inconsistent + 0 pending"
    assert account.disagreement() == (
        "60% of the judged pairs are inconsistent (3 of 5: 1 with opposite winners, 2 with a tie"
        " beside a win)"
    )
    assert unread.disagreement() == "50% of the judged pairs are inconsistent (1 of 2)"
    assert empty.inconsistent_share == 0.0
    assert {"identical", "opposite", "beside"}.isdisjoint(account.fields())


def test_prompts_of_one_text_are_named_by_the_first() -> None:
    """By the bank's order."""
    prompts = [prompt("p2", text="Why?"), prompt("p1", text="Why?"), prompt("p3")]

    assert known(*opened(prompts=prompts)).same_texts == {"p2": "p2", "p1": "p2", "p3": "p3"}
