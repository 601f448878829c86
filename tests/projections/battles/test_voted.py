"""People's votes beside what a judge said of the same battles."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from projections.battles.columns import Battles
from projections.battles.voted import (
    VotedBattles,
    VoteSampling,
    both_judged,
    judged_battles,
    sampling_of,
    with_votes,
)
from projections.intervals import Floats
from tests.support.builders.battles import Battle, in_columns
from tests.support.builders.events import entrant, known, opened, prompt, responses
from tests.support.builders.worlds import SLOT_A, TIE, A, B, court, heard, settled

JUDGED = in_columns(
    [
        Battle("ann", "bob", 1.0, "p1"),
        Battle("ann", "bob", 0.0, "p2"),
        Battle("cat", "bob", 0.5, "p2"),
        Battle("bob", "ann", 1.0, "p2"),
    ]
)


def votes(*rows: Battle) -> Battles:
    """Return people's votes."""
    return in_columns(rows)


def test_a_vote_is_on_the_battle_of_the_same_prompt_and_entrants_in_any_order() -> None:
    """Whoever stood first on the screen, and in both orders of a judge."""
    found = with_votes(
        JUDGED, votes(Battle("bob", "ann", 1.0, "p1"), Battle("ann", "bob", 1.0, "p2"))
    )

    assert found.human == pytest.approx([0.0, 1.0, np.nan, 0.0], nan_ok=True)
    assert found.has_vote.tolist() == [True, True, False, True]
    assert (found.n_votes, found.n_unmatched, found.n_prompts) == (2, 0, 2)


def test_several_votes_are_their_mean_by_weight() -> None:
    """Three people of four."""
    found = with_votes(
        JUDGED, votes(Battle("bob", "ann", 0.0, "p1", weight=3.0), Battle("ann", "bob", 0.0, "p1"))
    )

    assert found.human[0] == 0.75
    assert found.n_votes == 2


def test_votes_on_what_was_not_judged_are_counted_and_not_used() -> None:
    """Another prompt, another pair, or no prompt at all."""
    nameless = replace(in_columns([Battle("ann", "bob", 1.0, "p1")]), prompts=())

    found = with_votes(
        JUDGED, votes(Battle("ann", "bob", 1.0, "p9"), Battle("ann", "cat", 1.0, "p2"))
    )

    assert (found.n_votes, found.n_unmatched) == (0, 2)
    assert not found.has_vote.any()
    assert with_votes(JUDGED, nameless).n_unmatched == 1


def test_correlation_does_not_depend_on_who_is_named_first() -> None:
    """And is undefined where the judge calls everything a tie."""
    rows = [Battle("ann", "bob", 1.0, "p1"), Battle("ann", "bob", 0.0, "p2")]
    swapped = [Battle("bob", "ann", 1 - row.score, row.prompt) for row in rows]
    said = votes(Battle("ann", "bob", 1.0, "p1"), Battle("ann", "bob", 0.5, "p2"))
    tied = in_columns(row._replace(score=0.5) for row in rows)

    assert with_votes(in_columns(rows), said).correlation == pytest.approx(0.5**0.5)
    assert with_votes(in_columns(swapped), said).correlation == pytest.approx(0.5**0.5)
    assert np.isnan(with_votes(tied, said).correlation)


def test_identical_responses_are_no_battle_for_votes_to_correct() -> None:
    """Nobody is asked to vote on them, so votes are a random sample of the others."""
    opening = opened(prompts=[prompt("p1")], entrants=[entrant(name) for name in ("zoe", "amy")])
    texts = {("zoe", "p1"): "Aspirin.", ("amy", "p1"): "Aspirin."}
    events = (*opening, *responses(known(*opening), texts))

    found = judged_battles(settled(known(*heard(events, [TIE]))))

    assert len(found) == 0


def test_two_judges_are_compared_on_identical_responses_too() -> None:
    """Both have them as ties, so they are part of what either's ratings are of."""
    prompts = [prompt("p1"), prompt("p2")]
    opening = opened(prompts=prompts, entrants=[entrant(name) for name in ("zoe", "amy")])
    texts = {(name, "p1"): "Aspirin." for name in ("zoe", "amy")}
    texts |= {(name, "p2"): f"{name} says so." for name in ("zoe", "amy")}
    events = (*opening, *responses(known(*opening), texts))
    cheap, strong = (settled(known(*heard(events, said))) for said in ([TIE, A], [TIE, SLOT_A]))

    found = both_judged(cheap, strong[:1])

    assert found.judged.score.tolist() == [0.5, 1.0]
    assert found.human == pytest.approx([0.5, np.nan], nan_ok=True)
    assert both_judged(cheap, strong).human.tolist() == [0.5, 0.5]


