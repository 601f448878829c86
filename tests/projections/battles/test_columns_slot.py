"""What the slot gave is taken off the scores of pairs that were asked in one order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import BradleyTerryParameters, EloParameters
from ledger.identity import Dimension
from projections.battles.columns import TIE, Battles, joined, without_slot_effect
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.elo.rate import rate as rate_elo
from projections.ratings.standings import win_rates
from tests.support.builders.battles import in_columns

Row = tuple[str, str, float, int]
"""Two entrants, what the first took, and the slot."""


def asked(*rows: Row) -> Battles:
    """Return battles as observed, each on a prompt of its own; the slot 0 is of both orders."""
    plain = [
        (a, b, score, prompt, 1.0 if slot == 0 else 0.5)
        for prompt, (a, b, score, slot) in enumerate(rows)
    ]
    return replace(in_columns(plain), slot=np.array([slot for *_, slot in rows], dtype=np.int8))


ROWS: list[Row] = [
    ("x", "y", 1.0, 1),
    ("x", "y", 0.0, -1),
    ("y", "x", 1.0, 1),
    ("x", "y", 1.0, -1),
    ("x", "y", 0.0, 1),
    ("x", "y", 0.5, -1),
    ("x", "y", 0.75, 0),
    ("y", "x", 0.0, -1),
]


def test_the_same_is_taken_off_each_battle_of_one_order() -> None:
    """The effect is the mean of what the first shown took beyond a half."""
    battles = asked(*ROWS)
    leads = [(score - TIE) * slot for _, _, score, slot in ROWS if slot]
    effect = sum(leads) / len(leads)

    found = without_slot_effect(battles)

    assert effect == pytest.approx(1 / 7)
    assert found.score == pytest.approx(battles.score - effect * battles.slot)
    assert (found.observed == battles.score).all()
    assert (without_slot_effect(found).score == found.score).all()


def test_a_judge_that_reads_the_slot_alone_finds_all_equal() -> None:
    """Everything that it said was about the slot."""
    shown = (("xy", 1), ("xy", 1), ("xy", -1), ("yz", -1), ("yz", 1), ("xz", 1), ("xz", -1))
    battles = asked(*((pair[0], pair[1], (1 + slot) / 2, slot) for pair, slot in shown))

    assert without_slot_effect(battles).score == pytest.approx(TIE)


PAIRS = st.sampled_from(["xy", "yz", "xz"])
SCORES = st.sampled_from([0.0, 0.5, 1.0])
SLOTS = st.sampled_from([-1, 0, 1])


@given(st.lists(st.tuples(PAIRS, SCORES, SLOTS), min_size=1, max_size=12))
def test_it_does_not_matter_who_is_named_first(rows: list[tuple[str, float, int]]) -> None:
    """A battle seen from the other side is the same battle."""
    battles = asked(*((pair[0], pair[1], score, slot) for pair, score, slot in rows))
    turned = asked(*((pair[1], pair[0], 1 - score, -slot) for pair, score, slot in rows))

    assert without_slot_effect(turned).score == pytest.approx(
        1 - without_slot_effect(battles).score
    )


def test_each_dimension_has_its_own_effect() -> None:
    """A judge may prefer a slot on one of them alone."""
    battles = asked(*ROWS, *((a, b, TIE, slot) for a, b, _, slot in ROWS))
    dimensions = ["d"] * len(ROWS) + ["other"] * len(ROWS)

    found = without_slot_effect(battles, dimensions)

    assert (found.score[: len(ROWS)] == without_slot_effect(asked(*ROWS)).score).all()
    assert (found.score[len(ROWS) :] == TIE).all()


def test_who_won_all_stays_undefeated() -> None:
    """Nothing that is taken off makes a rating out of nothing."""
    rows = [*ROWS * 3, *[("z", "x", 1.0, 1)] * 5, ("z", "y", 1.0, -1)]

    found = without_slot_effect(asked(*rows))
    ratings = {row.entrant: row for row in rate(found, BradleyTerryParameters()).rows()}

    assert (found.score[-6:] == 1).all()
    assert ratings["z"].reason == "undefeated"
    assert ratings["x"].rating is not None


def test_groups_that_never_lost_to_others_are_not_rated_beside_them() -> None:
    """Among themselves they win and lose, and something is taken off their wins over others."""
    others = {"x": "v", "y": "w"}
    upper = [*ROWS] * 4
    lower = [(others[a], others[b], score, slot) for a, b, score, slot in upper]
    between: list[Row] = [("x", "v", 1.0, 1), ("y", "w", 1.0, 1), ("x", "w", 1.0, -1)]

    found = without_slot_effect(asked(*upper, *lower, *between))
    board = rate(found, BradleyTerryParameters())

    assert found.score[-1] > 1 > found.score[-2]
    assert len(board.components) == 2


def test_elo_takes_each_pair_as_a_match() -> None:
    """It uses no weights, and whoever was preferred won."""
    battles = without_slot_effect(asked(*ROWS))

    matches = battles.by_outcome("half")

    assert (matches.weight == 1).all()
    assert set(matches.score) <= {0.0, 0.5, 1.0}
    assert len(rate_elo(matches, EloParameters(permutations=2), [16.0])) == 1


def test_where_a_tie_is_an_outcome_nothing_is_taken_off() -> None:
    """Davidson's model knows wins, losses and ties only."""
    battles = without_slot_effect(asked(*(row for row in ROWS if row[-1])))

    assert set(battles.by_verdicts("davidson").score) == {0.0, 0.5, 1.0}
    assert rate(battles.by_verdicts("davidson"), BradleyTerryParameters(ties="davidson")).entrants


def test_battles_of_files_join_those_of_one_order() -> None:
    """Of a file it is not known who was shown first."""
    parts = [without_slot_effect(asked(*ROWS)), in_columns([("x", "q", 1.0, "p")])]

    found = joined(parts)

    assert np.asarray(found.slot).tolist() == [*(slot for *_, slot in ROWS), 0]


def test_no_share_of_wins_is_beyond_all() -> None:
    """Of two that met three times, all of them won, as much is not taken off."""
    rows = [*ROWS * 6, *[("x", "z", 1.0, -1)] * 3, *[("z", "y", 1.0, 1)] * 2, ("y", "z", 1.0, 1)]

    battles = {Dimension("d"): without_slot_effect(asked(*rows))}
    rates = {(row.entrant_a, row.entrant_b): row.win_rate for row in win_rates(battles)}

    assert rates["x", "z"] == 1.0
    assert rates["x", "y"] != pytest.approx(4.75 / 8)
