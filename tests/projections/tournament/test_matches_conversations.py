"""Conversations: what an entrant is asked next, what a judge is shown, and what is redacted."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ledger.events.conversations import Messages, transcript
from ledger.events.registration import TOGETHER, Prompt
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated, response_key
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.matches import match_of, planned_response, response_status
from projections.tournament.remaining import (
    ENDLESS_RETRIES,
    awaited_queries,
    missing_responses,
    responses_to_come,
)
from projections.tournament.state import Tournament
from projections.verdicts.queries import wording_of
from tests.support.builders.events import (
    STREAM,
    build_query,
    entrant,
    instructions,
    judge,
    known,
    opened,
    prompt,
    rubric,
)
from tests.support.builders.worlds import everything, planned_pairings, unanswerable

TALK: Messages = (("system", "Be brief."), ("user", "One?"), ("user", "Two?"), ("user", "Three?"))


def talk(messages: Messages = TALK, prompt_id: str = "p1") -> Prompt:
    """Return a prompt that is a conversation."""
    return prompt(prompt_id, text=transcript(messages), messages=messages)


OPENING = opened(prompts=[talk()])


def answered_up_to(n_answers: int, *, stream: StreamId = STREAM) -> tuple[Event, ...]:
    """Return the opening, and the first answers of both entrants."""
    events: tuple[Event, ...] = OPENING
    for number in range(1, n_answers + 1):
        state = known(*events, stream=stream)
        events = (*events, *(_answer(state, name, number) for name in ("base", "tuned")))
    return events


def _answer(
    state: Tournament, name: str, number: int, asked: Prompt | None = None
) -> ResponseGenerated:
    cell = planned_response(state, entrant(name), asked or talk())
    told = {"finish_reason": "stop", "n_prompt_tokens": 3, "n_generated_tokens": 3}
    return cell.made(text=f"{name} {number}", **told, elapsed_s=0.1)


def without_text(events: Sequence[Event], text: str) -> Tournament:
    """Return what the tournament knows after the response of this text was redacted."""
    with Ledger.in_memory() as ledger:
        places = {
            receipt.recorded.position: receipt.recorded.event
            for receipt in ledger.append(STREAM, events)
        }
        [at] = [n for n, each in places.items() if getattr(each, "text", None) == text]
        ledger.redact(at, "it names somebody")
        return fold(tournament_of(STREAM), ledger.read())


def test_each_question_is_asked_in_the_light_of_the_entrants_own_answers() -> None:
    """It is identified by the conversation up to there, and by nothing that comes later."""
    state = known(*answered_up_to(1))

    cell = planned_response(state, entrant("tuned"), talk())

    asked = (*TALK[:2], ("assistant", "tuned 1"), TALK[2])
    assert cell.asked == asked
    assert cell.text == transcript(asked)
    assert cell.response_key == response_key(entrant("tuned").digest, asked, seed=None, sample=0)
    assert not cell.is_last
    assert response_status(state, cell) == "missing"


def test_two_conversations_share_what_was_asked_before_they_part() -> None:
    """Nothing is asked twice."""
    other = talk((*TALK[:2], ("user", "Else?")), "p2")
    state = known(*opened(prompts=[talk(), other]))

    assert len(missing_responses(state, everything(state))) == 2  # one of each entrant
    assert len(responses_to_come(state, everything(state))) == 2 * (3 + 1)


@pytest.mark.no_cover
def test_a_pair_is_there_once_both_answered_all_questions() -> None:
    """The judge is shown the whole of both conversations from the first answer on."""
    for n_answers in (0, 1, 2):
        state = known(*answered_up_to(n_answers))
        [pairing] = planned_pairings(state)
        assert match_of(state, pairing, judge()) is None

    state = known(*answered_up_to(3))
    [pairing] = planned_pairings(state)
    match = match_of(state, pairing, judge())

    assert match is not None
    assert match.response_a.text == transcript(
        (
            ("assistant", "base 1"),
            ("user", "Two?"),
            ("assistant", "base 2"),
            ("user", "Three?"),
            ("assistant", "base 3"),
        )
    )
    assert match.response_a.n_generated_tokens == 3 * 3
    assert match.response_a.text in match.forward.user
    assert "Judge the assistant's last answer, in the light" in match.forward.user
    assert missing_responses(state, everything(state)) == ()


def test_an_answer_that_failed_ends_the_conversation() -> None:
    """What comes after cannot be asked; if it is asked again, the rest is to come as well."""
    state = known(*answered_up_to(1))
    cell = planned_response(state, entrant("base"), talk())
    failure = unanswerable(cell, "rejected")

    after = known(*answered_up_to(1), failure)

    assert response_status(after, planned_response(after, entrant("base"), talk())) == "failed"
    to_come = [cell.entrant.entrant_id for cell in responses_to_come(after, everything(after))]
    assert to_come == ["tuned", "tuned"]
    assert len(responses_to_come(after, everything(after), ["rejected"])) == 4


def test_what_is_to_come_counts_the_whole_conversation_each_time() -> None:
    """Each request has what was said before, at its longest."""
    state = known(*OPENING)

    sizes = [
        len(cell.text)
        for cell in responses_to_come(state, everything(state))
        if cell.entrant.entrant_id == "base"
    ]

    assert len(sizes) == 3
    assert sizes[1] - sizes[0] > entrant("base").max_new_tokens
    assert sizes[2] - sizes[1] == pytest.approx(sizes[1] - sizes[0], abs=30)
    assert len(awaited_queries(state, everything(state), judge(), ENDLESS_RETRIES)) == 2


@pytest.mark.no_cover
@pytest.mark.parametrize("n_th", [1, 2, 3])
def test_a_redacted_answer_is_not_asked_again_nor_what_follows_it(n_th: int) -> None:
    """Its text identified the next; the next says which one it follows."""
    state = without_text(answered_up_to(3), f"base {n_th}")
    whole = planned_response(known(*answered_up_to(3)), entrant("base"), talk())

    cell = planned_response(state, entrant("base"), talk())

    assert cell.keys == whole.keys
    assert missing_responses(state, everything(state)) == ()
    [pairing] = planned_pairings(state)
    assert match_of(state, pairing, judge()) is None


def test_a_redacted_answer_that_prompts_share_is_followed_by_the_answers_of_each() -> None:
    """What follows one answer is told apart by what was asked, in whatever order it is found."""
    others = [talk((*TALK[:2], ("user", f"Else {n}?")), f"other {n}") for n in range(8)]
    events: tuple[Event, ...] = opened(prompts=[talk(), *others])
    events = (*events, _answer(known(*events), "base", 1))
    state = known(*events)
    events = (*events, *(_answer(state, "base", 10 + n, each) for n, each in enumerate(others)))
    state = without_text(events, "base 1")
    whole = known(*events)

    for each in others:
        keys = planned_response(whole, entrant("base"), each).keys
        assert planned_response(state, entrant("base"), each).keys == keys


def test_a_redacted_answer_ends_a_conversation_that_has_no_next() -> None:
    """What was said can be sent to nobody any more."""
    state = without_text(answered_up_to(1), "base 1")

    assert [each.entrant.entrant_id for each in missing_responses(state, everything(state))] == [
        "tuned"
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "them, in turn. Judge the assistant's last answer, in the light of what came"),
        ({"turns": "all"}, "On facts: Judge the assistant's last answer, in the light of what"),
        ({"turns": "all"}, "came before. On style: Judge all of the assistant's answers."),
    ],
)
def test_asked_together_each_dimension_may_judge_other_answers(
    fields: Mapping[str, Any], said: str
) -> None:
    """What is the same for all is said once."""
    rubrics = (rubric("facts"), rubric("style", **fields))
    asked = judge(parameters=(TOGETHER,))
    wording = wording_of(asked, instructions(), rubrics[0], talk(TALK), planned=rubrics)

    told = wording.query("yes", "no", "forward")

    assert said in told.user
    assert "on each dimension by its own rubric alone: facts, style." in told.user


@pytest.mark.parametrize(
    ("messages", "fields", "said"),
    [
        (TALK[:2], {}, "The question is a conversation. Each response is the next turn in it."),
        (TALK, {}, "Judge the assistant's last answer, in the light of what came before."),
        (TALK, {"turns": "all"}, "Judge all of the assistant's answers."),
    ],
)
def test_the_judge_is_told_what_the_responses_are(
    messages: Messages, fields: Mapping[str, Any], said: str
) -> None:
    """Outside the fences, so that no turn can say it; and of a plain prompt nothing is said."""
    asked = {"a": "yes", "b": "no"}
    about = rubric(**fields)

    told = build_query(judge(), instructions(), about, talk(messages), order="forward", **asked)
    plain = build_query(judge(), instructions(), about, prompt(), order="forward", **asked)

    _, _, demand = told.user.rpartition(">>> end of response B ")
    assert said in demand
    assert f"<<< question {told.user.splitlines()[0].split()[-1]}\nsystem:\n```\n" in told.user
    assert "conversation" not in plain.user
    assert "answers" not in plain.user