def test_a_prompt_is_the_truth_once_all_its_pairs_are_judged() -> None:
    """The pairs that are sent first do not stand for all."""
    whole, begun = (
        settled(known(*heard(court(1), [A] * 6))),
        settled(known(*heard(court(1), [B] * 5))),
    )

    assert both_judged(whole, begun).human == pytest.approx([0, 0, 0, *[np.nan] * 3], nan_ok=True)


def test_an_inconsistent_pair_is_judged_as_half_a_win_for_each() -> None:
    """People may be asked about it, and it is one that the judge finds hard."""
    state = known(*heard(court(1), [A, TIE, SLOT_A, B, B]))

    found = judged_battles(settled(state))

    assert found.score.tolist() == [1.0, 0.5, 0.5, 0.0, 0.0]


def test_votes_find_their_prompt_by_id_and_texts_make_clusters() -> None:
    """Two prompts of one text have responses of their own, and vary together."""
    found = with_votes(JUDGED, votes(Battle("ann", "bob", 1.0, "p2")), {"p1": "p1", "p2": "p1"})

    assert found.human == pytest.approx([np.nan, 1.0, np.nan, 0.0], nan_ok=True)
    assert (found.n_prompts, found.judged.prompts) == (1, ("p1",))


ENTRANTS = ("alpha", "beta", "delta", "gamma")
N_PROMPTS = 60
N_VOTES = 60
FIRST, SECOND = np.array([*combinations(range(len(ENTRANTS)), 2)]).T
STRENGTHS = np.array([0.6, 0.2, -0.2, -0.6])  # log odds


class Judged:
    """Battles of all entrants on all prompts, judged in both orders, with a seed of their own."""

    def __init__(self, seed: int) -> None:
        """Draw how much better each response is, and what the judge finds in either order."""
        self.rng = np.random.default_rng(seed)
        self.prompt = np.repeat(np.arange(N_PROMPTS), len(FIRST))
        self.a, self.b = np.tile(FIRST, N_PROMPTS), np.tile(SECOND, N_PROMPTS)
        luck = self.rng.normal(scale=2.5, size=len(self.prompt))
        self.gap = STRENGTHS[self.a] - STRENGTHS[self.b] + luck
        chance = 1 / (1 + np.exp(-self.gap))
        self.score = self.rng.binomial(2, chance) / 2

    def voted_on(self, chosen: NDArray[np.intp]) -> VotedBattles:
        """Return the battles with votes on some; what was voted is nobody's business here."""
        human = np.full(len(self.prompt), np.nan)
        human[chosen] = 1.0
        weight = np.ones(len(self.prompt))
        judged = Battles.by_score(ENTRANTS, self.a, self.b, self.score, self.prompt, weight)
        return VotedBattles(judged, human, len(chosen), n_unmatched=0)

    def sample(self) -> NDArray[np.intp]:
        """Draw battles at random."""
        return self.rng.choice(len(self.prompt), N_VOTES, replace=False)


def false_alarms(n: int) -> float:
    """Return the share of n random samples that are called none."""
    found = [Judged(seed) for seed in range(n)]
    return float(np.mean([bool(sampling_of(x.voted_on(x.sample())).doubts) for x in found]))


@pytest.mark.no_cover
def test_a_random_sample_is_seldom_called_none() -> None:
    """Whoever voted on what was drawn would learn to overlook the warning."""
    assert false_alarms(2) == 0


@pytest.mark.nightly
def test_five_percent_of_random_samples_are_called_none() -> None:
    """The promise, on as many as show it: 0.05 within three standard errors."""
    assert false_alarms(600) == pytest.approx(0.05, abs=0.027)


