"""The finding: who is shown to lead, and what speaks against it."""

import numpy as np
import pytest

from commands.report.finding import caveats_of, finding_of
from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.bradley_terry.leaderboard import Leaderboard, leaderboard
from projections.results.ratings import FragilityRow
from projections.tournament.compared import Account
from tests.support.builders.battles import Battle, beaten, draw_tournaments, in_columns, played
from tests.support.builders.events import judge

PLAIN = BradleyTerryParameters()
OPUS = judge("opus", provider="anthropic", model="claude-opus-5-5")
ACCOUNT = Account(planned=100, decided=100, tie=0, inconsistent=0, failed=(), pending=0)


def board(battles: list[Battle], *roster: str) -> Leaderboard:
    """Return the leaderboard of battles."""
    return leaderboard("utility", in_columns(battles), PLAIN, roster)


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
        (CLOSE, "not shown", "ann has the highest rating, but is not shown to differ from bob."),
        (
            EVEN,
            "not shown",
            "ann has the highest rating, but is not shown to differ from any of the others.",
        ),
    ],
    ids=["clear", "two", "close", "even"],
)
def test_who_leads_is_said_by_intervals_that_hold_for_all_at_once(
    games: dict[tuple[str, str], tuple[int, int, int]], verdict: str, sentence: str
) -> None:
    """The highest rating is no finding: somebody always has it."""
    found = finding_of(board(played(games)), ACCOUNT)

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
                "zoe won or tied all its battles (1). That gives no finite rating, so it is not"
                " shown to be better."
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
    found = finding_of(board(beaten(*pairs), "ann", "bob"), ACCOUNT)

    assert (found.verdict, found.sentence) == ("open", sentence)


STRENGTHS = np.array([0.0, 0.1, 0.4, 0.5])


def test_a_bound_beside_zero_says_on_which_side() -> None:
    """Rounded to 0 it would leave open, or contradict, whether somebody leads."""
    games = {
        ("ann", "bob"): (60, 34, 0),
        ("ann", "cleo"): (60, 20, 0),
        ("bob", "cleo"): (60, 20, 0),
    }

    found = finding_of(board(played(games)), ACCOUNT)

    assert found.verdict == "not shown"
    assert found.evidence.endswith("lies between \N{MINUS SIGN}0.1 and 147.7.")


def share_right(n: int) -> float:
    """Return in how many of n planted tournaments the finding names the best entrant.

    "leads" is right of nobody but the best, "not shown" if the best is among those named.
    """
    drawn = draw_tournaments(n, n_prompts=40, strengths=STRENGTHS)
    found = [finding_of(leaderboard("planted", each, PLAIN), ACCOUNT) for each in drawn]
    return float(np.mean(["e03" in each.leaders for each in found]))


def test_the_finding_names_the_best_of_planted_tournaments() -> None:
    """The sentence at the top is the only one that many will read."""
    assert share_right(3) == 1.0


@pytest.mark.nightly
def test_the_finding_is_right_in_95_percent_of_a_thousand_planted_tournaments() -> None:
    """The promise, on as many as show it."""
    assert share_right(1_000) >= 0.95


def counting(**fields: object) -> Account:
    """Return another account."""
    return Account(**{**ACCOUNT.__dict__, **fields})


