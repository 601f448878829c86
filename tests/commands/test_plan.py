"""Planning: what is owed, told without recording anything."""

from commands.decisions.recorder import (
    MissingResponses,
    MissingVerdicts,
    count_missing_responses,
    count_missing_verdicts,
    rehearse,
)
from ledger.identity import Dimension, EntrantId
from projections.tournament.progress import AskingRules, open_queries
from projections.tournament.state import Tournament
from tests.batches import planned
from tests.builders import STREAM, opened, prompt, responses, rubric, verdict
from tests.commands.builders import JUDGE, P1, P2, failed, open_tournament
from tests.specification import after

OPENED = opened(prompts=[prompt("p1"), prompt("p2", gold=None)])
BASE, TUNED = EntrantId("base"), EntrantId("tuned")
FACTUALITY = Dimension("factuality")


def test_a_rehearsal_knows_what_the_real_thing_would_know() -> None:
    """`plan` looks at a tournament that nobody has opened yet."""
    rehearsed = rehearse(Tournament(STREAM), open_tournament(OPENED))

    real = after(*OPENED)
    assert (rehearsed.bank, rehearsed.roster) == (real.bank, real.roster)
    assert (rehearsed.dimensions, rehearsed.panel) == (real.dimensions, real.panel)
    assert rehearsed.version == real.version


def test_rehearsing_what_is_known_changes_nothing() -> None:
    """A second plan is of the same tournament."""
    known = after(*OPENED)

    assert rehearse(known, open_tournament(OPENED)) == known


def test_every_entrant_owes_what_it_has_not_answered() -> None:
    """Tokens are told as the most that it can come to."""
    state = after(*OPENED)
    answers = responses(state)

    assert count_missing_responses(state, [P1, P2]) == (
        MissingResponses(BASE, n_responses=2, n_tokens_at_most=64),
        MissingResponses(TUNED, n_responses=2, n_tokens_at_most=64),
    )
    assert count_missing_responses(after(*OPENED, *answers[:3]), [P1, P2]) == (
        MissingResponses(BASE, n_responses=0, n_tokens_at_most=0),
        MissingResponses(TUNED, n_responses=1, n_tokens_at_most=32),
    )


def test_a_pair_without_its_responses_waits() -> None:
    """It will be asked about, but not now."""
    rows = count_missing_verdicts(after(*OPENED), [P1, P2], JUDGE, AskingRules(retries=1))

    assert rows == (MissingVerdicts(FACTUALITY, n_pairs=1, n_queries=0, n_waiting=1),)


def test_each_pair_that_is_ready_is_two_queries() -> None:
    """Both orders are asked; a prompt without the gold that is needed is no pair."""
    state = after(*OPENED, *responses(after(*OPENED)))

    rows = count_missing_verdicts(state, [P1, P2], JUDGE, AskingRules(retries=1))

    assert rows == (MissingVerdicts(FACTUALITY, n_pairs=1, n_queries=2, n_waiting=0),)


def test_a_query_that_is_settled_or_given_up_is_not_owed() -> None:
    """What a run would ask is exactly what a plan says."""
    ready = (*OPENED, *responses(after(*OPENED)))
    forward, swapped = open_queries(after(*ready), [P1], JUDGE, AskingRules(retries=0))
    events = (*ready, verdict(forward.asked.query_key), failed(swapped.asked.query_key))

    no_retry = count_missing_verdicts(after(*events), [P1], JUDGE, AskingRules(retries=0))
    one_retry = count_missing_verdicts(after(*events), [P1], JUDGE, AskingRules(retries=1))

    assert no_retry == (MissingVerdicts(FACTUALITY, n_pairs=1, n_queries=0, n_waiting=0),)
    assert one_retry == (MissingVerdicts(FACTUALITY, n_pairs=1, n_queries=1, n_waiting=0),)


def test_what_is_in_flight_is_not_owed() -> None:
    """A second run beside a batch must not be told that there is something to pay."""
    ready = (*OPENED, *responses(after(*OPENED)))
    forward, _ = open_queries(after(*ready), [P1], JUDGE, AskingRules(retries=0))
    state = after(*ready, planned(forward.asked.query_key))

    rows = count_missing_verdicts(state, [P1], JUDGE, AskingRules(retries=0))

    assert rows == (MissingVerdicts(FACTUALITY, n_pairs=1, n_queries=1, n_waiting=0),)


def test_identical_responses_are_pairs_without_queries() -> None:
    """They are planned for, and cost nothing."""
    texts = {(name, "p1"): "aspirin" for name in ("base", "tuned")}
    state = after(*OPENED, *responses(after(*OPENED), texts))

    rows = count_missing_verdicts(state, [P1], JUDGE, AskingRules(retries=0, skip_identical=True))

    assert rows == (MissingVerdicts(FACTUALITY, n_pairs=1, n_queries=0, n_waiting=0),)


def test_each_dimension_is_planned_apart() -> None:
    """A dimension on which nothing can be compared is shown with nothing."""
    rubrics = [rubric("factuality"), rubric("calibration", needs_gold=False)]
    opening = opened(prompts=[prompt("p2", gold=None)], rubrics=rubrics)
    state = after(*opening, *responses(after(*opening)))

    rows = count_missing_verdicts(state, [P2], JUDGE, AskingRules(retries=1))

    assert rows == (
        MissingVerdicts(FACTUALITY, n_pairs=0, n_queries=0, n_waiting=0),
        MissingVerdicts(Dimension("calibration"), n_pairs=1, n_queries=2, n_waiting=0),
    )