@pytest.mark.no_cover
def test_a_judge_asked_on_random_prompts_is_compared_prompt_by_prompt() -> None:
    """All pairs of a prompt go together, even if one of them failed; that is no choice of pairs."""
    drawn = Judged(0)
    chosen = np.flatnonzero(np.isin(drawn.prompt, drawn.rng.choice(N_PROMPTS, 20, False)))
    assert sampling_of(drawn.voted_on(chosen[1:]), by_prompt=True).doubts == ()
    assert "prompts" in sampling_of(drawn.voted_on(chosen)).doubts

    assert sampling_of(drawn.voted_on(np.arange(len(drawn.prompt))), by_prompt=True).doubts == ()
    first = sampling_of(drawn.voted_on(first_prompts(drawn)), by_prompt=True)
    assert "prompts" in first.doubts
    assert (first.n_voted, len(first.prompts), first.expected_prompts) == (60, 10, 10.0)


def test_prompts_that_are_known_to_be_random_are_not_compared() -> None:
    """The rest is said of them all the same."""
    drawn = Judged(0)
    battles = drawn.voted_on(first_prompts(drawn))

    found = sampling_of(battles, by_prompt=True, is_random=True)

    assert found == sampling_of(battles, by_prompt=True)._replace(doubts=())


def first_prompts(drawn: Judged) -> NDArray[np.intp]:
    """Choose all battles on the first ten prompts."""
    return np.flatnonzero(drawn.prompt < 10)


def one_pair(drawn: Judged) -> NDArray[np.intp]:
    """Choose one pair of entrants of six, on every prompt."""
    return np.flatnonzero((drawn.a == 0) & (drawn.b == 1))


def close(drawn: Judged) -> NDArray[np.intp]:
    """Choose the battles that look closest."""
    return np.argsort(np.abs(drawn.gap))[:N_VOTES]


def sampled(voted: VotedBattles) -> VoteSampling:
    """Return how votes were sampled, twice: nothing is drawn anew."""
    found = sampling_of(voted)
    assert sampling_of(voted) == found
    return found


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("design", "doubt"), [(first_prompts, "prompts"), (one_pair, "entrants"), (close, "outcomes")]
)
def test_a_planted_choice_is_noticed_and_named(design: object, doubt: str) -> None:
    """A judge's bias there says nothing of its bias elsewhere."""
    assert callable(design)
    drawn = Judged(0)

    assert doubt in sampling_of(drawn.voted_on(design(drawn))).doubts


@pytest.mark.no_cover
def test_what_is_told_of_a_choice_is_its_numbers() -> None:
    """Whoever reads the warning looks for where votes are missing."""
    drawn = Judged(1)
    early, pair = (sampling_of(drawn.voted_on(each(drawn))) for each in (first_prompts, one_pair))

    assert (early.n_voted, early.n_prompts) == (60, 60)
    assert early.prompts == (*range(1, 11),)
    assert early.expected_prompts == pytest.approx(60 * (1 - (5 / 6) ** 6), abs=2)
    assert (pair.most, pair.n_most, pair.expected_most) == (("alpha", "beta"), 60, 10)
    assert pair.without_vote == ("delta", "gamma")
    assert early.without_vote == ()
    assert early.no_winner[1] == np.mean(drawn.score == 0.5)


def test_prompts_that_come_early_are_noticed_where_each_has_one_battle() -> None:
    """Of two entrants the first ten prompts are not covered otherwise than any ten."""
    n, n_votes = 80, 20
    scores: Floats = np.tile((0.0, 1.0), n // 2)
    judged = Battles.by_score(
        ("ann", "bob"), np.zeros(n, int), np.ones(n, int), scores, np.arange(n), np.ones(n)
    )
    human = np.where(np.arange(n) < n_votes, 1.0, np.nan)

    assert sampled(VotedBattles(judged, human, n_votes, 0)).doubts == ("prompts",)


@pytest.mark.no_cover
def test_both_orders_of_a_pair_are_one_that_was_drawn() -> None:
    """Each vote is on both; counted twice, every sample would seem to be of few prompts."""
    drawn = Judged(2)
    once = drawn.voted_on(drawn.sample())
    orders = once.judged
    twice = VotedBattles(
        Battles.by_score(
            ENTRANTS,
            np.concatenate((orders.a, orders.b)),
            np.concatenate((orders.b, orders.a)),
            np.concatenate((orders.score, 1 - orders.score)),
            np.tile(orders.cluster, 2),
            np.ones(2 * len(orders)),
        ),
        np.concatenate((once.human, 1 - once.human)),
        once.n_votes,
        once.n_unmatched,
    )

    assert sampling_of(twice) == sampling_of(once)
