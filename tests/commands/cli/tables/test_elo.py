"""Elo standings as rows."""

import pytest
from msgspec.structs import replace

from commands.cli.tables.elo import elo_table
from ledger.events.ratings import EloParameters, TieRule
from ledger.identity import Dimension, JudgeId
from projections.battles.columns import battles_of
from projections.ratings.standings import standings
from projections.tournament.compared import ComparedBattle
from projections.tournament.settlement import settle
from tests.support.builders.commands import JUDGE, P1
from tests.support.builders.events import opened
from tests.support.builders.worlds import Fate, cup, history, settled
from tests.support.specification import after

TIE_RULES: tuple[TieRule, ...] = ("drop", "half")
NOBODY_PLAYED = standings(
    Dimension("factuality"),
    battles_of(settle(after(*opened()), [P1], JUDGE)),
    [each.entrant_id for each in after(*opened()).roster],
    EloParameters(permutations=2, k_sweep=(4.0, 0.5)),
)


def test_an_entrant_without_a_match_is_named_and_not_rated() -> None:
    """The initial rating would look like a result."""
    table = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE)

    assert [row["rating"] for row in table.rows] == [None, None]
    assert [row["k_4"] for row in table.rows] == [None, None]
    assert "base has no rating on factuality: no decided battles." in table.notes


def test_groups_that_never_met_are_told() -> None:
    """One list of ratings reads as one ranking."""
    battles = [
        ComparedBattle("set", f"p{n}", n, a, b, "a" if n % 3 else "b")
        for n, (a, b) in enumerate([("s1", "s2"), ("w1", "w2")] * 8)
    ]
    rated = standings(Dimension("set"), battles_of(battles), [], EloParameters(permutations=2))
    linked = standings(
        Dimension("set"), battles_of(battles[::2]), [], EloParameters(permutations=2)
    )

    said = "WARNING: set: 2 groups that never met; ratings compare only within a group: "
    table = elo_table([rated], EloParameters())
    assert f"{said}w1, w2; s1, s2." in table.notes
    assert table.facts["groups"] == {"set": [["w1", "w2"], ["s1", "s2"]]}
    assert "never met" not in "".join(elo_table([linked], EloParameters()).notes)


def test_whoever_judged_stands_beside_the_ratings() -> None:
    """Another judge gives other numbers, and nothing else would tell why."""
    other = replace(JUDGE, judge_id=JudgeId("other"))

    alone = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE)
    several = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE, other)

    assert (alone.notes[0], alone.facts["judge"]) == ("Judge: reference", "reference")
    assert several.notes[0] == "Judges, by majority: reference, other"
    assert several.facts["judge"] is None


def test_a_table_without_an_interval_says_so_in_its_data() -> None:
    """The keys stay whatever was asked for, and null is what nothing was found for."""
    table = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE)

    assert {(row["ci95_low"], row["ci95_high"]) for row in table.rows} == {(None, None)}
    assert table.facts["intervals"] == {"factuality": None}


def test_an_interval_is_named_by_what_was_resampled() -> None:
    """Which error an interval is of decides what may be concluded from it."""
    elo = EloParameters(permutations=2, k_sweep=(), bootstraps=20)
    fates: list[Fate] = ["b", "b", "b", "a", "a", "a"] * 5
    state = after(*history(cup(10), *fates))
    roster = [each.entrant_id for each in state.roster]
    rated = standings(Dimension("factuality"), battles_of(settled(state)), roster, elo)

    table = elo_table([rated], elo, JUDGE)

    assert [(row["ci95_low"], row["ci95_high"]) for row in table.rows] == [
        (row.ci95_low, row.ci95_high) for row in rated.rows
    ]
    assert "factuality: 95 % interval by 20 resamples of 10 prompts" in table.notes
    assert table.facts["intervals"] == {
        "factuality": {
            "kind": "bootstrap",
            "unit": "prompts",
            "level": 0.95,
            "n_resamples": 20,
            "n_prompts": 10,
        }
    }


def test_no_interval_is_announced_where_nobody_has_one() -> None:
    """A note that says 95 % above a column of dashes would be taken for what they mean."""
    elo = EloParameters(permutations=2, k_sweep=(), bootstraps=20)
    state = after(*history(cup(), "b", "b", "b", "a", "a", "a"))
    roster = [each.entrant_id for each in state.roster]

    table = elo_table(
        [standings(Dimension("factuality"), battles_of(settled(state)), roster, elo)], elo, JUDGE
    )

    assert not any("95 % interval" in note for note in table.notes)


