"""The Bradley-Terry table of a report."""

import re
from html import escape

import pytest
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.artifacts._report import strengths
from projections.battles.columns import battles_of
from projections.ratings.bradley_terry.leaderboard import leaderboard
from tests.projections.fought import beaten

PLAIN = BradleyTerryParameters()
RING = [("ann", "bob"), ("bob", "cleo"), ("cleo", "ann"), ("ann", "bob")]


def section(*pairs: tuple[str, str], parameters: BradleyTerryParameters = PLAIN) -> str:
    """Return the table after the first of each pair beat the second, each on its own prompt."""
    return strengths(leaderboard("utility", battles_of(beaten(*pairs)), parameters, ["dan"]))


def cells(source: str, entrant: str) -> list[str]:
    """Return an entrant's row, without its name."""
    (row,) = re.findall(rf"<tr><td>{re.escape(entrant)}</td>(.*)</tr>", source)
    return re.findall("<td>(.*?)</td>", row)


def test_each_rating_has_its_interval_and_its_ranks() -> None:
    """Of three that took something off each other nobody is surely first."""
    rating, low, high, *ranks = cells(section(*RING), "ann")

    assert float(low) < float(rating) < float(high)
    assert ranks == ["1", "3", "3"]


def test_who_has_no_rating_has_the_reason_in_its_place() -> None:
    """An empty cell would leave a reader to guess."""
    source = section(*RING, ("zoe", "ann"))

    assert cells(source, "zoe")[0] == "not rated: undefeated"
    assert cells(source, "dan") == ["not rated: no battle", "", "", "", "", "0", ""]


def test_groups_are_numbered_where_ratings_do_not_compare() -> None:
    """Two groups have a mean of 1000 each, which says nothing of both."""
    source = section(*RING, ("zoe", "ann"), ("yan", "xia"), ("xia", "yan"))

    groups = {name: cells(source, name)[-1] for name in ("zoe", "ann", "bob", "cleo", "xia", "yan")}
    assert groups["ann"] == groups["bob"] == groups["cleo"]
    assert groups["xia"] == groups["yan"]
    assert "Compare ratings within a group only." in source
    assert f"Group {groups['zoe']} is above {groups['ann']}." in source
    assert f"Group {groups['xia']} is not comparable with others." in source
    assert "Group" not in section(*RING).partition("<tbody>")[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Cluster-robust (sandwich) interval, clustered by prompts."),
        (
            {"interval": "bayesian", "resamples": 20},
            "Interval from 20 bayesian resamples of prompts",
        ),
        ({}, "The mean of a group is 1000."),
        ({"anchor": "bob", "anchor_rating": 900.0}, "bob is at 900; elsewhere the mean of a group"),
        ({"anchor": "dan"}, "The mean of a group is 1000."),
        ({"level": 0.9}, '<th scope="col">90 % low</th>'),
        ({}, "Bradley-Terry, ties as half a win each</caption>"),
        ({"ties": "davidson", "prior_sd": 300.0}, "ties by Davidson, prior of sd 300</caption>"),
    ],
)
def test_what_the_figures_are_is_said_beside_them(options: dict[str, object], said: str) -> None:
    """Two intervals that differ by a half are both called one in most leaderboards."""
    assert said in section(*RING, parameters=replace(PLAIN, **options))


def test_a_bound_that_nobody_knows_is_explained() -> None:
    """With few battles some resamples have no fit, and the bounds are beyond all numbers."""
    parameters = replace(PLAIN, interval="multinomial", resamples=50)

    source = section(("ann", "bob"), ("bob", "ann"), parameters=parameters)

    assert cells(source, "ann")[1:3] == ["", ""]
    assert "A bound is missing where no two prompts differ, or it is infinite." in source
    assert re.search(
        "Resamples without a finite fit: [0-9]+; they count as beyond both bounds.", source
    )
    assert "A bound is missing" not in section(*RING)


def test_names_are_shown_and_never_run() -> None:
    """The anchor's name stands in a sentence, too."""
    name = "<script>alert(1)</script>"

    source = section(("bob", name), (name, "bob"), parameters=replace(PLAIN, anchor=name))

    assert name not in source
    assert source.count(escape(name)) == 2
