"""What is owed to a tournament."""

from hypothesis import given

from ledger.events.registry import Event
from ledger.identity import PromptId
from projections.tournament.matches import Match, planned_responses
from projections.tournament.progress import ResponseCount, missing_responses, progress, unreconciled
from projections.tournament.state import Tournament
from projections.verdicts.policies import DEFAULT_POLICY
from tests.builders import entrant, known, opened, prompt, responses, verdict
from tests.projections.strategies import histories
from tests.projections.worlds import (
    RUBRICS,
    answered,
    cup,
    everything,
    history,
    matches_of,
    settled,
    unanswerable,
)


def waiting(tournament: Tournament, policy: str = DEFAULT_POLICY) -> tuple[Match, ...]:
    """Return what can be reconciled on the whole bank."""
    prompts, judge = everything(tournament), tournament.panel[0]
    return unreconciled(tournament, prompts, judge, policy, skip_identical=False)


def test_every_cell_is_owed_at_first() -> None:
    """The plan of a new tournament is every entrant's response to every prompt."""
    tournament = known(*cup())

    owed = missing_responses(tournament, everything(tournament))

    assert owed == planned_responses(tournament, everything(tournament))
    assert len(owed) == 3 * 2


def test_only_the_chosen_prompts_are_owed() -> None:
    """A pilot generates for its own prompts and leaves the rest of the bank alone."""
    tournament = known(*cup())

    owed = missing_responses(tournament, {PromptId("p2")})

    assert [cell.prompt.prompt_id for cell in owed] == ["p2"] * 3


def test_what_is_there_or_known_to_fail_is_not_owed() -> None:
    """Generation is deterministic: a prompt that was too long will be too long again."""
    tournament = known(*cup())
    there, failed, *rest = planned_responses(tournament, everything(tournament))
    first = responses(tournament)[0]
    assert first.response_key == there.response_key

    tournament = known(*cup(), first, unanswerable(failed))

    assert missing_responses(tournament, everything(tournament)) == tuple(rest)


def test_running_out_of_memory_is_tried_again() -> None:
    """Another machine, or a smaller batch, may have the memory that was lacking."""
    tournament = known(*opened())
    base, tuned = planned_responses(tournament, everything(tournament))

    tournament = known(
        *opened(), unanswerable(base, "out_of_memory"), unanswerable(tuned, "not_finite")
    )

    assert missing_responses(tournament, everything(tournament)) == (base,)


def test_responses_are_counted_by_entrant() -> None:
    """A table of an unfinished generation says whose responses are missing, and why."""
    tournament = known(*cup())
    zoe_1, amy_1, *_ = planned_responses(tournament, everything(tournament))
    said = responses(tournament)

    tournament = known(*cup(), unanswerable(zoe_1), said[0], unanswerable(amy_1), said[3], said[4])

    counts = progress(tournament, everything(tournament), tournament.panel[0]).responses
    assert counts == (
        ResponseCount(entrant("zoe").entrant_id, generated=2, failed=0, missing=0),
        ResponseCount(entrant("amy").entrant_id, generated=1, failed=1, missing=0),
        ResponseCount(entrant("kim").entrant_id, generated=0, failed=0, missing=2),
    )


def test_prompts_without_gold_are_left_out_and_counted() -> None:
    """A reader who sees fewer pairs than the bank suggests must find out why."""
    prompts = [prompt("p1", gold=None), prompt("p2"), prompt("p3", gold=None)]
    tournament = known(*opened(prompts=prompts, rubrics=RUBRICS))

    whole = progress(tournament, everything(tournament), tournament.panel[0])
    some = progress(tournament, {PromptId("p1"), PromptId("p2")}, tournament.panel[0])

    assert whole.left_out == (("factuality", 2), ("utility", 0))
    assert [account.planned for _, account in whole.accounts] == [1, 3]
    assert some.left_out == (("factuality", 1), ("utility", 0))


def test_a_match_with_both_verdicts_waits_for_its_outcome() -> None:
    """A run killed between a verdict and its outcome reconciles when it goes on."""
    events = answered(cup())
    first, second, *_ = matches_of(known(*events))
    told = [verdict(first.forward.query_key), verdict(first.swapped.query_key)]

    tournament = known(*events, *told, verdict(second.forward.query_key))

    assert waiting(tournament) == (first,)


def test_another_policy_reconciles_the_same_verdicts_anew() -> None:
    """A policy is a way to read verdicts that are there: trying one costs nothing."""
    tournament = known(*history(opened(), "a"))

    assert waiting(tournament) == ()
    assert waiting(tournament, policy="another") == matches_of(tournament)


@given(events=histories())
def test_responses_are_there_or_failed_or_owed(events: list[Event]) -> None:
    """No cell of the plan is lost between the three counts."""
    tournament = known(*events)

    found = progress(tournament, everything(tournament), tournament.panel[0])

    owed = missing_responses(tournament, everything(tournament))
    assert sum(row.missing for row in found.responses) == len(owed)
    for row in found.responses:
        assert row.generated + row.failed + row.missing == len(tournament.bank)
    assert sum(account.planned for _, account in found.accounts) == len(settled(tournament))
