"""What a report shows of evaluations."""

from itertools import chain

from msgspec.structs import replace

from commands.report.answers import shown_answers
from commands.report.page import page_of
from ledger.events.evaluations import PromptItem
from ledger.events.registry import Event
from tests.support.builders.evaluations import answer, document, item, observed, plan
from tests.support.builders.events import key, opened
from tests.support.builders.reports import HOSTILE, seen, subject
from tests.support.builders.scores import put_answer, score, scored_plan
from tests.support.builders.worlds import history


def evaluated(name: str, *texts: str) -> list[Event]:
    """Return an evaluation of base in which these answers are wrong, and one is right."""
    planned = replace(plan(n_items=len(texts) + 1, evaluation=name), run_key=key(f"run of {name}"))
    answers = [*(answer(0.0, text) for text in texts), answer(1.0)]
    items = [item(n) for n in range(len(planned.items))]
    return [*items, planned, *observed(planned, answers)]


def test_without_evaluations_there_is_nothing_of_them() -> None:
    """The section is left out."""
    empty = subject(*history(opened(), "a"))

    assert not shown_answers(empty)
    assert "Wrong answers" not in page_of(empty)
    assert "Metrics with" not in page_of(empty)


def test_the_first_wrong_answers_are_shown_and_all_are_counted() -> None:
    """With what was asked and expected; the page links to the rest by a command."""
    about = subject(*history(opened(), "a"), *evaluated("recall", *"abcd"))

    [found] = shown_answers(about)

    assert (found.n_found, found.n, len(found.shown)) == (4, 5, 3)
    first, page = found.shown[0], page_of(about, "none")
    assert (first.label, first.asked) == ("recall[0]", "Which is number 0?")
    assert (first.answered, first.expected, first.judged) == ("a", "aspirin", None)
    assert "tourney project metrics --samples all" in page
    assert "Judge&#39;s reply" not in page


def test_of_answers_that_a_judge_scored_the_lowest_are_shown_with_its_replies() -> None:
    """Whether they are the expected words does not matter then."""
    planned = scored_plan()
    scores: list[tuple[Event, Event]] = [
        (put_answer(key(f"q{n}"), planned, n), score(key(f"q{n}"), n)) for n in (3, 1, 2)
    ]
    events: list[Event] = [
        *(item(n) for n in range(4)),
        planned,
        *observed(planned, [answer(1.0, text) for text in "abcd"]),
        *chain.from_iterable(scores),
    ]
    about = subject(*history(opened(), "a"), *events)

    [found] = shown_answers(about)

    assert (found.judge, found.n_found, found.n) == ("ann", 3, 4)
    assert [(row.answered, row.judged) for row in found.shown] == [("b", 1), ("c", 2), ("d", 3)]
    page = page_of(about, "none")
    assert '<td dir="auto">Fine.\nSCORE: 1</td>' in page
    assert "3 of 4 scored by" in page


def test_what_has_no_wrong_answer_is_left_out() -> None:
    """All are right, or nothing is right or wrong."""
    text = plan(n_items=1, evaluation="texts", kind="perplexity", run_key=key("texts"))
    documents: list[Event] = [text, *observed(text, [document(-1.0)])]

    about = subject(*history(opened(), "a"), *evaluated("easy"), *documents)

    assert not shown_answers(about)


def test_of_many_evaluations_fewer_answers_are_shown() -> None:
    """The page stays small; each has its count."""
    many = [event for n in range(40) for event in evaluated(f"e{n:02}", "a", "b")]

    found = shown_answers(subject(*history(opened(), "a"), *many))

    assert [len(each.shown) for each in found] == [1] * 40
    assert {each.n_found for each in found} == {2}


def test_texts_of_evaluations_do_nothing_in_the_page() -> None:
    """Models write them, and so do data sets."""
    asked = [item(0, PromptItem(prompt=text, expected=text)) for text in HOSTILE]
    planned = replace(plan(), items=tuple(each.item for each in asked))
    wrong = observed(planned, [answer(0.0, text) for text in HOSTILE])
    page = page_of(subject(*history(opened(), "a"), *asked, planned, *wrong), "none")

    assert 'onerror="alert(1)"' not in page
    assert HOSTILE[0] not in page
    assert seen("&lt;script&gt;alert(1)&lt;/script&gt;") in page
