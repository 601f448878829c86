"""Rows of answers, as scripts write them and as the tools of evaluation do.

A tool is recognised by the fields of its rows; what fits none is read as a plain row, whose
columns have one of several usual names.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.importing.formats.agent_runs import is_run, run_text
from commands.importing.formats.rows import Cells, Fields, InvalidFields, is_missing, unpacked
from commands.settings.turns import FORMS, with_turns

TEXTS: Final = ("response", "output", "answer", "completion", "response_text")
"""The columns that may hold an answer; the first that is there does."""
MODELS: Final = ("model", "generator", "entrant_id", "model_id")
"""The columns that may say whose answer it is."""
_IDS: Final = ("prompt_id", "id")
_ASKED: Final = ("prompt", "text", "question", "instruction", "query", "user_input")


class AnswerRow(NamedTuple):
    """An answer, and what may name its prompt: ids and texts, of which one is to be found."""

    prompts: tuple[str, ...]
    text: str | None  # None: there is no answer
    asked: str | None = None  # the text of the prompt, where the row has it
    talk: Mapping[str, object] | None = None  # the prompt, where that is a conversation
    model: str | None = None
    finish_reason: str | None = None
    n_prompt_tokens: int | None = None
    n_generated_tokens: int | None = None
    elapsed_s: float | None = None
    p_correct: float | None = None  # the model's own estimate
    turns: tuple[str, ...] = ()  # the answers to a conversation's questions, where it has several
    may_go_on: bool = False  # whether there may be answers to questions that a bank lacks


def answer_rows(fields: Fields, column: str | None = None) -> Iterator[AnswerRow]:
    """Yield the answers of a row; a tool's file of one JSON object has them all.

    Args:
        fields: The row.
        column: The column of the answer; None: the row's layout says it.

    Raises:
        InvalidFields: A field is missing or wrong.
    """
    if column is not None:
        yield _plain(Cells(_also_plainly(fields)), column)
        return
    for needed, read in _LAYOUTS:
        if all(name in fields for name in needed):
            yield from read(Cells(fields))
            return
    fields = _also_plainly(fields)
    name = next((name for name in TEXTS if name in fields), None)
    if name is None:
        there = ", ".join(map(repr, fields))
        remedy = f"name it {TEXTS[0]!r}, or name it by `column`"
        raise InvalidFields(f"no column holds the answer; {remedy} (there: {there})")
    yield _plain(Cells(fields), name)


def _also_plainly(fields: Fields) -> Fields:
    """Return the fields under their own names, and under those without capitals and spaces."""
    return {name.strip().casefold(): value for name, value in fields.items()} | dict(fields)


def _plain(cells: Cells, column: str) -> AnswerRow:
    model = next((name for name in MODELS if not cells.lacks(name)), None)
    said = cells.fields.get("diagnostics")  # of tap's cache
    n_tokens = Cells(said).optional_count("n_tokens_generated") if isinstance(said, dict) else None
    asked = [cells.text(name) for name in _ASKED if name != column and not cells.lacks(name)]
    talk = None
    said = {form: unpacked(cells.fields[form]) for form in FORMS if not cells.lacks(form)}
    if said and not asked:
        with suppress(ConfigurationError):  # else it is no prompt's conversation
            asked, talk = [str(with_turns(said)["text"])], said
    ids = [cells.text(name) for name in _IDS if not cells.lacks(name)]
    value = cells.fields.get(column)
    turns = texts_of(value)
    return AnswerRow(
        prompts=(*ids, *asked),
        text=_text(turns[0] if turns else value, column),
        asked=asked[0] if asked else None,
        talk=talk,
        model=None if model is None else cells.text(model),
        finish_reason=cells.optional_text("finish_reason"),
        n_prompt_tokens=cells.optional_count("prompt_tokens"),
        n_generated_tokens=n_tokens or cells.optional_count("completion_tokens"),
        elapsed_s=cells.optional_number("seconds"),
        p_correct=cells.optional_share("p_correct"),
        turns=turns,
    )


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of a list, one for each question of a conversation; of others none."""
    texts = value if isinstance(value, list) else []
    return tuple(texts) if all(isinstance(each, str) for each in texts) else ()


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
    context = _inner(cells.fields["arguments"])
    document = cells.fields["doc"]
    texts = document.values() if isinstance(document, dict) else [document]
    named = (context, *texts)
    yield AnswerRow(
        tuple(each for each in named if isinstance(each, str)),
        responses[0][0] if responses and responses[0] else None,
        asked=context if isinstance(context, str) else None,
    )


