"""Entrants among human anchors."""

import pytest
from msgspec.structs import replace

from ledger.events.imports import BattlesImported, CodedColumn
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import joined
from projections.battles.imported import BattlesOfSet, battles_of_set
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from tests.support.builders.battles import Battle, imported_battles, in_columns

PLAIN = BradleyTerryParameters()
ROUND = ("ann", "ann", "bob", "bob", "cleo", "cleo", "ann")  # each took something off each
AGAINST = ("bob", "cleo", "cleo", "ann", "ann", "bob", "bob")


def by_people(*more: BattlesImported) -> BattlesOfSet:
    """Return battles of three anchors before people, and more."""
    return battles_of_set([imported_battles(ROUND, AGAINST), *more])


def by_judges(a: tuple[str, ...], b: tuple[str, ...], **fields: object) -> BattlesImported:
    """Return battles that a judge gave to a."""
    return imported_battles(a, b, sources=CodedColumn(("llm-judge",)), **fields)


def test_anchors_that_judges_left_alone_do_not_move() -> None:
    """One new entrant that won and lost against one anchor says nothing of the others."""
    found = rate_with_anchors(
        by_people(by_judges(("new", "ann"), ("ann", "new"))), PLAIN, soft=True
    )

    assert list(found.differences.values()) == pytest.approx([0, 0, 0], abs=1e-6)
    assert {name: found.source(name) for name in found.ratings.entrants} == {
        **dict.fromkeys(("ann", "bob", "cleo"), "human"),
        "new": "evaluated",
    }
    assert found.mae is None  # 0 would say that the judges agree with people


def test_judges_who_disagree_with_people_show_in_the_mean_difference() -> None:
    """And how much, anchor by anchor; the differences are about zero."""
    upset = by_judges(("cleo",) * 6, ("ann",) * 6)

    found = rate_with_anchors(by_people(upset), PLAIN, soft=True)

    assert found.differences["cleo"] > 20 > -20 > found.differences["ann"]
    assert sum(found.differences.values()) == pytest.approx(0, abs=1e-6)
    assert found.mae == pytest.approx(sum(map(abs, found.differences.values())) / 3)


def test_a_group_that_judges_do_not_link_is_not_in_the_mean_difference() -> None:
    """Its zeros would make judges look better than they are."""
    upset = by_judges(("cleo",) * 6, ("ann",) * 6)
    apart = imported_battles(("x", "y"), ("y", "x"))

    alone = rate_with_anchors(by_people(upset), PLAIN, soft=True)
    beside = rate_with_anchors(by_people(upset, apart), PLAIN, soft=True)

    assert set(beside.differences) == {"ann", "bob", "cleo", "x", "y"}
    assert set(beside.judged_differences) == {"ann", "bob", "cleo"}
    assert beside.mae == pytest.approx(alone.mae, abs=1e-6)


@pytest.mark.parametrize(
    "others",
    [
        battles_of_set([by_judges(("ann", "bob"), ("bob", "ann"))]),
        battles_of_set([imported_battles(("ann",), ("bob",))]),
    ],
)
def test_without_two_comparable_anchors_there_is_no_difference(others: BattlesOfSet) -> None:
    """Zero would say that all is well."""
    found = rate_with_anchors(others, PLAIN, soft=True)

    assert (found.mae, dict(found.differences)) == (None, {})


def test_the_scale_may_hang_from_the_evaluated() -> None:
    """People's battles do not know it, and are rated all the same."""
    table = by_people(by_judges(("new", "ann"), ("ann", "new")))

    found = rate_with_anchors(table, replace(PLAIN, anchor="new", anchor_rating=0.0), soft=True)

    assert found.ratings.rating[found.ratings.entrants.index("new")] == pytest.approx(0)
    assert list(found.differences.values()) == pytest.approx([0, 0, 0], abs=1e-6)


def test_a_tournament_joins_the_anchors() -> None:
    """Its entrants stand in the same table; one that people know is an anchor there, too."""
    ours = in_columns([Battle("new", "ann", 1.0, "p1"), Battle("ann", "new", 1.0, "p2")])

    found = rate_with_anchors(by_people(), PLAIN, ours, soft=True)

    assert found.ratings.entrants == ("ann", "bob", "cleo", "new")
    assert found.source("new") == "evaluated"
    assert found.ratings.n_battles.tolist() == [7, 5, 4, 2]


def test_preferences_count_as_such_or_as_who_won() -> None:
    """Soft, a narrow win is less than a win; hard, it is the same."""
    table = by_people(by_judges(("ann",), ("bob",), prefs=CodedColumn((0.4,))))

    soft, hard = (rate_with_anchors(table, PLAIN, soft=soft).ratings for soft in (True, False))
    plain = rate_with_anchors(by_people(by_judges(("ann",), ("bob",))), PLAIN, soft=True).ratings

    assert soft.rating[0] < plain.rating[0]
    assert hard.rating == pytest.approx(plain.rating, abs=1e-6)


def test_battles_of_no_known_prompt_join_no_other() -> None:
    """Two that nobody named are two, though both have the number that follows the named ones."""
    named = battles_of_set(
        [imported_battles(("a", "b"), ("b", "a"), prompts=CodedColumn(("q1", None)))]
    )
    nameless = named.rated(soft=True)

    both = joined([nameless, nameless])

    assert both.cluster.tolist() == [0, 1, 0, 2]
