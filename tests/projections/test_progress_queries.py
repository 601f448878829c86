"""Which questions a judge is still to be asked."""

from hypothesis import given
from msgspec.structs import replace

from ledger.events.registration import Entrant
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from projections.tournament.progress import (
    AskingRules,
    OpenQuery,
    missing_responses,
    open_queries,
    unreconciled,
)
from projections.tournament.state import Tournament
from projections.verdicts.policies import DEFAULT_POLICY
from tests.builders import entrant, known, opened, prompt, registrations, responses, verdict
from tests.projections.strategies import histories
from tests.projections.worlds import (
    RUBRICS,
    Fate,
    answered,
    cup,
    everything,
    failure,
    history,
    matches_of,
    planned,
    questions_of,
)


def still_open(tournament: Tournament, retries: int = 0) -> tuple[OpenQuery, ...]:
    """Return the open queries on the whole bank."""
    rules = AskingRules(retries)
    return open_queries(tournament, everything(tournament), tournament.panel[0], rules)


def all_judged(*, roster: list[Entrant]) -> tuple[Event, ...]:
    """Return a tournament of two prompts and two dimensions with every verdict."""
    opening = opened(entrants=roster, prompts=[prompt("p1"), prompt("p2")], rubrics=RUBRICS)
    decided: list[Fate] = ["a"]
    return history(opening, *decided * len(planned(known(*opening))))


def test_both_orders_of_every_match_are_open_at_first() -> None:
    """Two queries a pair is what the plan's price is made of."""
    tournament = known(*answered(cup()))

    found = still_open(tournament)

    assert [each.asked for each in found] == list(questions_of(tournament))
    assert len(found) == 6 * 2
    assert {each.n_failed for each in found} == {0}


def test_a_missing_response_opens_no_query_of_its_pairs() -> None:
    """Judging may begin before the last response is there."""
    *said, _ = responses(known(*cup()))  # kim's second is missing

    tournament = known(*cup(), *said)

    pairs = [
        (each.match.pairing.prompt.prompt_id, each.match.pairing.b.entrant.entrant_id)
        for each in still_open(tournament)
    ]
    assert (
        pairs
        == [("p1", name) for name in ("amy", "amy", "kim", "kim", "kim", "kim")]
        + [("p2", "amy")] * 2
    )


def test_an_answered_question_is_not_open() -> None:
    """Running again after a kill asks for the rest only."""
    events = answered(cup())
    first, *rest = questions_of(known(*events))

    tournament = known(*events, verdict(first.query_key))

    assert [each.asked for each in still_open(tournament)] == rest


def test_a_failed_question_stays_open_until_its_retries_are_used() -> None:
    """A judge that never gives a verdict must not be paid for ever."""
    events = answered(opened())
    (forward, swapped) = questions_of(known(*events))
    tournament = known(*events, failure(forward, attempt=1), failure(forward, attempt=2))

    found = [
        [(each.asked, each.n_failed) for each in still_open(tournament, retries=retries)]
        for retries in (0, 1, 2)
    ]

    assert found == [[(swapped, 0)], [(swapped, 0)], [(forward, 2), (swapped, 0)]]


def test_a_question_answered_after_a_failure_is_not_open() -> None:
    """The verdict counts, however many attempts it took."""
    events = answered(opened())
    (forward, swapped) = questions_of(known(*events))

    tournament = known(*events, failure(forward), verdict(forward.query_key))

    assert [each.asked for each in still_open(tournament, retries=9)] == [swapped]


def test_renaming_an_entrant_opens_no_query() -> None:
    """A better name for the paper must not buy every verdict again."""
    before = all_judged(roster=[entrant("base"), entrant("tuned")])
    renamed = replace(
        entrant("ours"), weights_digest=entrant("tuned").weights_digest, weights="moved/elsewhere"
    )
    roster = [entrant("base"), renamed]
    reopened = opened(
        entrants=roster, prompts=[prompt("p1"), prompt("p2")], rubrics=RUBRICS, opening=2
    )

    tournament = known(*before, reopened[0], *registrations(entrants=[renamed]))

    assert tournament.roster == tuple(roster)
    assert missing_responses(tournament, everything(tournament)) == ()
    assert still_open(tournament) == ()


def test_reordering_the_roster_opens_no_query() -> None:
    """The swapped question of (a, b) is the forward question of (b, a), word for word."""
    roster = [entrant("zoe"), entrant("amy"), entrant("kim")]
    before = all_judged(roster=roster)
    reopened = opened(
        entrants=roster[::-1], prompts=[prompt("p1"), prompt("p2")], rubrics=RUBRICS, opening=2
    )

    tournament = known(*before, reopened[0])

    assert still_open(tournament) == ()
    prompts, judge = everything(tournament), tournament.panel[0]
    matches = unreconciled(tournament, prompts, judge, DEFAULT_POLICY, skip_identical=False)
    assert matches == matches_of(tournament)


def test_correcting_a_gold_answer_opens_just_its_queries() -> None:
    """Old verdicts on a wrong reference must not stay, and nothing else may be bought."""
    roster = [entrant("zoe"), entrant("amy"), entrant("kim")]
    corrected = prompt("p1", gold="ibuprofen")
    reopened = opened(
        entrants=roster, prompts=[corrected, prompt("p2")], rubrics=RUBRICS, opening=2
    )

    tournament = known(*all_judged(roster=roster), reopened[0], *registrations([corrected]))

    found = still_open(tournament)
    assert missing_responses(tournament, everything(tournament)) == ()
    assert [each.asked.order for each in found] == ["forward", "swapped"] * 3
    assert {each.match.pairing.rubric.dimension for each in found} == {"factuality"}
    assert {each.match.pairing.prompt for each in found} == {corrected}


def test_entrants_with_the_same_settings_share_their_responses() -> None:
    """A control entrant under two names is generated once, and compared once with each other."""
    twin = replace(entrant("twin"), weights_digest=entrant("base").weights_digest)
    opening = opened(entrants=[entrant("base"), twin, entrant("tuned")])
    base, _, tuned = responses(known(*opening))

    tournament = known(*opening, base, tuned)

    assert missing_responses(tournament, everything(tournament)) == ()
    assert len(questions_of(tournament)) == 6
    assert len(still_open(tournament)) == 3  # one for the twins, both orders of the rest


def test_equal_texts_do_not_ask_twice() -> None:
    """Greedy entrants often say the same; the judge's request is the same, so is its answer."""
    opening = opened(entrants=[entrant("base"), entrant("tuned"), entrant("poe")])
    texts = {("base", "p1"): "Yes.", ("tuned", "p1"): "Yes.", ("poe", "p1"): "No."}
    said: tuple[ResponseGenerated, ...] = responses(known(*opening), texts)

    tournament = known(*opening, *said)

    keys = [each.asked.query_key for each in still_open(tournament)]
    assert len(keys) == len(set(keys)) == 3
    assert set(keys) == {question.query_key for question in questions_of(tournament)}


@given(events=histories())
def test_open_queries_are_just_those_that_may_still_get_a_verdict(events: list[Event]) -> None:
    """Nothing that could be judged is forgotten, and nothing is asked twice or in vain."""
    tournament = known(*events)

    keys = [each.asked.query_key for each in still_open(tournament, retries=2)]

    wanted = {question.query_key for question in questions_of(tournament)}
    assert len(keys) == len(set(keys))
    hopeless = {
        key
        for key, failure in tournament.query_failures.items()
        if failure.reason in {"refused", "truncated", "rejected"}
    }
    assert set(keys) == wanted - set(tournament.verdicts) - tournament.in_flight - hopeless
