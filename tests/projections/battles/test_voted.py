"""People's votes beside what a judge said of the same battles."""

from dataclasses import replace

import numpy as np
import pytest

from projections.battles.columns import Battles
from projections.battles.voted import judged_battles, with_votes
from tests.support.builders.battles import Battle, in_columns
from tests.support.builders.events import entrant, known, opened, prompt, responses
from tests.support.builders.worlds import SLOT_A, TIE, A, B, court, heard, settled

JUDGED = in_columns(
    [
        Battle("ann", "bob", 1.0, "p1"),
        Battle("ann", "bob", 0.0, "p2"),
        Battle("cat", "bob", 0.5, "p2"),
        Battle("bob", "ann", 1.0, "p2"),
    ]
)


def votes(*rows: Battle) -> Battles:
    """Return people's votes."""
    return in_columns(rows)


def test_a_vote_is_on_the_battle_of_the_same_prompt_and_entrants_in_any_order() -> None:
    """Whoever stood first on the screen, and in both orders of a judge."""
    found = with_votes(
        JUDGED, votes(Battle("bob", "ann", 1.0, "p1"), Battle("ann", "bob", 1.0, "p2"))
    )

    assert found.human == pytest.approx([0.0, 1.0, np.nan, 0.0], nan_ok=True)
    assert found.has_vote.tolist() == [True, True, False, True]
    assert (found.n_votes, found.n_unmatched, found.n_prompts) == (2, 0, 2)


def test_several_votes_are_their_mean_by_weight() -> None:
    """Three people of four."""
    found = with_votes(
        JUDGED,
        votes(Battle("bob", "ann", 0.0, "p1", weight=3.0), Battle("ann", "bob", 0.0, "p1")),
    )

    assert found.human[0] == 0.75
    assert found.n_votes == 2


def test_votes_on_what_was_not_judged_are_counted_and_not_used() -> None:
    """Another prompt, another pair, or no prompt at all."""
    nameless = replace(in_columns([Battle("ann", "bob", 1.0, "p1")]), prompts=())

    found = with_votes(
        JUDGED, votes(Battle("ann", "bob", 1.0, "p9"), Battle("ann", "cat", 1.0, "p2"))
    )

    assert (found.n_votes, found.n_unmatched) == (0, 2)
    assert not found.has_vote.any()
    assert with_votes(JUDGED, nameless).n_unmatched == 1


def test_correlation_does_not_depend_on_who_is_named_first() -> None:
    """And is undefined where the judge calls everything a tie."""
    rows = [Battle("ann", "bob", 1.0, "p1"), Battle("ann", "bob", 0.0, "p2")]
    swapped = [Battle("bob", "ann", 1 - row.score, row.prompt) for row in rows]
    said = votes(Battle("ann", "bob", 1.0, "p1"), Battle("ann", "bob", 0.5, "p2"))
    tied = in_columns(row._replace(score=0.5) for row in rows)

    assert with_votes(in_columns(rows), said).correlation == pytest.approx(0.5**0.5)
    assert with_votes(in_columns(swapped), said).correlation == pytest.approx(0.5**0.5)
    assert np.isnan(with_votes(tied, said).correlation)


def test_identical_responses_are_no_battle_for_votes_to_correct() -> None:
    """Nobody is asked to vote on them, so votes are a random sample of the others."""
    opening = opened(prompts=[prompt("p1")], entrants=[entrant(name) for name in ("zoe", "amy")])
    texts = {("zoe", "p1"): "Aspirin.", ("amy", "p1"): "Aspirin."}
    events = (*opening, *responses(known(*opening), texts))

    found = judged_battles(settled(known(*heard(events, [TIE]))))

    assert len(found) == 0


def test_an_inconsistent_pair_is_judged_as_half_a_win_for_each() -> None:
    """People may be asked about it, and it is one that the judge finds hard."""
    state = known(*heard(court(1), [A, TIE, SLOT_A, B, B]))

    found = judged_battles(settled(state))

    assert found.score.tolist() == [1.0, 0.5, 0.5, 0.0, 0.0]


def test_votes_find_their_prompt_by_id_and_texts_make_clusters() -> None:
    """Two prompts of one text have responses of their own, and vary together."""
    found = with_votes(JUDGED, votes(Battle("ann", "bob", 1.0, "p2")), {"p1": "p1", "p2": "p1"})

    assert found.human == pytest.approx([np.nan, 1.0, np.nan, 0.0], nan_ok=True)
    assert (found.n_prompts, found.judged.prompts) == (1, ("p1",))
