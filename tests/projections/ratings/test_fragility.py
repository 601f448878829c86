"""How few prompts decide who is ahead: each set is checked by rating the battles without it."""

from collections.abc import Collection, Sequence
from dataclasses import replace as changed

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.fragility import fragility
from projections.results.ratings import FragilityRow
from tests.support.builders.battles import Battle, in_columns, tournaments
from tests.support.strategies.battles import comparable

PLAIN = BradleyTerryParameters()
_EVEN = 1e-3  # Elo points


def series(outcomes: str, a: str = "ann", b: str = "bob") -> list[Battle]:
    """Return battles on a prompt each, which a won (+), lost (-) or tied (=)."""
    scores = {"+": 1.0, "-": 0.0, "=": 0.5}
    return [Battle(a, b, scores[each], f"{a}{b}{n}") for n, each in enumerate(outcomes)]


def without(battles: Battles, prompts: Collection[str | None]) -> Battles:
    """Return the battles on all other prompts."""
    named = [str(battles.prompts[cluster]) not in prompts for cluster in battles.cluster]
    return battles.take(np.array(named, dtype=np.bool_))


def leads(battles: Battles, ahead: str, behind: str, parameters: BradleyTerryParameters) -> bool:
    """Say whether one is still at least level with the other, in a group that holds both."""
    ratings = rate(battles, parameters)
    first, second = (ratings.entrants.index(name) for name in (ahead, behind))
    label, above = ratings.components.label, ratings.components.above
    if label[first] != label[second]:
        return bool(above[label[first], label[second]])
    return bool(ratings.rating[first] - ratings.rating[second] > -_EVEN)


def greedy(battles: Battles, ahead: str, behind: str) -> int:
    """Count prompts left out one by one, always that which, by a fit, narrows the gap most."""
    first, second = battles.entrants.index(ahead), battles.entrants.index(behind)
    for n in range(len(battles.prompts)):
        if not leads(battles, ahead, behind, PLAIN):
            return n
        tried = {
            prompt: rate(without(battles, {prompt}), PLAIN).rating
            for prompt in {str(battles.prompts[each]) for each in battles.cluster}
        }
        battles = without(
            battles, {min(tried, key=lambda each: tried[each][first] - tried[each][second])}
        )
    raise AssertionError("no prompts turn it")


def assert_exact(
    found: Sequence[FragilityRow], battles: Battles, parameters: BradleyTerryParameters = PLAIN
) -> None:
    """Rate without the decisive prompts, and without all but the last of them."""
    for each in found:
        assert each.gap > -_EVEN
        if each.decisive:
            assert not leads(without(battles, each.decisive), each.ahead, each.behind, parameters)
            assert leads(without(battles, each.decisive[:-1]), each.ahead, each.behind, parameters)


def test_the_wins_that_decide_are_counted_and_named() -> None:
    """Five wins and two losses: level without three wins, behind without four."""
    [found] = fragility("wit", in_columns(series("+-+=+-++")), PLAIN)

    assert (found.ahead, found.behind) == ("ann", "bob")
    assert found.gap == pytest.approx(400 * np.log10(5.5 / 2.5))
    assert found.n_prompts == 8
    assert found.decisive == ("annbob0", "annbob2", "annbob4", "annbob6")


def test_each_neighbour_in_the_ratings_is_compared_with_the_next() -> None:
    """Best first, and not everybody with everybody."""
    rows = [*series("+++-"), *series("++-", "bob", "cat"), *series("+++-", "ann", "cat")]

    found = fragility("wit", in_columns(rows), PLAIN)

    assert [(each.ahead, each.behind) for each in found] == [("ann", "bob"), ("bob", "cat")]
    assert_exact(found, in_columns(rows))


def test_a_prompt_counts_with_all_of_its_battles() -> None:
    """Whoever drops a prompt drops what everybody did there."""
    rows = [*series("+++++--"), Battle("ann", "bob", 1.0, "annbob1"), *series("-", "bob", "ann")]

    [found] = fragility("wit", in_columns(rows), PLAIN)

    assert found.decisive is not None
    assert found.decisive[0] == "annbob1"
    assert_exact([found], in_columns(rows))


@pytest.mark.no_cover
def test_the_gap_is_counted_where_a_third_is_undefeated_without_the_prompts_left_out() -> None:
    """Of all together there is no fit then, and of those two there is one."""
    beaten = Battle("ann", "zoe", 1.0, "annbob0")  # nobody else beats zoe
    wins = [*series("++++++", "zoe", "ann"), *series("++++++", "zoe", "bob")]
    battles = in_columns([*series("+++++++--"), beaten, *wins])

    found = {(each.ahead, each.behind): each for each in fragility("wit", battles, PLAIN)}

    ann = found["ann", "bob"]
    assert ann.decisive is not None
    assert "annbob0" in ann.decisive
    assert len(ann.decisive) > 1
    assert_exact([ann], battles)


def test_level_entrants_are_decided_by_no_prompt() -> None:
    """Nothing need be left out where nobody is ahead."""
    [found] = fragility("wit", in_columns(series("+-+-")), PLAIN)

    assert found.decisive == ()


def test_who_never_lost_is_compared_under_a_prior_only() -> None:
    """Without one there is no gap; with one, no prompt speaks for the other."""
    undefeated = in_columns(series("+++"))

    assert fragility("wit", undefeated, PLAIN) == ()
    [found] = fragility("wit", undefeated, replace(PLAIN, prior_sd=200.0))
    assert found.decisive is None


def test_a_prompt_that_holds_the_board_together_is_decisive() -> None:
    """Without the only win of the others, they cannot be compared with the leader."""
    rows = [
        *series("++", "ann", "bob"),
        *series("+-", "bob", "cat"),
        *series("+", "cat", "ann"),
        Battle("ann", "dan", 1.0, "both"),
        Battle("dan", "ann", 1.0, "both"),
    ]

    found = fragility("wit", in_columns(rows), PLAIN)

    assert_exact(found, in_columns(rows))


def test_battles_without_a_prompt_count_each_and_have_no_name() -> None:
    """As in an arena, where a person asks once."""
    unnamed = changed(in_columns(series("+++--")), prompts=())

    [found] = fragility("wit", unnamed, PLAIN)

    assert found.decisive == (None, None)
    assert found.n_prompts == 5


@pytest.mark.no_cover
def test_davidson_turns_at_other_prompts_exactly_too() -> None:
    """Its ties are outcomes of their own."""
    davidson = replace(PLAIN, ties="davidson")
    for battles in tournaments(3, n_prompts=20):
        assert_exact(fragility("wit", battles, davidson), battles, davidson)


@given(rows=comparable())
def test_what_decides_turns_the_gap_and_one_prompt_less_does_not(rows: list[Battle]) -> None:
    """Of any battles at all."""
    battles = in_columns(rows)

    found = fragility("wit", battles, PLAIN)

    assert len(found) == len(battles.entrants) - 1
    assert_exact(found, battles)


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [1, pytest.param(200, marks=pytest.mark.nightly)])
def test_few_more_prompts_than_a_fit_after_each_would_take(n: int) -> None:
    """To choose by influence costs at most two prompts, and mostly none."""
    worse = [
        len(each.decisive or ()) - greedy(battles, each.ahead, each.behind)
        for battles in tournaments(n, n_prompts=20)
        for each in fragility("wit", battles, PLAIN)[:1]
    ]

    assert len(worse) == n
    assert max(worse) <= 2
