"""The report of a run."""

import re
from html import escape
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import StreamId
from projections.artifacts._report import report, strengths
from projections.artifacts.results import results_of
from projections.battles.columns import battles_of
from projections.ratings.bradley_terry.leaderboard import leaderboard
from tests.support.builders.battles import beaten
from tests.support.builders.events import entrant, judge, known, opened, rubric
from tests.support.builders.worlds import ELO, RUBRICS, cup, history, publication, results

HOSTILE = "<script>alert('&amp;')</script><img src=x onerror=\"alert(1)\">"


class Page(HTMLParser):
    """A page as a browser reads it: its elements, attributes and text."""

    def __init__(self, source: str) -> None:
        """Read the source."""
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.headings: list[str] = []  # of columns
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)
        if self.get_starttag_text() == '<th scope="col">' and data.strip():
            self.headings.append(data)


def test_what_people_named_is_shown_and_never_run() -> None:
    """A report is opened by people who did not choose the names in it."""
    hostile = opened(
        entrants=[entrant(HOSTILE), entrant("base")],
        rubrics=[rubric(HOSTILE)],
        judges=[judge("reference", model=HOSTILE)],
    )
    tournament = known(*hostile, stream=StreamId(HOSTILE))

    page = Page(report(results_of(tournament, publication(tournament))))

    assert page.elements.isdisjoint({"script", "img"})
    assert "onerror" not in page.attributes
    assert page.texts.count(HOSTILE) == 3  # the dimension's heading, and the entrant's two rows
    assert f"{HOSTILE}: pilot run" in page.texts


def test_the_report_loads_and_runs_nothing() -> None:
    """It is mailed, archived and printed, and must look the same without a network."""
    page = Page(report(results(*history(cup(), "a"))))

    assert page.elements.isdisjoint({"script", "link", "img", "iframe", "object", "form", "a"})
    assert page.attributes.isdisjoint({"src", "href", "style", "onload", "onclick"})


def test_a_browser_is_told_to_run_nothing() -> None:
    """Should escaping ever fail, the page's own policy still forbids scripts and requests."""
    source = report(results(*cup()))

    assert source.startswith('<!doctype html>\n<html lang="en">\n')
    assert (
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    ) in source


def test_every_column_has_a_heading() -> None:
    """A number without a name is read as whatever the reader hopes for."""
    page = Page(report(results(*cup())))

    assert page.headings == [
        *("Entrant", "Elo", "Order SEM", "Matches"),
        *("Entrant", "Rating", "95 % low", "95 % high", "Rank", "Battles"),
        *("Pair", "Wins", "Ties", "Inconsistent", "Missing"),
    ]
    assert "Head to head" in page.texts


def test_every_dimension_has_its_account() -> None:
    """Ratings without what is missing from them would pass for complete."""
    source = report(results(*history(opened(rubrics=RUBRICS), "a")))

    decided = "1 pairs = 1 decided + 0 tied + 0 inconsistent + 0 pending"
    pending = "1 pairs = 0 decided + 0 tied + 0 inconsistent + 1 pending"
    assert source.index("factuality") < source.index(decided)
    assert source.index(decided) < source.index("utility") < source.index(pending)


def test_the_leaderboard_shows_rounded_ratings_best_first() -> None:
    """Tables round; the files beside the report keep every digit."""
    texts = Page(report(results(*history(opened(), "b")))).texts

    at = texts.index("tuned")
    assert texts[at : at + 7] == ["tuned", "1408.0", "0.00", "1", "\n", "base", "1392.0"]
    assert "Elo at K = 16, mean over 4 orders of play" in texts


def test_an_unrated_entrant_is_said_to_be_unrated() -> None:
    """An empty cell, or 1400, would leave a reader to guess."""
    texts = Page(report(results(*history(cup(), "a")))).texts

    at = texts.index("kim")
    assert texts[at : at + 3] == ["kim", "not rated: no decisive match", "0"]


