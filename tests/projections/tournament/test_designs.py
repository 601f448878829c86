"""A sparse design asks few pairs, links all entrants, and stays where the tournament changes."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registration import Entrant
from ledger.identity import digest_of
from projections.tournament.designs import (
    drawn_pairs,
    fewest_linking,
    not_planned,
    planned_pairs,
    without_design,
)
from projections.tournament.matches import pairings, planned_responses
from projections.tournament.state import Tournament
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import RUBRICS, everything, with_judging

N_PROMPTS = 143


def names(n: int) -> tuple[str, ...]:
    """Name so many entrants."""
    return tuple(f"e{number}" for number in range(n))


def texts(n: int = N_PROMPTS) -> tuple[str, ...]:
    """Return the texts of so many prompts."""
    return tuple(f"Question {number}?" for number in range(n))


def games(drawn: Iterable[Iterable[tuple[int, int]]]) -> Counter[int]:
    """Count how often each entrant is in a pair."""
    return Counter(place for pairs in drawn for pair in pairs for place in pair)


def n_new(before: Iterable[Iterable[object]], after: Iterable[Iterable[object]]) -> int:
    """Count the pairs that are asked after a change, and were not before."""
    return sum(len({*later} - {*earlier}) for earlier, later in zip(before, after, strict=True))


@pytest.mark.no_cover
@pytest.mark.parametrize(("n", "n_pairs"), [(3, 1), (3, 10), (5, 2), (8, 4), (12, 3), (20, 10)])
def test_all_entrants_play_about_equally_often(n: int, n_pairs: int) -> None:
    """On each prompt, where one game more or two are a matter of parity, and over the bank."""
    drawn = drawn_pairs(names(n), texts(), n_pairs, 0)
    n_asked = min(n_pairs, n * (n - 1) // 2)

    on_prompts = [games([pairs]) for pairs in drawn]
    over_all = games(drawn)

    assert all(len({*pairs}) == n_asked for pairs in drawn)
    assert all(max(each.values()) - min(each[i] for i in range(n)) <= 2 for each in on_prompts)
    assert max(over_all.values()) - min(over_all[i] for i in range(n)) <= 10


@given(
    n=st.integers(2, 9), n_pairs=st.integers(1, 12), n_prompts=st.integers(1, 9), seed=st.integers()
)
def test_a_larger_number_asks_all_that_a_smaller_one_does(
    n: int, n_pairs: int, n_prompts: int, seed: int
) -> None:
    """And a further prompt changes nothing on earlier ones: only the difference is owed."""
    few, more = (
        drawn_pairs(names(n), texts(n_prompts), size, seed) for size in (n_pairs, n_pairs + 1)
    )
    longer = drawn_pairs(names(n), texts(n_prompts + 1), n_pairs, seed)

    assert all({*one} <= {*other} for one, other in zip(few, more, strict=True))
    assert longer[:-1] == few


@pytest.mark.no_cover
@pytest.mark.parametrize(("n", "most"), [(4, 0.6), (8, 0.4), (12, 0.3)])
def test_a_further_entrant_takes_the_place_of_few_others(n: int, most: float) -> None:
    """It needs 2 of n + 1 games; drawn anew, nearly all pairs of 12 entrants would be others."""
    before = drawn_pairs(names(n), texts(), 4, 0)
    after = drawn_pairs(names(n + 1), texts(), 4, 0)

    assert 2 / (n + 1) <= n_new(before, after) / (4 * N_PROMPTS) < most


def test_a_draw_stays_as_it_is() -> None:
    """Other pairs would be owed anew in every tournament that has a sparse design."""
    assert drawn_pairs(names(6), texts(4), 3, 0) == (
        ((0, 2), (1, 3), (4, 5)),
        ((0, 1), (2, 4), (3, 5)),
        ((0, 2), (1, 3), (4, 5)),
        ((0, 5), (1, 4), (2, 3)),
    )
    many = drawn_pairs(names(12), texts(), 10, 7)
    assert digest_of([[[*pair] for pair in pairs] for pairs in many])[:16] == "fb18e0691c7dacb7"


def test_another_seed_draws_other_pairs() -> None:
    """So nobody can complain of the draw more than once."""
    one, other = (drawn_pairs(names(12), texts(), 4, seed) for seed in (0, 1))

    assert n_new(one, other) > 2 * N_PROMPTS


def sparse(
    n_pairs: int, entrants: Iterable[Entrant], n_prompts: int = 6, prefix: str = "p"
) -> Tournament:
    """Return a tournament that asks so many pairs a prompt."""
    prompts = [prompt(f"{prefix}{n}", text=f"Question {n}?") for n in range(n_prompts)]
    opening = opened(prompts=prompts, entrants=[*entrants], rubrics=RUBRICS)
    return known(*with_judging(opening, f'{{"sparse": {n_pairs}}}'))


FOUR = [entrant(name) for name in ("zoe", "amy", "kim", "bob")]


def test_pairs_that_are_not_drawn_are_not_planned() -> None:
    """Nor is the response of an entrant that meets nobody on a prompt."""
    tournament = sparse(1, FOUR)

    planned = pairings(tournament, everything(tournament))
    cells = planned_responses(tournament, everything(tournament))

    assert Counter(each.rubric.dimension for each in planned) == {"factuality": 6, "utility": 6}
    assert len(cells) == 2 * 6
    assert {each.a for each in planned} | {each.b for each in planned} == {*cells}
    assert not_planned(tournament) == (
        "sparse: 1 of 6 pairs are planned on each prompt; verdicts on others are not rated",
    )


def test_each_prompt_has_the_same_pairs_whatever_else_is_asked() -> None:
    """A pilot's pairs are among the whole bank's."""
    tournament = sparse(2, FOUR)
    one = tournament.bank[3].prompt_id

    assert {*pairings(tournament, {one})} < {*pairings(tournament, everything(tournament))}


def test_names_draw_nothing() -> None:
    """Another label or another order of the roster owes no pair, nor does a prompt's id."""
    tournament = sparse(2, FOUR)
    renamed = sparse(2, [replace(FOUR[3], entrant_id="rob"), *FOUR[:3]], prefix="q")

    one, other = (
        [{frozenset({a, b} - {"bob", "rob"}) for a, b in pairs} for pairs in planned.values()]
        for planned in map(planned_pairs, (tournament, renamed))
    )

    assert one == other


