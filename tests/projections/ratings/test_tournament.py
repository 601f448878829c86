"""A tournament's Bradley-Terry ratings."""

import pytest
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from ledger.events.responses import ResponseGenerated
from ledger.identity import Dimension
from projections.battles.columns import Battles, battles_of
from projections.ratings.tournament import Groups, overall, style_controlled
from projections.tournament.settlement import by_dimension as grouped
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import RUBRICS, Fate, answered, become, matches_of, settled

PLAIN = BradleyTerryParameters()
ROSTER = [entrant(name).entrant_id for name in ("zoe", "amy", "kim")]
DECIDED: tuple[Fate, ...] = ("a", "b", "tie", "b", "a", "a", "a", "tie", "b", "b", "b", "a")
TEXTS = ("short", "# A header\n\n- one\n- **two**\n", "of middling length", "* a\n* b\n")


def groups(*fates: Fate) -> Groups:
    """Return what became of four prompts' pairs on two dimensions; responses differ in style."""
    prompts = [prompt(name) for name in ("p1", "p2", "p3", "p4")]
    roster = [entrant(name) for name in ("zoe", "amy", "kim")]
    opening = opened(prompts=prompts, entrants=roster, rubrics=RUBRICS)
    events = [
        replace(event, text=f"{TEXTS[n % 4]}{n}" * (1 + n % 3))
        if isinstance(event, ResponseGenerated)
        else event
        for n, event in enumerate(answered(opening))
    ]
    fated = zip(matches_of(known(*events)), fates, strict=False)
    tournament = known(*events, *(event for match, fate in fated for event in become(match, fate)))
    return grouped(tournament, settled(tournament))


def columns(groups: Groups) -> dict[Dimension, Battles]:
    """Return settlements in columns."""
    return {dimension: battles_of(group) for dimension, group in groups.items()}


def test_an_overall_rating_is_the_weighted_mean_of_ratings() -> None:
    """A dimension that is not named counts nothing."""
    found = groups(*DECIDED, *reversed(DECIDED))
    board, ratings = overall(found, {"factuality": 3.0, "utility": 1.0}, PLAIN, ROSTER)
    alone, _ = overall(found, {"utility": 2.0}, PLAIN, ROSTER)

    parts = {part.dimension: part.ratings.rating for part in ratings.parts}
    mean = 0.75 * parts["factuality"] + 0.25 * parts["utility"]
    assert ratings.ratings.rating == pytest.approx(mean)
    assert board.name == "overall"
    assert alone.ratings.rating == pytest.approx(parts["utility"])


def test_who_is_not_rated_on_every_dimension_is_told_just_that() -> None:
    """It fought, and is linked: which dimension keeps it from a rating is said beside."""
    truth: tuple[Fate, ...] = ("a", "a", "a", "a", "a", "b")  # zoe undefeated, others even
    style: tuple[Fate, ...] = ("b", "b", "a", "b", "b", "b")  # zoe winless
    fates = [fate for n in (0, 3) for each in (truth, style) for fate in each[n : n + 3]]

    board, ratings = overall(groups(*fates), {"factuality": 1.0, "utility": 1.0}, PLAIN, ROSTER)

    reasons = {place.entrant: place.reason for place in board.rows}
    assert reasons == {"zoe": "not rated on every dimension", "amy": None, "kim": None}
    assert [reason for _, reason in ratings.missing("zoe")] == ["undefeated", "winless"]


def test_style_is_that_of_the_responses_that_met() -> None:
    """What a longer response wins is taken off whoever writes long ones."""
    found = style_controlled(groups(*DECIDED, *DECIDED), ("length", "lists"), PLAIN, ROSTER)

    assert [board.name for board, _ in found] == ["factuality", "utility"]
    for board, adjusted in found:
        assert [each.feature for each in adjusted.coefficients] == ["length", "lists"]
        assert adjusted.ratings.rating != pytest.approx(adjusted.plain.rating)
        assert {place.entrant for place in board.rows} == {"zoe", "amy", "kim"}
