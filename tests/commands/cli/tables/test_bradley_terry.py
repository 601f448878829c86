"""Bradley-Terry ratings, and differences of all pairs, as tables."""

import json

import pytest
from msgspec.structs import replace

from commands.cli.tables.bradley_terry import RatedBoards, coefficient_note
from commands.cli.tables.render import Format
from commands.cli.tables.table import difference_table
from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.ratings.style import Coefficient
from tests.support.builders.battles import Battle, beaten, in_columns, played
from tests.support.goldens.screens import rendered

PLAIN = BradleyTerryParameters()
RING = (("ann", "bob"), ("bob", "cleo"), ("cleo", "ann"), ("ann", "bob")) * 3


def notes(*pairs: tuple[str, str], parameters: BradleyTerryParameters = PLAIN) -> str:
    """Return what is said beside ratings after the first of each pair beat the second."""
    board = leaderboard("utility", in_columns(beaten(*pairs)), parameters)
    return "\n".join(RatedBoards([board], parameters).table().notes)


def test_json_has_what_the_rows_cannot_say() -> None:
    """How the groups stand to each other; matrices of all pairs are left to `--pairs`."""
    fought = in_columns(beaten(*RING, ("zoe", "ann")))
    table = RatedBoards([leaderboard("utility", fought, PLAIN)], PLAIN).table()

    found = json.loads(rendered(table, Format.JSON))

    fit = found["fits"]["utility"]
    assert (found["schema"], found["parameters"]["level"]) == ("tourney/bt@1", 0.95)
    assert fit["groups"] == [["zoe"], ["ann", "cleo", "bob"]]
    assert fit["above"] == [[1, 2]]
    assert set(fit) == {"groups", "above", "anchor", "nu", "n_without_fit"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"ties": "davidson", "prior_sd": 200.0},
            "95 % interval, cluster-robust (sandwich), clusters: prompts",
        ),
        (
            {"unit": "battles", "level": 0.9},
            "90 % interval, cluster-robust (sandwich), clusters: battles",
        ),
        (
            {"interval": "bayesian", "resamples": 2000},
            "95 % interval, 2,000 bayesian resamples of prompts",
        ),
    ],
)
def test_a_rating_is_named_by_its_model_and_interval(options: dict[str, object], said: str) -> None:
    """Two intervals that differ by a half are both called one in most leaderboards.

    A prior is knowledge from elsewhere, and is never silent.
    """
    parameters = replace(PLAIN, **options)
    board = leaderboard("utility", in_columns(beaten(*RING)), parameters)

    table = RatedBoards([board], parameters).table()

    model = "ties by Davidson, prior of sd 200" if "prior_sd" in options else "ties as half"
    assert table.title == f"Bradley-Terry, {model}"
    assert said in "\n".join(table.notes)


def test_a_crowd_is_not_named_whole() -> None:
    """A hundred entrants that lost everything are one sentence."""
    said = notes(*RING, *(("ann", f"poor {n}") for n in range(9)))

    assert "and 3 more are winless" in said
    assert "JSON output has the order of all groups." in said


def test_resamples_without_a_fit_are_counted_by_group() -> None:
    """Added up they were more than there are resamples."""
    parameters = replace(PLAIN, interval="multinomial", resamples=40)
    twos = (("ann", "bob"), ("bob", "ann"), ("cleo", "dan"), ("dan", "cleo"))
    board = leaderboard("utility", in_columns(beaten(*twos)), parameters)
    table = RatedBoards([board], parameters).table()

    found = json.loads(rendered(table, Format.JSON))["fits"]["utility"]["n_without_fit"]
    told = [note for note in table.notes if "no finite fit" in note]

    which = [f"{n} of 40 resamples of group {number}" for number, n in enumerate(found, start=1)]
    ending = "had no finite fit and count as beyond both bounds."
    assert told == [f"utility: {each} {ending}" for each in which]
    assert len(found) == 2
    assert all(10 < n < 40 for n in found)
    few = notes(("ann", "bob"), ("bob", "ann"), parameters=parameters)
    assert f"resamples {ending}" in few  # of one group, which is not numbered


