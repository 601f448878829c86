"""What a tournament takes from its own stream, and what from the others of a ledger."""

import pytest
from msgspec.structs import replace

from ledger.events.judging import JudgeQuerySubmitted
from ledger.events.ratings import RatingsPublished
from ledger.identity import StreamId
from projections.fold import fold
from projections.tournament.state import tournament_of
from tests.builders import (
    STREAM,
    entrant,
    judge,
    key,
    known,
    opened,
    prompt,
    recorded,
    responses,
    rubric,
    verdict,
)
from tests.projections.worlds import answered, become, failure_of, history, matches_of, publication


def test_submissions_are_counted_by_query() -> None:
    """A resumed run must see what is in flight and number its next attempt after it."""
    submitted = JudgeQuerySubmitted(
        query_key=key("query"),
        judge=judge().judge_id,
        dimension=rubric().dimension,
        prompt_id=prompt().prompt_id,
        entrant_a=entrant("base").entrant_id,
        entrant_b=entrant("tuned").entrant_id,
        order="forward",
        rubric_digest=rubric().digest,
        response_a=key("a"),
        response_b=key("b"),
    )
    again = replace(submitted, attempt=2)

    tournament = known(submitted, again)

    assert dict(tournament.attempts) == {key("query"): 2}


def test_publishing_counts_as_an_event_but_not_as_news() -> None:
    """Publishing the same results twice must find that nothing happened in between."""
    events = history(opened(), "a")
    before = known(*events)
    ratings = RatingsPublished(publication=publication(before), artifacts=())

    after = known(*events, ratings)

    assert after.newest == before.newest
    assert after.version == before.version + 1
    assert after.publications == (ratings,)


def test_the_version_counts_this_tournament_only() -> None:
    """Writers state the version they decided on; another tournament must not move it."""
    here = recorded(opened())
    there = recorded([verdict(key("query"))], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), [*here, *there])

    assert tournament.version == len(here)
    assert tournament.newest == there[0]


def test_another_tournaments_answers_are_not_bought_again() -> None:
    """Two tournaments in one ledger that ask the same pay once: content names the answer."""
    events = answered(opened())
    (match,) = matches_of(known(*events))
    paid_elsewhere = [*responses(known(*opened())), *become(match, "a")[:2]]

    tournament = fold(
        tournament_of(STREAM),
        [*recorded(opened()), *recorded(paid_elsewhere, stream=StreamId("other"))],
    )

    assert matches_of(tournament) == (match,)
    assert {match.forward.query_key, match.swapped.query_key} == set(tournament.verdicts)


@pytest.mark.parametrize("theirs_come_first", [False, True])
def test_what_a_tournament_was_answered_itself_outlives_a_merge(*, theirs_come_first: bool) -> None:
    """Sampled elsewhere, texts differ; with theirs in our place all would be asked anew."""
    events = answered(opened())
    (match,) = matches_of(known(*events))
    ours = recorded([*events, *become(match, "a")])
    texts = [replace(each, text="Otherwise.") for each in responses(known(*opened()))]
    theirs = recorded([*texts, *become(match, "b")[:2]], stream=StreamId("other"))

    tournament = fold(
        tournament_of(STREAM), [*theirs, *ours] if theirs_come_first else [*ours, *theirs]
    )

    assert matches_of(tournament) == (match,)
    said = [tournament.verdicts[each.query_key].event.verdict for each in match[-2:]]
    assert said == ["A", "B"]


def test_of_what_two_others_were_answered_the_first_serves() -> None:
    """What was decided by it still follows when the ledger of a third is merged."""
    query = key("query")
    first = recorded([verdict(query, "A")], stream=StreamId("second"))
    later = recorded([verdict(query, "B")], stream=StreamId("third"))

    tournament = fold(tournament_of(STREAM), [*first, *later])

    assert tournament.verdicts[query].event.verdict == "A"


def test_another_tournaments_outcomes_and_failures_stay_there() -> None:
    """Its policy and its retries are its own; only what can only end one way is shared."""
    events = history(opened(), "a")
    (match,) = matches_of(known(*events))
    elsewhere = [*events, *become(match, "unreadable")]

    tournament = fold(tournament_of(STREAM), recorded(elsewhere, stream=StreamId("other")))

    assert dict(tournament.outcomes) == {}
    assert dict(tournament.query_failures) == {}
    assert tournament.opening is None


def test_what_another_tournament_was_refused_is_not_asked_again() -> None:
    """The same question would be refused, and paid for, again."""
    events = history(opened())
    (match,) = matches_of(known(*events))
    elsewhere = recorded([*events, *become(match, "refused")], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), elsewhere)

    assert {each.reason for each in tournament.query_failures.values()} == {"refused"}


def test_a_tournaments_own_failure_stands_beside_anothers() -> None:
    """Its attempts are counted by its own; the other's are not among them."""
    events = history(opened())
    (match,) = matches_of(known(*events))
    own = recorded([*events, failure_of(match.forward.query_key, "unreadable")])
    elsewhere = recorded([failure_of(match.forward.query_key, "refused")], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), [*own, *elsewhere])

    assert tournament.query_failures[match.forward.query_key].reason == "unreadable"