def caveats(**fields: object) -> tuple[str, ...]:
    """Return the caveats of a clear board but that on its judge, with another account."""
    account = counting(**fields)
    return caveats_of(
        board(played(CLEAR)), account, (), OPUS, n_prompts=100, drops_ties=True, failed={}
    )[:-1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ()),
        (
            {"inconsistent": 100, "opposite": 30, "beside": 70},
            (
                (
                    "50% of the judged pairs are inconsistent (100 of 200: 30 with opposite"
                    " winners, 70 with a tie beside a win): the verdict depends on which response"
                    " is shown first. Each verdict counts by itself, but Elo leaves these pairs"
                    " out."
                ),
            ),
        ),
        (
            {"failed": (("refused", 3),), "pending": 4},
            (
                (
                    "7 of 100 pairs have no outcome: 3 refused and 4 pending. A pair without an"
                    " outcome counts for nobody and against nobody."
                ),
            ),
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
    decided = FragilityRow(
        "style", "ann", "bob", gap=30.0, n_decisive=1, n_prompts=20, decisive=("p7",)
    )

    said = caveats_of(thin, ACCOUNT, [decided], OPUS, n_prompts=20, drops_ties=False, failed={})

    assert said == (
        "Thin evidence: nobody was compared on more than 20 prompts.",
        "Without one prompt of 20, bob is not behind ann.",
        "A single judge, opus, decided; another judge might decide otherwise.",
    )
    many = decided._replace(decisive=("p1", "p2"))
    found = caveats_of(thin, ACCOUNT, [many], OPUS, n_prompts=20, drops_ties=False, failed={})
    assert len(found) == 2


def test_where_nothing_was_judged_no_judge_decided_and_no_prompt_is_counted() -> None:
    """A page that is made early says what is missing, and nothing that is not so."""
    nothing = Account(planned=3, decided=0, tie=0, inconsistent=0, failed=(), pending=3)

    said = caveats_of(board([], "ann"), nothing, (), OPUS, n_prompts=0, drops_ties=True, failed={})

    (only,) = said
    assert only.startswith("3 of 3 pairs have no outcome: 3 pending. ")


def test_who_failed_and_what_an_offline_judge_measures_is_named() -> None:
    """A missing answer is neither a lost battle nor nobody's fault."""
    account = counting(decided=43, failed=(("no_response", 57),))

    said = caveats_of(
        board(played(CLEAR)),
        account,
        (),
        judge("reference"),
        n_prompts=100,
        drops_ties=True,
        failed={"cleo": 20, "bob": 1},
    )

    assert said == (
        (
            "57 of 100 pairs have no outcome: 57 no response. Failed: 20 responses of cleo and 1"
            " response of bob. A pair without an outcome counts for nobody and against nobody."
        ),
        (
            "The offline judge, reference, decided: it measures overlap of letters with the gold"
            " answer, not quality."
        ),
    )


@pytest.mark.parametrize("games", [CLEAR, CLOSE], ids=["leads", "not shown"])
def test_while_pairs_are_pending_the_finding_says_how_many_are_judged(
    games: dict[tuple[str, str], tuple[int, int, int]],
) -> None:
    """A finding at a quarter of the way is none of the whole tournament."""
    account = counting(planned=1_125, decided=299, pending=826)

    whole, partial = (finding_of(board(played(games)), each) for each in (ACCOUNT, account))

    assert partial.sentence == f"299 of 1,125 pairs judged so far. {whole.sentence}"
    assert partial[:2] == whole[:2]


def test_who_has_no_finite_rating_is_not_among_those_who_were_compared() -> None:
    """One who lost its only battle is not shown to be worse than anybody."""
    games = {**CLEAR, ("ann", "eve"): (1, 0, 0)}
    even = {**EVEN, ("ann", "eve"): (1, 0, 0)}

    leads, level = (finding_of(board(played(each)), ACCOUNT) for each in (games, even))

    assert leads.sentence == (
        "ann leads among the 3 of 4 entrants whose ratings compare: it is significantly better than"
        " each of the other 2."
    )
    assert level.sentence == (
        "ann has the highest rating among the 3 of 4 entrants whose ratings compare, but is not"
        " shown to differ from any of the others."
    )


def test_who_is_rated_alike_shares_the_lead() -> None:
    """Where all pairs are ties, the alphabet decides who stands first, and nobody leads."""
    ties = {("ann", "bob"): (0, 0, 9), ("ann", "cleo"): (0, 0, 9), ("bob", "cleo"): (0, 0, 9)}

    found = finding_of(board(played(ties)), ACCOUNT)

    assert found.leaders == ("ann", "bob", "cleo")
    assert found.sentence == (
        "ann, bob and cleo share the highest rating, but it is unknown how sure that is"
        " (all prompts agree)."
    )
