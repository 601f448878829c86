"""The finding: who leads or is tied, and what speaks against it."""

import numpy as np
import pytest
from msgspec.structs import replace

from commands.runs.report.finding import caveats_of, finding_of
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battle, battles_of
from projections.ratings.bradley_terry.leaderboard import Leaderboard, leaderboard
from projections.ratings.fragility import Fragility
from projections.tournament.compared import Account
from tests.support.builders.battles import beaten, draw_tournaments, played

PLAIN = BradleyTerryParameters()
ACCOUNT = Account(planned=100, decided=100, tie=0, inconsistent=0, failed=(), pending=0)


def board(battles: list[Battle], *roster: str) -> Leaderboard:
    """Return the leaderboard of battles."""
    return leaderboard("utility", battles_of(battles), PLAIN, roster)


CLEAR = {("ann", "bob"): (60, 20, 0), ("ann", "cleo"): (60, 20, 0), ("bob", "cleo"): (40, 40, 0)}
CLOSE = {("ann", "bob"): (42, 38, 0), ("ann", "cleo"): (60, 20, 0), ("bob", "cleo"): (60, 20, 0)}
EVEN = {("ann", "bob"): (6, 5, 0), ("ann", "cleo"): (6, 5, 0), ("bob", "cleo"): (6, 5, 0)}


@pytest.mark.parametrize(
    ("games", "verdict", "sentence"),
    [
        (CLEAR, "leads", "ann leads: it is significantly better than each of the other 2."),
        (
            {("ann", "bob"): (60, 20, 0)},
            "leads",
            "ann leads: it is significantly better than bob.",
        ),
        (CLOSE, "tied", "ann has the highest rating, but is statistically tied with bob."),
        (
            EVEN,
            "tied",
            "ann has the highest rating, but is statistically tied with all the others.",
        ),
    ],
    ids=["clear", "two", "close", "even"],
)
def test_who_leads_is_said_by_intervals_that_hold_for_all_at_once(
    games: dict[tuple[str, str], tuple[int, int, int]], verdict: str, sentence: str
) -> None:
    """The highest rating is no finding: somebody always has it."""
    found = finding_of(board(played(games)))

    assert (found.verdict, found.sentence) == (verdict, sentence)
    assert found.leaders[0] == "ann"


RING = [("ann", "bob"), ("bob", "cleo"), ("cleo", "ann")]


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([], "No pair is decided or tied, so nobody can be ranked."),
        (
            [("ann", "bob"), ("bob", "ann"), ("cleo", "dan"), ("dan", "cleo")],
            (
                "The entrants fall into 2 groups that cannot be compared: no chain of wins leads"
                " from one to the other, so nobody leads."
            ),
        ),
        (
            [*RING * 3, ("zoe", "ann")],
            (
                "zoe lost to nobody in 1 battle, so its lead has no finite rating and no interval:"
                " more prompts would give one."
            ),
        ),
        (
            RING,
            (
                "ann, bob and cleo share the highest rating, but it is unknown how sure that is"
                " (2 prompts: at least 6 are needed)."
            ),
        ),
    ],
    ids=["nothing", "apart", "undefeated", "few"],
)
def test_nobody_leads_where_nothing_can_be_said(
    pairs: list[tuple[str, str]], sentence: str
) -> None:
    """A leader without an interval is a guess, and is called none."""
    found = finding_of(board(beaten(*pairs), "ann", "bob"))

    assert (found.verdict, found.sentence) == ("open", sentence)


STRENGTHS = np.array([0.0, 0.1, 0.4, 0.5])


def test_a_bound_beside_zero_says_on_which_side() -> None:
    """Rounded to 0 it would leave open, or contradict, whether somebody leads."""
    games = {
        ("ann", "bob"): (60, 34, 0),
        ("ann", "cleo"): (60, 20, 0),
        ("bob", "cleo"): (60, 20, 0),
    }

    found = finding_of(board(played(games)))

    assert found.verdict == "tied"
    assert found.evidence.endswith("lies between \N{MINUS SIGN}0.1 and 147.7.")


