"""What is known of evaluations."""

from msgspec import UNSET
from msgspec.structs import replace

from ledger.events.evaluations import SampleScore, WayOfAsking
from ledger.events.registration import EntrantRegistered
from ledger.events.registry import Event
from ledger.identity import StreamId
from projections.evaluations.state import (
    SampleKey,
    evaluations_of,
    is_same_plan,
    name_of,
    other_settings,
)
from projections.fold import fold
from tests.support.builders.evaluations import (
    answer,
    completed,
    document,
    observed,
    plan,
    prediction,
    run_of,
    unscorable,
)
from tests.support.builders.events import STREAM, entrant, key, recorded

EVALUATIONS = evaluations_of(STREAM)
OTHER = StreamId("other")


def test_what_is_owed_is_what_neither_was_observed_nor_given_up() -> None:
    """A resumed run observes no sample twice, and does not try in vain for ever."""
    planned = plan(n_items=3)

    run = run_of(planned, *observed(planned, [answer()]), unscorable(planned, 1))

    assert run.missing == {SampleKey(planned.run_key, planned.items[2], 0)}
    assert [each.item for each in run.observed] == [planned.items[0]]
    assert [each.item for each in run.unscorable] == [planned.items[1]]


def test_an_observation_counts_before_and_behind_a_failure() -> None:
    """In merged ledgers one had too little memory, and the other did not."""
    planned = plan(n_items=2)
    seen = observed(planned, [answer(), answer()])

    run = run_of(planned, seen[0], unscorable(planned, 0), unscorable(planned, 1), seen[1])

    assert run.observed == seen
    assert not run.unscorable


def test_what_was_observed_here_counts_before_and_behind_what_others_observed() -> None:
    """A merge must not change the metrics of a run that is done."""
    planned = plan(n_items=1)
    right, wrong = (observed(planned, [answer(score)]) for score in (1.0, 0.0))
    ours, theirs = recorded([planned, *right]), recorded(wrong, stream=OTHER)

    for events in ([*ours, *theirs], [*theirs, *ours]):
        assert fold(EVALUATIONS, events).run(planned).observed == right


def test_the_newest_plan_under_its_labels_holds() -> None:
    """Whoever plans fewer items, or other settings, asks of what was planned last."""
    old, new = plan(n_items=3), plan(n_items=2, number=2)

    known = fold(EVALUATIONS, recorded([old, new, plan("amy")]))

    assert [run.plan for run in known.runs] == [plan("amy"), new]


def test_a_plan_of_an_earlier_version_that_does_not_say_how_it_asks_is_the_same() -> None:
    """Else whoever evaluates again would plan what is done once more."""
    silent, asked = plan(asking=UNSET), plan(number=2, asking=WayOfAsking(chat="none"))
    other = plan(number=3, asking=WayOfAsking(chat="turns"))

    assert is_same_plan(asked, silent)
    assert is_same_plan(silent, asked)
    assert not is_same_plan(asked, other)
    assert not is_same_plan(asked, plan(n_items=2, asking=UNSET))


def test_a_plan_that_replaced_another_way_of_asking_is_told_from_it() -> None:
    """A reader would take the new numbers for the old ones; older plans do not say."""
    first, same, other = (
        WayOfAsking(chat="none"),
        WayOfAsking(chat="none"),
        WayOfAsking(chat="turns", system="X"),
    )
    asked = [UNSET, first, same, other]
    plans = [plan(number=n, asking=each) for n, each in enumerate(asked, start=1)]

    known = fold(EVALUATIONS, recorded(plans))

    assert [each.number for each in known.replaced(plans[3])] == [2, 3]
    assert known.replaced(plans[2]) == ()
    assert other_settings(plans[1], plans[3]) == {
        "chat": "'none' and 'turns'",
        "system": "None and 'X'",
    }


def test_earlier_plans_are_remembered_with_their_scores() -> None:
    """They are the curve of a training; each has the scores of the code of its time."""
    old, new = plan(n_items=1), plan(n_items=1, number=2, run_key=key("new"))
    [seen] = observed(old, [answer(score=0.0)])
    better = replace(
        completed(old, 1),
        scores=(SampleScore(item=seen.item, sample=0, cleaned="aspirin", score=1.0),),
    )

    known = fold(EVALUATIONS, recorded([old, seen, better, new]))

    assert dict(known.every) == {name_of(old): old, name_of(new): new}
    assert [each.scored and each.scored.score for each in known.run(old).observed] == [1.0]


def test_entrants_are_known_by_the_digest_that_plans_refer_to() -> None:
    """Whichever tournament of the ledger registered them."""
    event = EntrantRegistered(digest=entrant().content_digest, entrant=entrant())

    known = fold(EVALUATIONS, recorded([event], stream=OTHER))

    assert dict(known.entrants) == {event.digest: entrant()}


def test_tournaments_share_what_was_observed_and_not_what_was_planned() -> None:
    """A run is what its key says; who wants it, and that it is over, is each tournament's own."""
    planned = plan(n_items=1)
    there: list[Event] = [planned, *observed(planned, [answer()]), completed(planned, 1)]

    known = fold(EVALUATIONS, recorded(there, stream=OTHER))

    assert not known.plans
    assert not known.every
    assert not known.completed
    assert not known.run(planned).missing


def test_only_the_newest_plan_may_be_completed() -> None:
    """Completing an earlier one says nothing of the samples that were added since."""
    old, new = plan(), plan(number=2)

    once = fold(EVALUATIONS, recorded([old, completed(old, 1, 0)]))
    again = fold(EVALUATIONS, recorded([old, completed(old, 1, 0), new]))

    assert once.is_completed(old)
    assert not again.is_completed(new)
    assert not fold(EVALUATIONS, recorded([old])).is_completed(old)


def test_the_scores_of_a_completion_count_for_its_plan() -> None:
    """The code was corrected, or a score needs all samples; what was recorded stays."""
    first = plan(n_items=3)
    second = replace(first, number=2, scorer=key("corrected"))
    seen = observed(first, [answer(1.0), answer(None), prediction([1], [1], score=0.0)])
    other = SampleScore(item=first.items[0], sample=0, cleaned="new", score=0.25)
    late = replace(other, item=first.items[2], score=0.5)
    done = replace(completed(second, 3), scores=(other, late))

    before = fold(EVALUATIONS, recorded([first, *seen, second]))
    after = fold(EVALUATIONS, recorded([first, *seen, second, done]))

    assert [each.scored and each.scored.score for each in before.run(second).observed] == [
        1.0, None, 0.0,
    ]  # fmt: skip
    scored = [each.scored for each in after.run(second).observed]
    assert scored == [other, None, late]
    assert after.run(first) == before.run(first)


def test_a_completion_scores_nothing_that_has_no_score() -> None:
    """A ledger may hold what this program would not write."""
    planned = plan(n_items=2, kind="perplexity")
    seen = observed(planned, [document(-2.0)])
    odd = SampleScore(item=planned.items[0], sample=0, cleaned="", score=1.0)
    events: list[Event] = [planned, *seen, unscorable(planned, 1)]
    done = replace(completed(planned, 1, 1), scores=(odd, replace(odd, item=planned.items[1])))

    state = fold(EVALUATIONS, recorded([*events, done]))

    assert state.runs[0].fates == fold(EVALUATIONS, recorded(events)).runs[0].fates
    assert [each.scored for each in state.runs[0].observed] == [None]
