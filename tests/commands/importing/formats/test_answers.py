"""The answers in files of the tools that write them, in their layouts."""

import json
from collections.abc import Callable

import pytest

from commands.importing.formats.answers import AnswerRow, answer_rows
from commands.importing.formats.rows import Fields
from ledger.events.conversations import transcript

PROMPT, ANSWER = "Who wrote Hamlet?", "Shakespeare"
PLAIN = {"prompt": PROMPT, "response": ANSWER}
LM_EVAL = {
    "doc_id": 0,
    "doc": {"question": PROMPT},
    "target": ANSWER,
    "arguments": {"gen_args_0": {"arg_0": f"Q: {PROMPT}\nA:", "arg_1": {"until": ["\n"]}}},
    "resps": [[ANSWER]],
    "filtered_resps": [ANSWER],
}
ALPACA = {"dataset": "own", "instruction": PROMPT, "output": ANSWER, "generator": "m"}
ARENA_HARD = {
    "uid": "u1",
    "ans_id": "x",
    "model": "m",
    "messages": [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": {"answer": ANSWER}},
    ],
}
MT_BENCH = {
    "question_id": 81,
    "answer_id": "x",
    "model_id": "m",
    "choices": [{"index": 0, "turns": [ANSWER, "and more"]}],
    "tstamp": 1.0,
}
ARENA_HARD_V0_1 = {**MT_BENCH, "choices": [{"index": 0, "turns": [{"content": ANSWER}]}]}
PROMPTFOO = {
    "evalId": "eval-1",
    "config": {"description": "own"},
    "results": {
        "version": 3,
        "results": [
            {
                "provider": {"id": "openai:m", "label": "m"},
                "prompt": {"raw": f"Answer: {PROMPT}", "label": "x"},
                "vars": {"question": PROMPT},
                "response": {"output": ANSWER, "tokenUsage": {"prompt": 7, "completion": 3}},
                "latencyMs": 500,
            }
        ],
    },
}
INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "model": "m"},
    "samples": [
        {
            "id": "s1",
            "epoch": 1,
            "input": [{"role": "user", "content": PROMPT}],
            "output": {
                "model": "m",
                "choices": [
                    {
                        "message": {"role": "assistant", "content": ANSWER},
                        "stop_reason": "stop",
                    }
                ],
                "usage": {"input_tokens": 7, "output_tokens": 3},
                "time": 0.5,
            },
        }
    ],
}
TAP = {
    "entrant_id": "m",
    "prompt_id": "p1",
    "response_text": ANSWER,
    "p_correct": None,
    "diagnostics": {"n_tokens_generated": 3},
}


def one(fields: Fields) -> AnswerRow:
    """Return the only answer of a row."""
    (row,) = answer_rows(fields)
    return row


@pytest.mark.parametrize(
    ("fields", "named", "model"),
    [
        (PLAIN, PROMPT, None),
        (LM_EVAL, PROMPT, None),
        (ALPACA, PROMPT, "m"),
        (ARENA_HARD, "u1", "m"),
        (MT_BENCH, "81", "m"),
        (ARENA_HARD_V0_1, "81", "m"),
        (PROMPTFOO, PROMPT, "m"),
        (INSPECT, "s1", "m"),
        (TAP, "p1", "m"),
    ],
)
def test_a_tools_answer_is_found(fields: Fields, named: str, model: str | None) -> None:
    """Its prompt is one of those that the row names; whose it is, is told where the file does."""
    row = one(fields)

    assert (row.text, row.model) == (ANSWER, model)
    assert named in row.prompts


@pytest.mark.parametrize("fields", [PROMPTFOO, INSPECT])
def test_tokens_and_seconds_come_along(fields: Fields) -> None:
    """As far as the tool tells them."""
    row = one(fields)

    assert (row.n_prompt_tokens, row.n_generated_tokens, row.elapsed_s) == (7, 3, 0.5)


def test_null_is_no_answer_and_an_empty_text_is_one() -> None:
    """So a failed request is a gap, and a model that said nothing is judged."""
    assert one({"prompt": PROMPT, "response": None}).text is None
    assert not one({"prompt": PROMPT, "response": ""}).text


def test_a_log_of_inspect_has_the_conversation_before_the_question() -> None:
    """The answer is to all of it; the last question alone would be another prompt."""
    told = ("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", PROMPT)
    asked = [{"id": "x", "role": role, "content": content} for role, content in told]
    row = one({**INSPECT, "samples": [{**INSPECT["samples"][0], "input": asked}]})  # type: ignore[index]

    assert row.prompt == {"messages": [{"role": r, "content": c} for r, c in told]}
    assert row.asked == transcript(told)
    assert {"s1", PROMPT, row.asked} == {*row.prompts}
    assert "messages" not in one(INSPECT).prompt


def lm_eval_asked(context: str) -> AnswerRow:
    """Return an answer of lm-eval to what it was asked."""
    return one({**LM_EVAL, "arguments": {"gen_args_0": {"arg_0": [context]}}})


def promptfoo_asked(raw: str) -> AnswerRow:
    """Return an answer of promptfoo to what it was asked."""
    (result,) = PROMPTFOO["results"]["results"]  # type: ignore[index]
    return one({**PROMPTFOO, "results": {"results": [{**result, "prompt": {"raw": raw}}]}})


@pytest.mark.parametrize("row_of", [lm_eval_asked, promptfoo_asked])
def test_what_a_chat_was_asked_is_not_its_json(row_of: Callable[[str], AnswerRow]) -> None:
    """Both tools write the messages into one text; it may end with the beginning of an answer."""
    question = {"role": "user", "content": PROMPT}
    talk = [{"role": "system", "content": "Be brief."}, question]
    begun = json.dumps([question, {"role": "assistant", "content": "It was"}])

    alone, told = row_of(json.dumps([question])), row_of(json.dumps(talk))

    assert (alone.asked, alone.prompt) == (PROMPT, {})
    assert told.prompt == {"messages": talk}
    assert told.asked == transcript((("system", "Be brief."), ("user", PROMPT)))
    assert row_of(begun).asked == begun


def test_what_a_row_says_of_its_prompt_comes_along() -> None:
    """The data set of AlpacaEval is a category, as where its verdicts are imported."""
    assert one(ALPACA).prompt == {"category": "own"}
    assert one({**PLAIN, "reference": "S.", "category": " "}).prompt == {"gold_answer": "S."}
