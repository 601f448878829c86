"""A judge that is asked on a share of the prompts: which, and what becomes of the others."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registration import JudgeSettings, TournamentOpened
from ledger.events.registry import Event
from ledger.identity import Dimension, PromptId, digest_of
from projections.tournament.bank import (
    asked_prompts,
    outside_share,
    share_of,
    stronger_judges,
    without_shares,
)
from projections.tournament.jury import settle_by_majority
from projections.tournament.matches import queries_to
from projections.tournament.remaining import ENDLESS_RETRIES, open_queries
from projections.tournament.settlement import accounts_of, settle
from projections.tournament.state import Tournament
from tests.support.builders.events import judge, known, opened, prompt
from tests.support.builders.worlds import answered, everything

CHEAP, STRONG = judge("cheap", model="a"), judge("strong", model="b")


def cascade(
    share: float | None,
    texts: Sequence[str],
    *,
    seed: int = 0,
    judges: Sequence[JudgeSettings] = (CHEAP, STRONG),
) -> tuple[Event, ...]:
    """Open a tournament of two entrants whose strong judge is asked on a share of the prompts."""
    prompts = [prompt(f"p{n}", text=text) for n, text in enumerate(texts)]
    opening, *registered = opened(prompts=prompts, judges=judges)
    assert isinstance(opening, TournamentOpened)
    configuration = json.dumps({"jury": [{"id": "strong", "share": share}, {"id": "third"}]})
    opening = replace(opening, configuration=configuration, generation_seed=seed)
    return (opening, *registered)


def questions(n: int) -> list[str]:
    """Return so many texts of prompts."""
    return [f"Question {number}?" for number in range(n)]


def drawn(tournament: Tournament) -> set[PromptId]:
    """Return the prompts that the strong judge is asked on."""
    return {*asked_prompts(tournament, everything(tournament), STRONG)}


def drawn_of(share: float, texts: Sequence[str], *, seed: int = 0) -> set[PromptId]:
    """Return the prompts that it is asked on by a share."""
    return drawn(known(*cascade(share, texts, seed=seed)))


@given(
    shares=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=2),
    n=st.integers(1, 20),
    seed=st.integers(0, 9),
)
def test_a_larger_share_asks_all_that_a_smaller_one_does(
    shares: Sequence[float], n: int, seed: int
) -> None:
    """And a further prompt changes nothing on earlier ones: only the difference is owed."""
    texts, (small, large) = questions(n), sorted(shares)
    before = drawn_of(small, texts, seed=seed)

    assert before <= drawn_of(large, texts, seed=seed)
    assert before == drawn_of(small, questions(n + 1), seed=seed) - {PromptId(f"p{n}")}


def test_about_the_share_is_drawn_and_stays_as_it_is() -> None:
    """Other prompts would be owed anew in every tournament that has a share."""
    texts = questions(300)
    found = drawn_of(0.3, texts)

    assert 70 < len(found) < 110
    assert digest_of(sorted(found))[:16] == "74eb9c85d61e37aa"
    assert len(found & drawn_of(0.3, texts, seed=1)) < 45


def test_prompts_of_one_text_are_drawn_together() -> None:
    """They are one cluster."""
    found = drawn_of(0.5, [text for text in questions(20) for _ in range(2)])

    assert 0 < len(found) < 40
    assert {f"p{int(name[1:]) ^ 1}" for name in found} == found


def test_what_is_outside_the_share_is_not_planned() -> None:
    """Neither an account nor a plan of the strong judge counts it; the cheap one has all."""
    tournament = known(*answered(cascade(0.4, questions(20))))
    bank, n, on = everything(tournament), len(drawn(tournament)), Dimension("factuality")

    accounts = {by: accounts_of(tournament, bank, by)[on] for by in (CHEAP, STRONG)}

    assert 0 < n < 20
    assert (accounts[CHEAP].planned, accounts[STRONG].planned) == (20, n)
    assert len([*queries_to(tournament, bank, STRONG)]) == 2 * n
    assert len(open_queries(tournament, bank, STRONG, ENDLESS_RETRIES)) == 2 * n
    assert {each.prompt_id for each in settle(tournament, bank, STRONG)} == drawn(tournament)
    assert outside_share(tournament, CHEAP) == ()
    [sentence] = outside_share(tournament, STRONG)
    assert sentence.startswith(f"share = 0.4: strong is asked on {n} of 20 prompts, drawn")


@pytest.mark.parametrize("share", [None, 1.0])
def test_without_a_share_every_prompt_is_asked(share: float | None) -> None:
    """As before there were any, and of a juror that names none."""
    tournament = known(*cascade(share, questions(5)))

    assert drawn(tournament) == everything(tournament)
    assert share_of(tournament, STRONG) == share
    assert share_of(Tournament(tournament.stream), STRONG) is None
    assert (without_shares(tournament) is tournament) == (share is None)


def test_a_share_can_be_left_out_of_account() -> None:
    """As where it is asked what a judge said anywhere; nothing else changes."""
    tournament = known(*cascade(0.4, questions(20)))
    whole = without_shares(tournament)

    assert drawn(whole) == everything(tournament)
    assert (whole.bank, whole.panel) == (tournament.bank, tournament.panel)
    assert without_shares(Tournament(tournament.stream)) == Tournament(tournament.stream)


@pytest.mark.no_cover
def test_a_majority_is_planned_where_two_judges_are_asked() -> None:
    """Elsewhere there is one verdict, which is no majority, and none to wait for."""
    third = (CHEAP, judge("third", model="c"), STRONG)
    two, three = (
        known(*answered(cascade(0.4, questions(20), judges=judges)))
        for judges in ((CHEAP, STRONG), third)
    )

    found = settle_by_majority(two, everything(two), two.panel)
    of_three = settle_by_majority(three, everything(three), three.panel)

    assert {each.prompt_id for each in found} == drawn(two)
    assert {each.prompt_id for each in of_three} == everything(three)


def test_a_judge_with_a_share_may_correct_the_others() -> None:
    """Itself it corrects not, and without a share a judge is one more of the panel."""
    state, plain = known(*cascade(0.3, questions(4))), known(*cascade(None, questions(4)))

    assert stronger_judges(state, CHEAP) == ("strong",)
    assert stronger_judges(state, STRONG) == stronger_judges(plain, CHEAP) == ()
