"""Imported battles: which of them count, and as columns of numbers."""

from math import exp

import numpy as np
import pytest
from hypothesis import given

from ledger.events.imports import MAX_BATTLES, SIGNS, BattlesImported, CodedColumn, battles_stream
from ledger.store import Ledger
from projections.battles.columns import STATUSES
from projections.battles.imported import battles_of_set
from projections.battles.imported_sets import IMPORTED_BATTLES, ImportedBattles
from projections.fold import fold
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import key
from tests.support.strategies.events import battles_imported

JUDGED = imported_battles(
    ("y", "x", "y", "z"),
    ("x", "y", "z", "x"),
    winners=CodedColumn.of(["model_a", "tie", "no verdict", "tie (bothbad)"]),
    prefs=CodedColumn.of([0.25, None, None, None]),
    prompts=CodedColumn.of(["q1", "q2", "q1", "q1"]),
    sources=CodedColumn.of(["llm-judge", "human", "llm-judge", "human"]),
    weights=CodedColumn.of([1.0, 3.0, 1.0, 1.0]),
)


def test_columns_say_what_the_battles_say() -> None:
    """Entrants by name, so that the order of a file changes nothing."""
    table = battles_of_set([JUDGED])

    assert table.entrants == ("x", "y", "z")
    assert table.a.tolist() == [1, 0, 1, 2]
    assert table.b.tolist() == [0, 1, 2, 0]
    assert [STATUSES[code] for code in table.status] == ["a", "tie", "no verdict", "tie"]
    np.testing.assert_array_equal(table.pref, [0.25, np.nan, np.nan, np.nan])
    assert table.cluster.tolist() == [0, 1, 0, 0]
    assert table.weight.tolist() == [1, 3, 1, 1]
    assert table.is_human.tolist() == [False, True, False, True]


@pytest.mark.parametrize(("soft", "first"), [(True, 0.75), (False, 1.0)])
def test_a_score_is_what_a_took(*, soft: bool, first: float) -> None:
    """A preference is told of b, a score of a; without a verdict there is none of either."""
    rated = battles_of_set([JUDGED]).rated(soft=soft)

    assert rated.score.tolist() == [first, 0.5, 0.5]
    assert rated.cluster.tolist() == [0, 1, 0]
    assert rated.weight.tolist() == [1, 3, 1]


def test_battles_of_one_id_are_of_one_prompt_in_all_files() -> None:
    """A judge's battles and people's on the same prompt are no independent evidence."""
    asked = imported_battles(file_digest=key("more"), prompts=CodedColumn(("q2",)))
    unnamed = imported_battles(("x", "x"), ("y", "z"))

    table = battles_of_set([JUDGED, unnamed, asked])

    assert table.cluster.tolist() == [0, 1, 0, 0, 2, 3, 1]
    assert table.prompts == table.rated(soft=True).prompts == ("q1", "q2")


def test_battles_of_a_set_are_compared_as_pairings_are() -> None:
    """One battle without a prompt's id is not on the prompt of another."""
    unnamed = imported_battles(("x", "z"), ("y", "y"), weights=CodedColumn((2.0,)))

    found = battles_of_set([JUDGED, unnamed]).compared("arena")

    assert [each[:8] for each in found] == [
        ("arena", "q1", 0, "y", "x", "a", 1.0, 0.25),
        ("arena", "q2", 1, "x", "y", "tie", 3.0, None),
        ("arena", "q1", 0, "y", "z", "no verdict", 1.0, None),
        ("arena", "q1", 0, "z", "x", "tie", 1.0, None),
        ("arena", None, 2, "x", "y", "a", 2.0, None),
        ("arena", None, 3, "z", "y", "a", 2.0, None),
    ]
    assert [each.share for each in found] == [0.75, 0.5, None, 0.5, 1.0, 1.0]
    assert [each.score for each in found] == [1.0, 0.5, None, 0.5, 1.0, 1.0]
    assert {each.order for each in found} == {None}


def test_judges_preferences_can_be_read_more_steeply() -> None:
    """JudgeArena's 0.9 and 0.1 of marks 7 and 1, and 1 and 7; people gave none."""
    said = imported_battles(
        ("x",) * 6,
        ("y",) * 6,
        prefs=CodedColumn.of([1 / (1 + exp(1.8)), 1 / (1 + exp(-1.8)), 0.5, 1.0, None, 0.2]),
        winners=CodedColumn.of(["model_a", "model_b", "tie", "model_b", "no verdict", "model_a"]),
        sources=CodedColumn.of(["llm-judge"] * 5 + ["human"]),
    )

    read = battles_of_set([said]).at_temperature(0.5).pref

    expected = [1 / (1 + exp(3)), 1 / (1 + exp(-3)), 0.5, 1.0, np.nan, 0.2]
    assert read.tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_more_entrants_than_signs_of_one_byte_are_told_apart() -> None:
    """The ninety-second sign is the first of two bytes."""
    names = [f"{n:04}" for n in range(MAX_BATTLES + 1)]

    table = battles_of_set([imported_battles(names[:-1], names[1:])])

    assert table.a.tolist() == [*range(len(names) - 1)]
    assert table.b.tolist() == [*range(1, len(names))]


@given(event=battles_imported())
def test_every_battle_has_its_row(event: BattlesImported) -> None:
    """Whatever is on a ledger can be rated."""
    table = battles_of_set([event, event])

    n = event.n_battles
    places = dict(zip(SIGNS, event.entrants, strict=False))
    assert [table.entrants[place] for place in table.a] == 2 * [places[sign] for sign in event.a]
    assert table.weight.tolist() == 2 * list(event.weights.cells(n))
    assert len(table.rated(soft=True)) == table.has_verdict.sum()


FIRST, SECOND = imported_battles(chunk=1), imported_battles(chunk=2)
CORRECTED = imported_battles(mapping_version=2)
ANOTHER = imported_battles(file_digest=key("another file"))


def known(**sets: list[BattlesImported]) -> ImportedBattles:
    """Return what is known after sets of battles, one after the other."""
    with Ledger.in_memory() as ledger:
        for name, events in sets.items():
            ledger.append(battles_stream(name), events)
        return fold(IMPORTED_BATTLES, ledger.read())


def test_battles_are_kept_by_the_sets_that_they_joined() -> None:
    """One ledger may hold several arenas, which are rated one by one or together."""
    found = known(arena=[FIRST, SECOND], lab=[ANOTHER])

    assert found.names == ("arena", "lab")
    assert found.events == (FIRST, SECOND, ANOTHER)
    assert found.of(["lab"]).events == (ANOTHER,)
    assert found.of([]).events == ()


def test_a_file_that_was_read_anew_counts_as_it_was_read_last() -> None:
    """The mapping was put right; what the old one said stays on record, and counts no more."""
    assert known(arena=[FIRST, SECOND, CORRECTED]).events == (CORRECTED,)


def test_a_file_in_two_sets_counts_once_where_both_are_rated() -> None:
    """Rated together, each of its battles would weigh twice."""
    found = known(arena=[FIRST, SECOND], same=[FIRST])

    assert found.events == (FIRST,)
    assert found.of(["arena"]).events == (FIRST, SECOND)
