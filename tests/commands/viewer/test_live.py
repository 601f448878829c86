"""What is going on, at one head of the ledger."""

from commands.viewer.live import Step, live_reading_of
from ledger.events.judging import PairReconciled
from projections.fold import fold
from tests.support.builders.events import STREAM, opened, prompt, recorded, rubric
from tests.support.builders.views import viewed
from tests.support.builders.worlds import cup, history


def test_pairs_are_rated_before_they_are_reconciled() -> None:
    """Outcomes are recorded at the end of judging; whoever watches wants to see them before."""
    events = history(cup(), "a", "a", "b", "tie")
    early = [each for each in events if not isinstance(each, PairReconciled)]

    before, after = viewed(*early), viewed(*events)

    statuses = [each.status for each in before.index.battles]
    assert statuses == ["a", "a", "b", "tie", "pending", "pending"]
    assert statuses == [each.status for each in after.index.battles]


def test_the_steps_count_responses_and_pairs() -> None:
    """They add up to what is planned."""
    found = viewed(*history(cup(), "a", "tie", "refused")).steps

    assert found == (
        Step("responses", 6, 6, ""),
        Step("pairs judged on factuality", 3, 6, "1 decided, 1 tied, 1 without a verdict"),
    )


def test_the_newest_battles_come_first_and_once() -> None:
    """Both orders' verdicts are about one battle."""
    assert viewed(*history(cup(), "a", "b", "tie")).newest == (2, 1, 0)


def test_reading_may_stop_and_resume() -> None:
    """Only what is new is read at each look."""
    events = recorded(history(cup(), "a", "b", "tie"))
    projection = live_reading_of(STREAM)

    whole = fold(projection, events)
    resumed = fold(projection, events[-7:], fold(projection, events[:-7]))

    assert resumed == whole


def test_who_cannot_be_rated_yet_is_told_why() -> None:
    """The other pages show what there is."""
    plain = opened(prompts=[prompt("p1", gold=None)], rubrics=[rubric("x", needs_gold=False)])

    found = viewed(*history(plain, "a"))

    assert found.content is not None
    assert len(found.index.battles) == 1
