"""What samples were asked, and what came of them."""

from msgspec.structs import replace

from ledger.events.evaluations import ChoicesItem, EvaluationItem, Observation, PromptItem, TextItem
from ledger.events.registry import Event
from ledger.events.values import REDACTED
from projections.evaluations.samples import (
    ITEMS,
    AskedSample,
    Items,
    asked_evaluations_of,
    asked_samples,
)
from projections.evaluations.state import EvaluationRun
from projections.fold import fold
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    document,
    item,
    observed,
    plan,
    prediction,
    run_of,
    unscorable,
)
from tests.support.builders.events import STREAM, recorded

ENDING = ChoicesItem(context="a dose", choices=(" of", " a", " x"), correct=1)


def read(
    kind: str, asked: EvaluationItem | None, observation: Observation, **fields: object
) -> AskedSample:
    """Return a sample of a kind of evaluation as it is read."""
    planned = replace(plan(n_items=1), kind=kind, **fields)
    known = [item(0, asked)] if asked else []
    planned = replace(planned, items=(known[0].item,)) if known else planned
    run = run_of(planned, *observed(planned, [observation]))
    [found] = asked_samples(run, fold(ITEMS, recorded(known)))
    return found


def test_an_answer_stands_beside_what_was_asked_and_expected() -> None:
    """Whole, and the part that was compared."""
    asked = PromptItem(prompt="What helps?", expected="aspirin")

    found = read("rollout", asked, answer(0.0, "ibuprofen", text="ibuprofen.\n"))

    assert found[1:9] == (
        *("What helps?", None, "ibuprofen.\n", "ibuprofen", "aspirin"),
        *(0.0, False, None),
    )


def test_of_choices_the_likeliest_is_the_answer_and_of_equals_a_wrong_one() -> None:
    """With the texts that the ledger has; the right one would look as if it had been preferred."""
    found, even = (
        read("comparison", ENDING, choices(*map(choice, weights), correct=correct))
        for weights, correct in (((-1.0, -2.0, -3.0), 1), ((-1.0, -1.0, -3.0), 0))
    )

    assert found[1:9] == ("a dose", ENDING.choices, " of", None, " a", 0.0, False, None)
    assert (even.answered, even.score, even.is_right) == (" a", 0.5, False)


def test_a_lone_text_is_no_choice() -> None:
    """It is neither right nor wrong to find it the likeliest of one."""
    asked = ChoicesItem(context="The end", choices=(" of",), correct=0)

    found = read("comparison", asked, choices(choice(-1.0)))

    assert (found.answered, found.is_right) == (" of", None)


def test_choices_without_their_texts_have_numbers() -> None:
    """Their item is redacted, or not here."""
    seen = choices(choice(-2.0), choice(-1.0), correct=0)
    gone = ChoicesItem(context=REDACTED, choices=(REDACTED, REDACTED), correct=0)

    unknown, redacted = read("comparison", None, seen), read("comparison", gone, seen)

    assert (unknown.asked, unknown.answered, unknown.expected) == (None, "choice 2", "choice 1")
    assert redacted.answered == "choice 2, [redacted]"
    assert redacted.is_right is False


def test_a_prediction_stands_beside_its_text() -> None:
    """Which is what was expected."""
    found = read("encoding", TextItem(text="abab"), prediction([1], [2], 0.0))

    assert found[1:9] == ("abab", None, "abab", "abab", "abab", 0.0, False, None)


def test_a_document_is_neither_right_nor_wrong() -> None:
    """Its score is in bits per byte: 8 bits of 8 bytes."""
    found = read("perplexity", TextItem(text="a dose"), document(-5.545177444479562))

    assert found[1:9] == ("a dose", *[None] * 4, 1.0, None, None)


def test_where_lower_is_better_nothing_is_right_but_zero() -> None:
    """An edit distance, for instance; a score that is still to come says nothing."""
    asked = PromptItem(prompt="?", expected="aspirin")

    found = [
        read("rollout", asked, answer(score), higher_is_better=False).is_right
        for score in (0.0, 1.0, None)
    ]

    assert found == [True, False, None]


def test_an_observation_of_another_kind_is_none() -> None:
    """`verify` says so; here the item stands alone."""
    found = read("rollout", PromptItem(prompt="?", expected=""), document(-1.0))

    assert found[1:9] == ("?", *[None] * 7)


def mixed() -> tuple[EvaluationRun, Items]:
    """Return a run of a right answer, a wrong one, one given up, and one missing."""
    planned = plan(n_items=4)
    seen = observed(planned, [answer(1.0), answer(0.0)])
    events: list[Event] = [*map(item, range(4)), planned, *seen, unscorable(planned, 2)]
    known, items = fold(asked_evaluations_of(STREAM), recorded(events))
    return known.run(planned), items


def test_what_was_given_up_has_its_reason_and_what_is_missing_is_left_out() -> None:
    """The first is no answer; of the second nothing is known."""
    run, items = mixed()

    found = [*asked_samples(run, items)]

    expected = [(True, None), (False, None), (None, "too_long")]
    assert [(each.is_right, each.unscorable) for each in found] == expected
    assert found[2].asked == "Which is number 2?"
