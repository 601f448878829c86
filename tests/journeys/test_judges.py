"""Whether judges agree, whether p_correct can be believed, and ratings by other policies."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger.events.registration import TournamentOpened
from ledger.store import Ledger
from tests.support.builders.events import STREAM, entrant, instructions, opened, prompt
from tests.support.builders.worlds import JURORS, SLOT_A, TIE, A, B, Said, court, heard, sure
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields


@pytest.fixture(scope="module")
def tourney_with_p_correct(tmp_path_factory: pytest.TempPathFactory) -> Tourney:
    """Give a function that runs the command line beside a ledger in which zoe says p_correct."""
    folder = tmp_path_factory.mktemp("p_correct")
    events = heard(sure(court(2), {"zoe": 0.9}), [A, TIE, A, A, A], [B, B])
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, events)
    return partial(launch, folder)


def test_responses_are_held_against_gold_answers(tourney_with_p_correct: Tourney) -> None:
    """No response of this ledger holds `aspirin`."""
    found = fields(tourney_with_p_correct("project", "calibration", "--json"))

    (measures,) = found["measures"]
    assert (found["against"], found["tournament"]) == ("gold", STREAM)
    assert (measures["entrant"], measures["n"], measures["ece"]) == ("zoe", 2, 0.9)


def test_responses_are_held_against_a_judges_verdicts(tourney_with_p_correct: Tourney) -> None:
    """By the judge that is named, and by the rule that is named: ann gives zoe 3.5 of 4."""
    judged = ("project", "calibration", "--against", "judged", "--json")
    first = fields(tourney_with_p_correct(*judged, "--dimension", "factuality"))
    named = fields(tourney_with_p_correct(*judged, "--judge", "bob"))

    assert (first["judge"], first["rows"][9]["correctness"]) == ("ann", 0.875)
    assert (named["judge"], named["rows"][9]["correctness"]) == ("bob", 0.0)
    assert named["measures"][0]["n_left_out"] == 1


@pytest.mark.parametrize("option", [("--judge", "ann"), ("--policy", "majority")])
def test_options_of_verdicts_are_refused_beside_gold_answers(
    tourney_with_p_correct: Tourney, option: tuple[str, str]
) -> None:
    """Whoever names a judge believes to see that judge's verdicts."""
    done = tourney_with_p_correct("project", "calibration", *option)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--against judged" in done.stderr


CONFIGURATION = '{"elo": {"permutations": 2}}'
SAIDS: tuple[Sequence[Said | None], ...] = (
    [A, A, A, SLOT_A, TIE],
    [A, B, A, A, TIE],
    [A, B, SLOT_A, A, A],
)


def recorded(folder: Path, *saids: Sequence[Said | None]) -> Tourney:
    """Record a tournament of which judges say this, and return the command line there."""
    opening, *others = heard(court(len(saids)), *saids)
    assert isinstance(opening, TournamentOpened)
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [replace(opening, configuration=CONFIGURATION), *others])
    return partial(launch, folder)


@pytest.fixture(scope="module")
def tourney(tmp_path_factory: pytest.TempPathFactory) -> Tourney:
    """Give a function that runs the command line beside a ledger of three judges."""
    return recorded(tmp_path_factory.mktemp("three"), *SAIDS)


def statuses(tourney: Tourney, *options: str) -> list[str]:
    """Return what became of the first five pairings."""
    done = tourney("project", "matches", "--json", *options)
    assert done.returncode == 0, done.stderr
    return [row["status"] for row in fields(done)["rows"][:5]]


def test_a_policy_is_chosen_by_its_name(tourney: Tourney) -> None:
    """One set of verdicts, paid for once, answers each; on every command it means the same.

    Two lines of one pair must be told apart, by people and by machines.
    """
    found = {
        policy: statuses(tourney, "--policy", policy)
        for policy in ("swap-consistent", "abstain-on-flip", "majority")
    }
    rows = fields(tourney("project", "matches", "--policy", "concatenate", "--json"))["rows"]
    rates = fields(tourney("project", "winrates", "--policy", "concatenate", "--json"))
    elo = fields(tourney("project", "elo", "--policy", "majority", "--json"))

    assert found == {
        "swap-consistent": ["a", "a", "a", "inconsistent", "tie"],
        "abstain-on-flip": ["a", "a", "a", "abstained", "tie"],
        "majority": ["a", "b", "a", "a", "tie"],
    }
    orders = [(row["order"], row["status"]) for row in rows[6:8]]
    assert orders == [("forward", "a"), ("swapped", "b")]
    assert sum(row["a_wins"] + row["b_wins"] + row["ties"] for row in rates["rows"]) == 10
    assert sum(row["inconsistent"] for row in rates["rows"]) == 0
    assert (elo["judge"], elo["judges"]) == (None, ["ann", "bob", "cleo"])
    assert (elo["policy"], elo["parser"]) == ("majority", None)
    assert elo["accounts"]["factuality"]["decided"] == 4