def test_it_is_said_why_there_is_no_interval() -> None:
    """A dash alone would leave the reader to guess, and zero width would be certainty."""
    elo = EloParameters(permutations=2, k_sweep=(), bootstraps=20)
    alike: list[Fate] = ["a", "pending", "pending"] * 10
    nothing = elo_table([NOBODY_PLAYED], elo, JUDGE)
    state = after(*history(cup(10), *alike))
    roster = [each.entrant_id for each in state.roster]

    unmoved = elo_table(
        [standings(Dimension("factuality"), battles_of(settled(state)), roster, elo)], elo, JUDGE
    )

    assert (
        "factuality: no 95 % intervals (at least 6 prompts with a decided pair are needed)."
        in nothing.notes
    )
    few = after(*history(cup(), "a", "pending", "pending", "a"))
    met_twice = elo_table(
        [standings(Dimension("factuality"), battles_of(settled(few)), roster, elo)], elo, JUDGE
    )
    assert "zoe: no interval on factuality (2 prompts: at least 6 are needed)." in met_twice.notes
    assert (
        "zoe: no interval on factuality (prompts vary no more than match order does: see"
        " `tourney project bt`)."
    ) in unmoved.notes


def test_ties_that_do_not_count_are_told() -> None:
    """Without them ratings lie further apart, and a reader may not know."""
    fates: list[Fate] = ["a", "tie", "tie", "b", "tie", "inconsistent"]
    state = after(*history(cup(), *fates))
    roster = [each.entrant_id for each in state.roster]

    notes = {
        ties: elo_table(
            [standings(Dimension("factuality"), battles_of(settled(state)), roster, elo)],
            elo,
            JUDGE,
        ).notes
        for ties in TIE_RULES
        for elo in [EloParameters(permutations=2, ties=ties)]
    }

    said = (
        "factuality: 3 ties (60% of decided and tied pairs) are dropped, so ratings lie further"
        " apart than with ties as half. Ties are dropped by default only because the published"
        " engine drops them."
    )
    assert said in notes["drop"]
    assert said not in notes["half"]


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        (["a", "a", "a", "b", "tie"], None),
        (["a", "a", "a", "b", "inconsistent"], "1 of 5 judged pairs (20%) is left out"),
        (["inconsistent"] * 6, "WARNING: factuality: 6 of 6 judged pairs (100%) are left out"),
    ],
)
def test_pairs_that_are_left_out_are_told(fates: list[Fate], said: str | None) -> None:
    """Without them ratings lie further apart, or there are none."""
    state = after(*history(cup(), *fates))
    roster = [each.entrant_id for each in state.roster]
    elo = EloParameters(permutations=2)

    rated = standings(Dimension("factuality"), battles_of(settled(state)), roster, elo)
    by_judge, by_jury = (elo_table([rated], elo, *[JUDGE] * n).notes for n in (1, 2))

    if said is None:
        assert not [note for note in (*by_judge, *by_jury) if "left out" in note]
        return
    why = "the two orders disagree. `tourney project bt` counts their verdicts."
    assert sum(f"{said}, as in the published engine: {why}" in note for note in by_judge) == 1
    assert sum(f"{said}: no outcome has a majority." in note for note in by_jury) == 1


@pytest.mark.parametrize(("n_ties", "is_shown"), [(1, False), (2, True)])
def test_many_ties_bring_both_ratings(n_ties: int, is_shown: bool) -> None:
    """Above a fifth it matters what a tie counts, and a reader must see how much.

    A fifth itself is not above it.
    """
    fates: list[Fate] = ["a", "b", "a", "b"]
    tied: list[Fate] = ["tie"]
    state = after(*history(cup(), *fates[: 5 - n_ties], *tied * n_ties))
    roster = [each.entrant_id for each in state.roster]
    tables = {
        ties: elo_table(
            [standings(Dimension("factuality"), battles_of(settled(state)), roster, elo)],
            elo,
            JUDGE,
        )
        for ties in TIE_RULES
        for elo in [EloParameters(permutations=2, k_sweep=(), ties=ties)]
    }

    drop, half = tables["drop"].rows, tables["half"].rows
    titles = {ties: [each.heading for each in table.columns] for ties, table in tables.items()}
    assert ("Ties as half" in titles["drop"]) == ("Ties dropped" in titles["half"]) == is_shown
    if is_shown:
        as_half = {row["entrant"]: row["rating_ties_half"] for row in drop}
        assert as_half == {row["entrant"]: row["rating"] for row in half}
        assert as_half != {row["entrant"]: row["rating"] for row in drop}
    assert tables["drop"].facts["tied_shares"] == {"factuality": n_ties / 5}
