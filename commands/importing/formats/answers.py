"""Rows of answers, as scripts write them and as the tools of evaluation do.

A tool is recognised by the fields of its rows; what fits none is read as a plain row, whose
columns have one of several usual names. An answer may be an agent's run, a list of messages: what
it said, which tools it called, what came.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.importing.formats.rows import (
    PROMPT_COLUMNS,
    BadRow,
    Cells,
    Fields,
    InvalidFields,
    Records,
    is_missing,
    said_of_prompt,
    shorten,
    unpacked,
)
from commands.settings.turns import FORMS, with_turns
from ledger.events.conversations import Messages, transcript

TEXTS: Final = ("response", "output", "answer", "completion", "response_text")
"""The columns that may hold an answer; the first that is there does."""
FIGURES: Final = ("prompt_tokens", "completion_tokens", "seconds", "dollars")
"""The columns that say what an answer took; `v2_seconds` those of the answers in column v2."""
MODELS: Final = ("model", "generator", "entrant_id", "model_id")
"""The columns that may say whose answer it is."""


class AnswerRow(NamedTuple):
    """An answer, and what may name its prompt: ids and texts, of which one is to be found."""

    prompts: tuple[str, ...]
    text: str | None  # None: there is no answer
    asked: str | None = None  # the text of the prompt, where the row has it
    prompt: Mapping[str, object] = {}  # what a bank has of it beside that text, or instead
    model: str | None = None
    finish_reason: str | None = None
    n_prompt_tokens: int | None = None
    n_generated_tokens: int | None = None
    elapsed_s: float | None = None
    usd: float | None = None  # what it cost
    p_correct: float | None = None  # the model's own estimate
    turns: tuple[str, ...] = ()  # the answers to a conversation's questions, where it has several
    may_go_on: bool = False  # whether there may be answers to questions that a bank lacks


def answers_of_rows(
    rows: Records, column: str | None = None
) -> Iterator[tuple[int, AnswerRow] | BadRow]:
    """Yield the answers of rows, each with its line, and the rows that are none."""
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            for answer in answer_rows(row.fields, column):
                yield row.line, answer
        except InvalidFields as error:
            yield BadRow(row.line, str(error))


def answer_rows(fields: Fields, column: str | None = None) -> Iterator[AnswerRow]:
    """Yield the answers of a row; a tool's file of one JSON object has them all.

    Args:
        fields: The row.
        column: The column of the answer; None: the row's layout says it.

    Raises:
        InvalidFields: A field is missing or wrong.
    """
    read = _reader_of(fields) if column is None else None
    if read is not None:
        yield from read(Cells(fields))
        return
    # under their own names, and under those without capitals and spaces
    fields = {name.strip().casefold(): value for name, value in fields.items()} | dict(fields)
    name = column or next((name for name in TEXTS if name in fields), None)
    if name is None:
        there = ", ".join(map(repr, fields))
        remedy = f"name it {TEXTS[0]!r}, or name it by `column`"
        raise InvalidFields(f"no column holds the answer; {remedy} (there: {there})")
    yield _plain(Cells(fields), name)


def _plain(cells: Cells, column: str) -> AnswerRow:
    model = next((name for name in MODELS if not cells.lacks(name)), None)
    in_tokens, out_tokens, seconds, dollars = (
        own if (own := figure_of(column, name)) in cells.fields else name for name in FIGURES
    )
    n_tokens = _inner(cells, "diagnostics").optional_count("n_tokens_generated")  # of tap's cache
    texts = [
        cells.text(name)
        for name in PROMPT_COLUMNS["text"]
        if name != column and not cells.lacks(name)
    ]
    forms = {form: unpacked(cells.fields[form]) for form in FORMS if not cells.lacks(form)}
    prompt: Fields = {}
    if not texts and (talk := _transcript(forms)):
        texts, prompt = [talk], forms
    ids = [cells.text(name) for name in PROMPT_COLUMNS["prompt_id"] if not cells.lacks(name)]
    value = cells.fields.get(column)
    turns = texts_of(value)
    return AnswerRow(
        prompts=(*ids, *texts),
        text=_text(turns[0] if turns else value, column),
        asked=texts[0] if texts else None,
        prompt={**prompt, **said_of_prompt(cells.fields, but=column)},
        model=None if model is None else cells.text(model),
        finish_reason=cells.optional_text("finish_reason"),
        n_prompt_tokens=cells.optional_count(in_tokens),
        n_generated_tokens=n_tokens or cells.optional_count(out_tokens),
        elapsed_s=cells.optional_amount(seconds),
        usd=cells.optional_amount(dollars),
        p_correct=cells.optional_share("p_correct"),
        turns=turns,
    )


def figure_of(column: str, name: str) -> str:
    """Return the column with a figure of the answers in a column."""
    return f"{column}_{name}"


def _transcript(forms: Fields) -> str | None:
    """Return a conversation as one text; None: it is none that an entrant could answer."""
    with suppress(ConfigurationError):
        text = with_turns(forms).get("text")
        return text if isinstance(text, str) else None
    return None


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of a list, one for each question of a conversation; of others none."""
    texts = value if isinstance(value, list) else []
    return tuple(texts) if all(isinstance(text, str) for text in texts) else ()