def test_replies_are_read_again_by_the_parser_that_is_named(tourney: Tourney) -> None:
    """A name without a version is its newest version; every result says which it was."""
    again = fields(tourney("project", "winrates", "--parser", "lenient-tap", "--json"))
    unread = tourney("status", "--parser", "json-verdict@1")

    assert (again["policy"], again["parser"]) == ("swap-consistent", "lenient-tap@1")
    assert "5 unreadable + 1 pending" in unread.stdout
    assert "from replies read by json-verdict@1. They are not recorded." in unread.stdout


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--policy", "?"), "known: swap-consistent, concatenate, abstain-on-flip, majority"),
        (("--parser", "final-line@7"), "did you mean 'final-line@2'"),
        (("--policy", "majority", "--judge", "ann"), "leave out --judge"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(
    tourney: Tourney, options: tuple[str, ...], hint: str
) -> None:
    """Whoever mistypes is told the nearest name, and never gets the usual rule instead."""
    done = tourney("project", "elo", *options)

    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr


@pytest.mark.parametrize("view", ["status", "project agreement"])
def test_a_view_of_single_judges_has_no_majority(tourney: Tourney, view: str) -> None:
    """One judge's share of a majority is nothing that could be shown."""
    done = tourney(*view.split(), "--policy", "majority")

    assert (done.returncode, done.stdout) == (2, "")


def test_the_first_judge_that_judged_is_read_unless_another_is_named(tmp_path: Path) -> None:
    """A pilot is judged by another than the headline: its results are what there is to see."""
    tourney = recorded(tmp_path, [], [A, B])

    assert statuses(tourney)[:2] == ["a", "b"]
    assert statuses(tourney, "--judge", "ann")[:2] == ["pending", "pending"]


def test_agreement_shows_each_judge_each_pair_and_all(tourney: Tourney) -> None:
    """Whether to trust a judge is asked before its ranking; of a panel one may want a new one."""
    rows = fields(tourney("project", "agreement", "--json"))["rows"]
    found = {(row["judges"], row["measure"]): (row["value"], row["n"]) for row in rows}
    of_cleo = fields(tourney("project", "agreement", "--json", "--judge", "cleo"))["rows"]

    assert found["ann", "order consistency"] == (0.8, 5)
    assert found["ann, bob", "agreement"] == (0.6, 5)
    assert found["ann, bob, cleo", "Fleiss' kappa"][1] == 5
    assert {name for _, name in found} >= {"Cohen's kappa", "Spearman's rho", "Kendall's tau-b"}
    assert {row["judges"] for row in of_cleo} == {
        *("cleo", "ann, cleo", "bob, cleo", "ann, bob, cleo"),
    }


def test_two_judges_are_compared_on_the_same_battles(tourney: Tourney) -> None:
    """Two prompts are too few for an interval; what differs is there to be read."""
    done = tourney("project", "compare-judges", "ann", "bob")
    pairs = fields(tourney("project", "compare-judges", "ann", "bob", "--pairs", "--json"))
    battles = fields(tourney("project", "compare-judges", "ann", "bob", "--battles", "--json"))
    shown = tourney("battle", battles["rows"][0]["id"][:12])
    refused = tourney("project", "compare-judges", "ann", "bob", "--margin", "nan")

    assert "factuality: not enough battles to say whether ratings are comparable" in done.stdout
    assert "A: ann. B: bob." in done.stdout
    assert sum(row["n_changed"] for row in pairs["rows"]) == 2
    assert [(row["by_a"], row["by_b"]) for row in battles["rows"]] == [
        ("zoe", "kim"),
        ("inconsistent", "zoe"),
    ]
    assert battles["comparisons"][0]["verdict"] == "not enough battles"
    assert battles["comparisons"][0]["n_opposite"] == 1
    assert shown.returncode == 0, shown.stderr
    assert "nan is not a finite number" in refused.stderr


def test_a_judge_is_compared_with_itself_under_other_instructions(tmp_path: Path) -> None:
    """What was judged before is on record, and has a name."""
    before = heard(court(1), [A, B, TIE])
    again = opened(
        prompts=[prompt("p1"), prompt("p2")],
        entrants=[entrant("zoe"), entrant("amy"), entrant("kim")],
        judges=JURORS[:1],
        opening=2,
        told=instructions("Compare well."),
    )
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, heard((*before, *again), [A, A]))
    here = partial(launch, tmp_path)

    found = fields(here("project", "compare-judges", "ann@1", "ann", "--battles", "--json"))
    unknown = here("project", "compare-judges", "ann@3", "ann")

    assert [(row["by_a"], row["by_b"]) for row in found["rows"]] == [("kim", "zoe")]
    assert found["comparisons"][0]["n_battles"] == 2
    assert unknown.returncode == 2
    assert "judge 'ann@3'" in unknown.stderr
    assert "ann@1" in unknown.stderr