def test_the_spread_over_orders_is_not_called_an_error_of_the_rating() -> None:
    """It shrinks with the number of permutations, however few the matches are."""
    source = " ".join(report(results(*history(cup(), "a"))).split())

    assert "Order SEM says how much the mean depends on the orders drawn." in source
    assert "It is not the uncertainty of the rating.</p>" in source


def test_pairs_are_shown_head_to_head() -> None:
    """A rating hides who beats whom."""
    texts = Page(report(results(*history(cup(), "a", "tie", "inconsistent", "a")))).texts

    at = texts.index("amy : zoe")
    assert texts[at : at + 5] == ["amy : zoe", "0 : 2", "0", "0", "0"]
    at = texts.index("kim : zoe")
    assert texts[at : at + 5] == ["kim : zoe", "0 : 0", "1", "0", "1"]


def test_the_report_says_how_to_check_it() -> None:
    """A reader can fold the ledger again and compare."""
    found = results(*history(cup(), "a"))

    source = " ".join(report(found).split())

    assert f"the first {found.publication.as_of} events of the ledger" in source
    assert f"<code>{found.publication.head}</code>" in source
    assert "tourney replay --against runs/pilot_20260427_120000</code>" in source


def test_the_interval_stands_beside_the_rating_and_says_its_kind() -> None:
    """Without it the only figure beside a rating is the spread over orders, which is no error."""
    tournament = known(*history(cup(), "b", "b", "b", "a", "a", "a"))
    resampled = replace(ELO, bootstraps=30)

    page = Page(report(results_of(tournament, publication(tournament, resampled))))

    assert page.headings[:6] == [
        *("Entrant", "Elo", "95 % low", "95 % high", "Order SEM", "Matches")
    ]
    assert any(text.startswith("95 % interval by 30 resamples of 2 prompts") for text in page.texts)


def test_many_ties_bring_both_ratings_and_their_share() -> None:
    """Whoever reads only the report must see what becomes of the ties."""
    source = report(results(*history(cup(), "a", "b", "tie")))

    assert "Ties as half" in Page(source).headings
    assert "1 tie (33% of decided and tied pairs) is dropped" in source
    few = report(results(*history(cup(), "a", "b")))
    assert "Ties as half" not in Page(few).headings
    assert "is dropped" not in few


def test_strengths_stand_beside_elo() -> None:
    """Elo's figures depend on the order of play; these have an interval that does not."""
    found = results(*history(opened(), "a", "b"))

    texts = Page(report(found)).texts

    assert texts.index("Elo at K = 16, mean over 4 orders of play") < texts.index(
        "Bradley-Terry, ties as half a win each"
    )


PLAIN = BradleyTerryParameters()
RING = [("ann", "bob"), ("bob", "cleo"), ("cleo", "ann"), ("ann", "bob")] * 3


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
    assert ranks == ["1-3", "9"]


def test_who_has_no_rating_has_the_reason_in_its_place() -> None:
    """An empty cell would leave a reader to guess."""
    source = section(*RING, ("zoe", "ann"))

    assert cells(source, "zoe")[0] == "not rated: undefeated"
    assert cells(source, "dan") == ["not rated: no battle", "", "", "", "0", ""]


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

    source = section(*[("ann", "bob")] * 6, ("bob", "ann"), parameters=parameters)

    assert cells(source, "ann")[1:3] == ["", ""]
    assert "ann has no interval and no rank: too many resamples of prompts have no fit." in source
    assert re.search(
        "Resamples without a finite fit: [0-9]+; they count as beyond both bounds.", source
    )
    assert "has no interval" not in section(*RING)
    both = section(
        ("ann", "bob"), ("bob", "ann"), ("cleo", "dan"), ("dan", "cleo"), parameters=parameters
    )
    assert re.search("finite fit: [0-9]+ in group 1, [0-9]+ in group 2; they count", both)


def test_names_are_shown_and_never_run() -> None:
    """The anchor's name stands in a sentence, too."""
    name = "<script>alert(1)</script>"

    source = section(("bob", name), (name, "bob"), parameters=replace(PLAIN, anchor=name))

    assert name not in source
    assert source.count(escape(name)) == 2