def test_whom_the_anchor_does_not_hold_is_told() -> None:
    """An anchor that nobody can be compared with would otherwise seem to have been obeyed."""
    anchored = replace(PLAIN, anchor="zoe", anchor_rating=1500.0)
    undefeated = notes(*RING, ("zoe", "ann"), parameters=anchored)
    island = notes(*RING, ("zoe", "eve"), ("eve", "zoe"), parameters=anchored)
    held = notes(*RING, ("zoe", "ann"), ("ann", "zoe"), parameters=anchored)
    idle = notes(*RING, parameters=anchored)

    said = "utility: ann, cleo, bob: no link to the anchor zoe, so the mean of their group is 1000."
    assert said in undefeated
    assert said in island
    assert "no link to the anchor" not in held
    assert "utility: the anchor zoe has no battles; the mean is 1000." in idle


def test_prompts_that_all_say_the_same_are_said_to_tell_nothing() -> None:
    """Bounds from 1000 to 1000 would be certainty, by a judge that always picks one slot."""
    alike = [Battle(a, b, 1.0, prompt) for prompt in "pqrstu" for a, b in (("x", "y"), ("y", "x"))]
    table = RatedBoards([leaderboard("utility", in_columns(alike), PLAIN)], PLAIN).table()

    assert "utility: x, y have no interval (all prompts agree)." in "\n".join(table.notes)
    assert {(row["rating"], row["low"], row["high"]) for row in table.rows} == {
        (1000.0, None, None)
    }


@pytest.mark.parametrize(
    ("anchor", "told"),
    [(None, set()), ("ann", {"ann", "bob", "cleo"}), ("x", {"x", "y"})],
)
def test_a_change_is_told_of_who_hangs_from_the_same(anchor: str | None, told: set[str]) -> None:
    """Groups that are one by now have one mean: nobody came nearer to it by a verdict."""
    parameters = replace(PLAIN, anchor=anchor)
    islands = [*RING, *[("x", "y"), ("y", "x")] * 3]
    then, now = (
        RatedBoards(
            [leaderboard("utility", in_columns(beaten(*those)), parameters)],
            parameters,
            facts={"as_of": len(those)},
        ).table()
        for those in (islands, [*islands, *[("x", "ann"), ("ann", "x")] * 3])
    )

    found = difference_table(then, now)

    changed = {row["entrant"] for row in found.rows if row["rating_change"] is not None}
    assert changed == told
    assert all(row["n_battles_change"] is not None for row in found.rows)


@pytest.mark.parametrize(("between", "is_told"), [(0.5, False), (0.95, True)])
def test_a_style_of_each_entrants_own_is_told_to_be_no_effect(
    between: float, *, is_told: bool
) -> None:
    """Controlled for it, the longest may rise or fall by any number of points."""
    board = leaderboard("utility", in_columns(beaten(*RING)), PLAIN)
    for lower, upper in ((None, None), (0.0, 0.2)):
        effect = Coefficient("length", 0.1, lower, upper, 0.3, between_entrants=between)

        said = coefficient_note(board, effect)

        assert ("who wrote the responses explains 95% of it" in said) is is_told


GAMES = {("ann", "bob"): (60, 20, 5), ("bob", "cleo"): (30, 28, 0), ("ann", "cleo"): (55, 25, 0)}


def test_json_has_the_matrices_of_all_pairs() -> None:
    """Who tests a difference needs the covariance; null stands where nothing is known."""
    fought = in_columns(played({**GAMES, ("zoe", "ann"): (5, 0, 0)}))
    table = RatedBoards([leaderboard("utility", fought, PLAIN)], PLAIN).table(pairs=True)

    fit = json.loads(rendered(table, Format.JSON))["fits"]["utility"]

    assert fit["entrants"] == ["ann", "bob", "cleo", "zoe"]
    assert fit["covariance"][3] == [None] * 4
    assert sum(fit["covariance"][0][:3]) == pytest.approx(0, abs=1e-6)  # the mean is held
    assert fit["p_better"][0][1] + fit["p_better"][1][0] == pytest.approx(1)
    assert fit["p_better"][0][0] is None