def test_twins_are_two_entrants() -> None:
    """Equal settings under two names give equal responses, but each is drawn for itself."""
    twins = [replace(FOUR[0], entrant_id=f"twin{n}") for n in range(3)]

    pairs = Counter(
        pair for drawn in planned_pairs(sparse(1, [*FOUR, *twins], 60)).values() for pair in drawn
    )

    assert max(pairs.values()) < 10


def test_recorded_answers_keep_their_pairs_as_their_file_grows() -> None:
    """With the bank the file gets answers, and with them another digest."""
    recorded = [replace(each, loader="recorded") for each in FOUR]
    grown = [replace(each, weights_digest=FOUR[0].digest) for each in recorded]

    assert planned_pairs(sparse(2, recorded)) == planned_pairs(sparse(2, grown))


@pytest.mark.parametrize(("n_prompts", "fewest"), [(1, 3), (2, 3), (12, 1)])
@pytest.mark.parametrize("n_others", [0, 20])
def test_it_is_known_how_many_pairs_link_all(n_prompts: int, fewest: int, n_others: int) -> None:
    """Ratings of entrants compare only where a chain of pairs leads from one to the other."""
    tournament = sparse(1, FOUR, n_prompts + n_others)
    judged = [prompt.prompt_id for prompt in tournament.bank[:n_prompts]]

    assert fewest_linking(tournament.roster, tournament.bank, 0, judged) == fewest


def test_a_note_says_what_is_not_planned() -> None:
    """Against a baseline it names that; where all pairs meet there is none."""
    against = known(*with_judging(opened(entrants=FOUR), '{"baseline": "kim"}'))

    assert not_planned(against) == (
        "baseline: only pairs with kim are planned; verdicts on others are not rated",
    )
    assert not_planned(known(*opened(entrants=FOUR))) == ()


def test_before_it_is_opened_no_pair_is_planned() -> None:
    """A ledger may hold responses only."""
    assert (planned_pairs(known()), not_planned(known())) == ({}, ())
    assert without_design(known()) == known()
    assert known().configured_as("judging", {}) == known()


def test_a_tournament_without_a_design_stays_the_one_whose_matches_are_known() -> None:
    """They are found once for all who ask it, and there may be very many."""
    tournament = known(*opened(entrants=FOUR))

    assert without_design(tournament) is tournament


@pytest.mark.parametrize("judging", ['{"baseline": "kim"}', '{"sparse": 2, "other": 1}', "{}"])
def test_without_a_design_all_pairs_meet(judging: str) -> None:
    """So what was judged before a design was chosen still counts as evidence."""
    tournament = known(*with_judging(opened(entrants=FOUR), judging))

    whole = without_design(tournament)

    assert {len(pairs) for pairs in planned_pairs(whole).values()} == {6}
    assert whole.roster == tournament.roster
