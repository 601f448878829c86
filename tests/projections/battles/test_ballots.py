"""Pairs are drawn by design, and by nothing else."""

from collections import Counter

import pytest
from msgspec.structs import replace

from ledger.events.imports import BattlesImported, ImportedBattle, SampleDesign, VoteSample, Winner
from ledger.identity import Dimension
from projections.battles.ballots import Ballot, CastVote, ballots_of, current_votes, votes_cast
from tests.support.builders.battles import of_file
from tests.support.builders.events import STREAM, entrant, key, known, opened, prompt, responses
from tests.support.builders.worlds import RUBRICS, SLOT_A, court, cup, heard, history
from tests.support.builders.worlds import A as A_WINS
from tests.support.builders.worlds import B as B_WINS


def sample(
    seed: int = 7, design: SampleDesign = "random", dimension: str = "factuality"
) -> VoteSample:
    """Return how pairs are drawn."""
    on = Dimension(dimension)
    return VoteSample(tournament=STREAM, dimension=on, design=design, seed=seed)


def ids(ballots: tuple[Ballot, ...]) -> list[str]:
    """Return which pairs they are."""
    return [each.pairing.battle_id for each in ballots]


@pytest.mark.no_cover
def test_the_order_and_the_sides_follow_from_the_seed_alone() -> None:
    """Whoever votes, and whenever, is put the same pairs on the same sides."""
    few, all_ = known(*history(cup(20))[:-20]), known(*history(cup(20)))

    first, again, other = (ballots_of(all_, sample(seed)) for seed in (7, 7, 8))

    assert first == again
    assert sorted(ids(first)) == sorted(ids(other))
    assert ids(first) != ids(other)
    assert [each for each in ids(first) if each in ids(ballots_of(few, sample()))] == ids(
        ballots_of(few, sample())
    )
    assert len(ballots_of(few, sample())) < len(first) == 60


def test_two_identical_responses_are_no_pair_to_vote_on() -> None:
    """No judge is asked about them either, so the vote would be compared with nothing."""
    opening = opened(
        prompts=[prompt("p1"), prompt("p2")], entrants=[entrant("zoe"), entrant("amy")]
    )
    texts = {(who, "p1"): "Aspirin." for who in ("zoe", "amy")}
    texts |= {("zoe", "p2"): "Yes.", ("amy", "p2"): "No."}

    (ballot,) = ballots_of(known(*opening, *responses(known(*opening), texts)), sample())

    assert ballot.pairing.prompt.prompt_id == "p2"


@pytest.mark.no_cover
def test_either_side_is_as_likely() -> None:
    """Else who prefers a side would prefer an entrant."""
    ballots = ballots_of(known(*history(cup(20))), sample())

    shown = Counter(each.entrant_a == each.pairing.a.entrant.entrant_id for each in ballots)

    assert 18 <= shown[True] <= 42
    for each in ballots:
        assert {each.entrant_a, each.entrant_b} == each.pairing.entrants
        assert (each.a.entrant_id, each.b.entrant_id) == (each.entrant_a, each.entrant_b)


def test_pairs_on_which_judges_or_orders_disagree_can_be_drawn() -> None:
    """There a person's vote decides most."""
    tournament = known(
        *heard(court(2), [A_WINS, A_WINS, SLOT_A, B_WINS], [A_WINS, B_WINS, None, B_WINS])
    )

    found = ballots_of(tournament, sample(design="disagreement"))

    pairs = {(each.pairing.prompt.prompt_id, each.pairing.entrants) for each in found}
    assert pairs == {("p1", frozenset({"zoe", "kim"})), ("p1", frozenset({"amy", "kim"}))}


def test_a_ballot_is_the_same_whichever_side_is_which() -> None:
    """A corrected vote replaces the first even if the sides were drawn anew."""
    (ballot, *_) = ballots_of(known(*history(cup())), sample())
    turned = Ballot(ballot.pairing, ballot.b, ballot.a, ballot.entrant_b, ballot.entrant_a)

    assert ballot.digest("votes", "ann") == turned.digest("votes", "ann")
    assert ballot.digest("votes", "ann") != ballot.digest("votes", "bob")
    assert ballot.digest("votes", "ann") != ballot.digest("others", "ann")


def vote(ballot: str, winner: Winner, version: int) -> BattlesImported:
    """Return a vote on a ballot."""
    battle = ImportedBattle("zoe", "amy", winner, None, "p1", "human", "ann")
    return replace(of_file([battle], sample()), file_digest=key(ballot), mapping_version=version)


def test_the_last_vote_on_a_ballot_counts() -> None:
    """In whatever order they are read, as after a merge."""
    votes = [vote("one", "model_a", 1), vote("one", "tie", 2), vote("two", "no verdict", 1)]

    for events in (votes, votes[::-1]):
        assert votes_cast(events) == {
            key("one"): CastVote("tie", 2),
            key("two"): CastVote("no verdict", 1),
        }


def cast(ballot: Ballot) -> BattlesImported:
    """Return ann's vote on a ballot of the set `votes`."""
    prompt = ballot.pairing.prompt.prompt_id
    battle = ImportedBattle(ballot.entrant_a, ballot.entrant_b, "tie", None, prompt, "human", "ann")
    drawn = sample(dimension=ballot.pairing.rubric.dimension)
    return replace(of_file([battle], drawn), file_digest=ballot.digest("votes", "ann"))


def test_votes_are_on_the_dimension_that_was_asked_about() -> None:
    """Also where a merge brought votes on several into one set."""
    tournament = known(*history(opened(rubrics=RUBRICS)))
    votes = {
        dimension: cast(ballots_of(tournament, sample(dimension=dimension))[0])
        for dimension in ("factuality", "utility")
    }

    found = current_votes(tournament, "votes", [*votes.values()])

    assert found == ({name: [vote] for name, vote in votes.items()}, 0)


def test_votes_on_responses_of_earlier_settings_are_outdated() -> None:
    """The name stands for other texts now, of which nobody said anything."""
    before = known(*history(opened(entrants=[entrant("zoe"), entrant("amy"), entrant("kim")])))
    changed = entrant("zoe", temperature=0.5)
    now = known(*history(opened(entrants=[changed, entrant("amy"), entrant("kim")])))
    votes = [cast(ballot) for ballot in ballots_of(before, sample())]

    current, n_outdated = current_votes(now, "votes", votes)

    (kept,) = current[Dimension("factuality")]
    assert {*kept.entrants} == {"amy", "kim"}
    assert n_outdated == 2
    assert current_votes(before, "votes", votes)[1] == 0


def test_battles_of_a_file_name_no_texts_and_are_on_every_dimension() -> None:
    """People voted elsewhere, and the prompts and names are all that there is to go by."""
    tournament = known(*history(opened(rubrics=RUBRICS)))
    battle = ImportedBattle("zoe", "amy", "tie", None, None, "human", "ann")
    event = of_file([battle])

    found = current_votes(tournament, "votes", [event])

    assert found == ({"factuality": [event], "utility": [event]}, 0)