def share_right(n: int) -> float:
    """Return in how many of n planted tournaments the finding names the best entrant.

    "leads" is right of nobody but the best, "tied" if the best is among those named.
    """
    drawn = draw_tournaments(n, n_prompts=40, strengths=STRENGTHS)
    found = [finding_of(leaderboard("planted", each, PLAIN)) for each in drawn]
    return float(np.mean(["e03" in each.leaders for each in found]))


def test_the_finding_names_the_best_of_planted_tournaments() -> None:
    """The sentence at the top is the only one that many will read."""
    assert share_right(3) == 1.0


@pytest.mark.nightly
def test_the_finding_is_right_in_95_percent_of_a_thousand_planted_tournaments() -> None:
    """The promise, on as many as show it."""
    assert share_right(1_000) >= 0.95


def caveats(**fields: object) -> tuple[str, ...]:
    """Return the caveats of a clear board by two judges, with another account."""
    account = Account(**{**ACCOUNT.__dict__, **fields})
    return caveats_of(
        board(played(CLEAR)), account, (), ["ann", "bob"], n_prompts=100, drops_ties=True
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ()),
        (
            {"inconsistent": 100},
            (
                (
                    "50% of the judged pairs are inconsistent: the judge contradicted itself when"
                    " the responses changed places. They do not count."
                ),
            ),
        ),
        (
            {"failed": (("refused", 3),), "pending": 4},
            ("7 of 100 pairs have no outcome: 3 refused and 4 pending.",),
        ),
        (
            {"tie": 100},
            (
                (
                    "50% of the decided and tied pairs are ties: half a win for each side, and left"
                    " out of Elo."
                ),
            ),
        ),
    ],
)
def test_what_speaks_against_a_finding_stands_below_it(
    fields: dict[str, object], said: tuple[str, ...]
) -> None:
    """A rating without what is missing from it would pass for complete."""
    assert caveats(**fields) == said


def test_thin_evidence_a_few_prompts_and_a_single_judge_are_told() -> None:
    """Each of them alone can turn the finding."""
    thin = board(played({("ann", "bob"): (12, 8, 0)}))
    decided = Fragility("ann", "bob", gap=30.0, n_prompts=20, decisive=("p7",))

    said = caveats_of(thin, ACCOUNT, [decided], ["kim"], n_prompts=20, drops_ties=False)

    assert said == (
        "Thin evidence: nobody was compared on more than 20 prompts.",
        "Without one prompt of 20, bob is not behind ann.",
        "A single judge, kim, decided; another judge might decide otherwise.",
    )
    many = decided._replace(decisive=("p1", "p2"))
    found = caveats_of(thin, ACCOUNT, [many], ["kim"], n_prompts=20, drops_ties=False)
    assert len(found) == 2


def test_where_nothing_was_judged_no_judge_decided_and_no_prompt_is_counted() -> None:
    """A page that is made early says what is missing, and nothing that is not so."""
    nothing = Account(planned=3, decided=0, tie=0, inconsistent=0, failed=(), pending=3)

    said = caveats_of(board([], "ann"), nothing, (), ["kim"], n_prompts=0, drops_ties=True)

    assert said == ("3 of 3 pairs have no outcome: 3 pending.",)


def test_who_is_rated_alike_shares_the_lead() -> None:
    """Where all pairs are ties, the alphabet decides who stands first, and nobody leads."""
    ties = {("ann", "bob"): (0, 0, 9), ("ann", "cleo"): (0, 0, 9), ("bob", "cleo"): (0, 0, 9)}

    found = finding_of(board(played(ties)))

    assert found.leaders == ("ann", "bob", "cleo")
    assert found.sentence == (
        "ann, bob and cleo share the highest rating, but it is unknown how sure that is"
        " (all prompts agree)."
    )


def test_a_wider_level_makes_more_ties() -> None:
    """The level of the settings is the level of the sentence."""
    strict = replace(PLAIN, level=0.9999999)
    games = {("ann", "bob"): (50, 30, 0)}

    assert finding_of(board(played(games))).verdict == "leads"
    assert finding_of(leaderboard("", battles_of(played(games)), strict)).verdict == "tied"