def _inner(value: object) -> object:
    """Return the first of what is nested in lists and in the tables of a request."""
    while isinstance(value, (list, dict)) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


def _arena_hard(cells: Cells) -> Iterator[AnswerRow]:
    """Read arena-hard's `model_answer` of v2.0."""
    turns = cells.structured("messages", list[dict[str, object]])
    said = [each.get("content") for each in turns if each.get("role") == "assistant"]
    asked = [each.get("content") for each in turns if each.get("role") == "user"]
    text = next((_content(each) for each in said), None)
    first = [each for each in asked[:1] if isinstance(each, str)]
    yield AnswerRow(
        (cells.text("uid"), *first), text, first[0] if first else None, model=cells.text("model")
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
    provider = _table(cells, "provider")
    response, said = _table(cells, "response"), _table(cells, "vars")
    usage = Cells(response).fields.get("tokenUsage")
    tokens = Cells(usage if isinstance(usage, dict) else {})
    raw = _table(cells, "prompt").get("raw")
    model = provider.get("label") or provider.get("id")
    milliseconds = cells.optional_number("latencyMs")
    output = response.get("output")
    return AnswerRow(
        tuple(each for each in (raw, *said.values()) if isinstance(each, str)),
        None if is_missing(output) and output != "" else _text(output, "response.output"),
        asked=raw if isinstance(raw, str) else None,
        model=str(model) if model else None,
        n_prompt_tokens=tokens.optional_count("prompt"),
        n_generated_tokens=tokens.optional_count("completion"),
        elapsed_s=None if milliseconds is None else milliseconds / 1000,
    )


def _inspect(cells: Cells) -> Iterator[AnswerRow]:
    """Read a log of inspect as JSON (`inspect log dump`)."""
    model = _table(cells, "eval").get("model")
    for sample in cells.structured("samples", list[dict[str, object]]):
        output = _table(Cells(sample), "output")
        choices = output.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        choice = Cells(first if isinstance(first, dict) else {})
        usage = Cells(_table(Cells(output), "usage"))
        asked = sample.get("input")
        turns = asked if isinstance(asked, list) else [{"role": "user", "content": asked}]
        tables = [each for each in turns if isinstance(each, dict)]
        users = [each.get("content") for each in tables if each.get("role") == "user"]
        last = [each for each in users[-1:] if isinstance(each, str)]
        yield AnswerRow(
            (Cells(sample).text("id"), *last),
            _said(_table(choice, "message").get("content")),
            asked=last[0] if last else None,
            model=str(model) if model else None,
            finish_reason=choice.optional_text("stop_reason"),
            n_prompt_tokens=usage.optional_count("input_tokens"),
            n_generated_tokens=usage.optional_count("output_tokens"),
            elapsed_s=Cells(output).optional_number("time"),
        )


def _said(content: object) -> str | None:
    """Return a message's text, without its parts of reasoning."""
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, dict) and each.get("type") == "text"]
        return "\n".join(str(each.get("text", "")) for each in parts)
    return _text(content, "content")


def _table(cells: Cells, name: str) -> dict[str, object]:
    value = cells.fields.get(name)
    return value if isinstance(value, dict) else {}


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


def is_of_a_tool(fields: Fields) -> bool:
    """Say whether a row is of a tool's file, whose layout is known."""
    return any(all(name in fields for name in needed) for needed, _ in _LAYOUTS)