def _tourney(cells: Cells) -> Iterator[AnswerRow]:
    """Read what `tourney project responses` wrote, as CSV, JSON lines or Parquet."""
    yield AnswerRow(
        (cells.text("prompt"),),
        _text(cells.fields["text"], "text"),
        model=cells.text("entrant"),
        finish_reason=cells.optional_text("finish_reason"),
        n_generated_tokens=cells.optional_count("n_tokens"),
        p_correct=cells.optional_share("p_correct"),
    )


def _lm_eval(cells: Cells) -> Iterator[AnswerRow]:
    """Read `samples_*.jsonl` of `lm_eval --log_samples`: a request's context, and its response."""
    responses = cells.structured("resps", list[list[str]])  # else they are log-likelihoods
    context = cells.fields["arguments"]
    while isinstance(context, (list, dict)) and context:  # lists, or tables of a request
        context = next(iter(context.values())) if isinstance(context, dict) else context[0]
    document = cells.fields["doc"]
    texts = document.values() if isinstance(document, dict) else [document]
    asked, prompt = _asked_by(context)
    yield AnswerRow(
        (*asked, *(text for text in texts if isinstance(text, str))),
        responses[0][0] if responses and responses[0] else None,
        asked=asked[-1] if asked else None,
        prompt=prompt,
    )


def _arena_hard(cells: Cells) -> Iterator[AnswerRow]:
    """Read arena-hard's `model_answer` of v2.0."""
    turns = cells.structured("messages", list[dict[str, object]])
    said = [turn.get("content") for turn in turns if turn.get("role") == "assistant"]
    asked = _asked_in(turns)[:1]
    yield AnswerRow(
        (cells.text("uid"), *asked),
        next(map(_content, said), None),
        next(iter(asked), None),
        model=cells.text("model"),
    )


def _mt_bench(cells: Cells) -> Iterator[AnswerRow]:
    """Read FastChat's `model_answer`, and arena-hard's of v0.1."""
    choices = cells.structured("choices", list[dict[str, object]])
    turns = choices[0].get("turns") if choices else None
    texts = [_content(turn) for turn in turns] if isinstance(turns, list) else []
    yield AnswerRow(
        (cells.text("question_id"),),
        texts[0] if texts else None,
        model=cells.text("model_id"),
        turns=texts_of(texts),
        may_go_on=True,
    )


def _content(turn: object) -> str | None:
    """Return the text of a turn: of itself, of its content, or of the answer in it."""
    while isinstance(turn, dict):
        turn = turn.get("content", turn.get("answer"))
    return _text(turn, "content")


def _promptfoo(cells: Cells) -> Iterator[AnswerRow]:
    """Read the results of `promptfoo eval --output results.json`."""
    found = cells.fields["results"]
    rows = found.get("results") if isinstance(found, dict) else found
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            yield _promptfoo_row(Cells(row))


def _promptfoo_row(cells: Cells) -> AnswerRow:
    provider, response = _inner(cells, "provider").fields, _inner(cells, "response")
    tokens = _inner(response, "tokenUsage")
    asked, prompt = _asked_by(_inner(cells, "prompt").fields.get("raw"))
    variables = _inner(cells, "vars").fields.values()
    model = provider.get("label") or provider.get("id")
    milliseconds = cells.optional_number("latencyMs")
    output = response.fields.get("output")
    return AnswerRow(
        (*asked, *(variable for variable in variables if isinstance(variable, str))),
        None if is_missing(output) and output != "" else _text(output, "response.output"),
        asked=asked[-1] if asked else None,
        prompt=prompt,
        model=str(model) if model else None,
        n_prompt_tokens=tokens.optional_count("prompt"),
        n_generated_tokens=tokens.optional_count("completion"),
        elapsed_s=None if milliseconds is None else milliseconds / 1000,
        usd=cells.optional_amount("cost"),
    )


def _inspect(cells: Cells) -> Iterator[AnswerRow]:
    """Read a log of inspect as JSON (`inspect log dump`)."""
    model = _inner(cells, "eval").fields.get("model")
    for sample in map(Cells, cells.structured("samples", list[dict[str, object]])):
        output = _inner(sample, "output")
        choices = output.fields.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        choice = Cells(first if isinstance(first, dict) else {})
        usage = _inner(output, "usage")
        asked, prompt = _asked_by(sample.fields.get("input"))
        yield AnswerRow(
            (sample.text("id"), *asked),
            _said(_inner(choice, "message").fields.get("content")),
            asked=asked[-1] if asked else None,
            prompt=prompt,
            model=str(model) if model else None,
            finish_reason=choice.optional_text("stop_reason"),
            n_prompt_tokens=usage.optional_count("input_tokens"),
            n_generated_tokens=usage.optional_count("output_tokens"),
            elapsed_s=output.optional_number("time"),
        )


def _asked_by(request: object) -> tuple[Sequence[str], Fields]:
    """Return what may name the prompt of a request, the whole last, and the conversation it is.

    A request is a text, or a list of messages, which chats write into the text as JSON.
    """
    turns = unpacked(request)
    tables = turns if isinstance(turns, list) and is_run(turns) else []
    messages = [{name: table.get(name) for name in ("role", "content")} for table in tables]
    whole = _transcript({"messages": messages}) if messages else None
    if whole is None and isinstance(request, str):
        return [request], {}
    named = dict.fromkeys([*_asked_in(tables)[-1:], *([whole] if whole else [])])
    return [*named], {"messages": messages} if whole and len(messages) > 1 else {}


def _asked_in(turns: Sequence[Fields]) -> list[str]:
    """Return the texts that the user says in turns."""
    contents = (turn.get("content") for turn in turns if turn.get("role") == "user")
    return [content for content in contents if isinstance(content, str)]


def _said(content: object) -> str | None:
    """Return a message's text, without its parts of reasoning."""
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, dict) and each.get("type") == "text"]
        return "\n".join(str(each.get("text", "")) for each in parts)
    return _text(content, "content")


def _inner(cells: Cells, name: str) -> Cells:
    """Return the fields of a table within a row; none if there is no such table."""
    value = cells.fields.get(name)
    return Cells(value if isinstance(value, dict) else {})


def _text(value: object, name: str) -> str | None:
    """Return an answer; a number becomes its digits, an agent's run one text, and null is none."""
    if value is None:
        return None
    if isinstance(value, list) and is_run(value):
        return run_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return None if value != value else str(value)  # noqa: PLR0124  # NaN stands for null
    if isinstance(value, str):
        return _run_in(value) or (value if not value else Cells({name: value}).text(name))
    raise InvalidFields(f"{name} is {type(value).__name__}, but must be a text")


def _run_in(cell: str) -> str | None:
    """Return an agent's run that a CSV's cell holds as JSON; None: it is a text like any other."""
    run = unpacked(cell)
    if isinstance(run, list) and is_run(run) and any(each["role"] == "assistant" for each in run):
        with suppress(InvalidFields):
            return run_text(run)
    return None


_Read = Callable[[Cells], Iterator[AnswerRow]]
_LAYOUTS: Final[Sequence[tuple[Sequence[str], _Read]]] = (
    (("prompt", "entrant", "text", "n_tokens"), _tourney),
    (("doc", "resps", "arguments"), _lm_eval),
    (("uid", "model", "messages"), _arena_hard),
    (("question_id", "model_id", "choices"), _mt_bench),
    (("results", "config"), _promptfoo),
    (("eval", "samples"), _inspect),
)
"""The fields that tell a tool's rows, and their reader."""


def _reader_of(fields: Fields) -> _Read | None:
    layouts = (read for needed, read in _LAYOUTS if all(name in fields for name in needed))
    return next(layouts, None)


def is_of_a_tool(fields: Fields) -> bool:
    """Say whether a row is of a tool's file, whose layout is known."""
    return _reader_of(fields) is not None


_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_CALLS: Final = "assistant calls"


def is_run(value: object) -> bool:
    """Say whether a value is a list of messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and "role" in each for each in value)
    )


def run_text(messages: list[Fields]) -> str:
    """Return the messages of an agent's run as one text, each between fences of its own.

    Raises:
        InvalidFields: A message has an unknown role, or says what no judge can be shown.
    """
    return text_of(
        tuple(pair for number, each in enumerate(messages, 1) for pair in _parts_of(number, each))
    )


def text_of(said: Messages) -> str:
    """Return what was said as one text; one message of the assistant as it is."""
    return said[0][1] if [role for role, _ in said] == ["assistant"] else transcript(said)


def _parts_of(number: int, message: Fields) -> Iterator[tuple[str, str]]:
    """Yield what a message says and which tools it calls, in the shapes of OpenAI and Anthropic."""
    role, content = message["role"], message.get("content")
    if role not in _ROLES:
        known = ", ".join(_ROLES)
        raise InvalidFields(f"message {number} has the role {shorten(role)}; write one of {known}")
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        match part:
            case {"type": "text", "text": str(text)}:
                if text:
                    yield str(role), text
            case {"type": "text", "text": None}:
                pass
            case {"type": "tool_use", "name": name, "input": given}:
                yield _CALLS, f"{name}({_json(given)})"
            case {"type": "tool_result", "content": result}:
                yield "tool", _result(result)
            case _:
                kind = part.get("type") if isinstance(part, Mapping) else part
                why = "judges are shown texts alone; say in words what it shows, or remove it"
                raise InvalidFields(f"message {number} has a part of type {shorten(kind)}: {why}")
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        called = call.get("function", call) if isinstance(call, dict) else call
        named = called if isinstance(called, dict) else {"name": called}
        yield _CALLS, f"{named.get('name')}({_json(named.get('arguments', ''))})"


def _result(value: object) -> str:
    texts = value if isinstance(value, list) else [value]
    return "\n".join(
        str(text["text"]) if isinstance(text, dict) and "text" in text else _json(text)
        for text in texts
    )


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
