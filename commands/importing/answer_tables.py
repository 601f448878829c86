"""What a new tournament begins with: answers, which are all of it, or prompts alone.

Answers are a table, the file of a tool, or a folder of files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.importing.bank import (
    ASKED,
    bank_row,
    columns_by_field,
    other_columns,
    prompts_of_rows,
)
from commands.importing.formats.answers import (
    FIGURES,
    MODELS,
    TEXTS,
    AnswerRow,
    answers_of_rows,
    figure_of,
    is_of_a_tool,
)
from commands.importing.formats.files import doubled, readable_again, records_of, table_of
from commands.importing.formats.rows import (
    PROMPT_COLUMNS,
    BadRow,
    Fields,
    Record,
    is_missing,
    said_of_prompt,
)
from commands.importing.labelled_pairs import (
    PAIRS_FILE,
    SIDES,
    LabelledPairs,
    answer_columns,
    labelled_pairs,
)
from commands.settings.turns import FORMS

_SUFFIXES: Final = frozenset({".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet"})
_OF_A_TASK: Final = "samples_"  # files of lm-eval, in a folder for each model
_IDS: Final = ("prompt_id", "question_id", "uid", "id")
_QUESTIONS: Final = (*FORMS, *PROMPT_COLUMNS["text"])
_TOLD: Final = ("choices", "resps", "winner", "output_1")  # of answers and of verdicts
_OF_REFERENCES: Final = "reference_answer"
_NO_ANSWERS: Final = frozenset(
    {"context", "contexts", "documents", "cost", "latency", "notes", "timestamp", "tokens", "url"}
    | {"choices", "options", "tags", "expected_behavior", *_IDS}
)  # columns that tables of answers or prompts have beside them
_FEWEST: Final = 2  # systems that are compared


class AnswersTable(NamedTuple):
    """The prompts and the systems of a tournament whose answers are there."""

    prompts: tuple[dict[str, object], ...]
    entrants: Mapping[str, Mapping[str, str]]  # by id the keys that say which answers are its own
    columns: Mapping[str, str] = {}  # of the prompts, by field
    unread: tuple[str, ...] = ()  # files of a folder and columns, with why they hold no answers
    labelled: LabelledPairs | None = None  # pairs of answers with votes, if it holds those
    n_empty: int = 0  # cells that are empty answers


class PromptTable(NamedTuple):
    """The prompts of a table without answers, and the columns that were not used."""

    prompts: tuple[dict[str, object], ...]
    unused: tuple[str, ...]


def read_table(path: Path, n_named: int) -> AnswersTable | PromptTable:
    """Read answers of several systems, or prompts alone.

    Answers are those of a folder's files, of a tool's file, or of a table with a column for each
    system, or with one for the answer and one for whose it is. Or pairs of answers that people have
    labelled: then each side is a system. Any other table has prompts; so has one whose columns may
    be answers, if two models are named that answer its prompts.

    Args:
        path: A file, or a folder.
        n_named: How many models are named.

    Raises:
        ConfigurationError: It cannot be read, or holds neither.
    """
    if path.is_dir():
        return _of_folder(path)
    if not path.exists():
        raise ConfigurationError([f"{path}: there is no such file or folder; correct --from"])
    with readable_again(path) as content:
        header, rows = table_of(path, content=content)
    found = _of_file(path, header, rows, n_named)
    is_read_again = isinstance(found, AnswersTable) and found.labelled is None
    if is_read_again and not path.is_file():
        fault = "answers are read again by each command; save them to a file, and name that"
        raise ConfigurationError([f"{path}: {fault}"])
    return found


def _of_file(
    path: Path, header: Sequence[str], rows: Sequence[Record | BadRow], n_named: int
) -> AnswersTable | PromptTable:
    records = [row for row in rows if isinstance(row, Record)]
    if records and all(is_of_a_tool(record.fields) for record in records):
        return _of_files(path, {path: _answers_of(path, rows)}, questions={})
    if columns := answer_columns(header):
        _require_each_once(path, header)
        return _of_labelled(path, labelled_pairs(rows, columns))
    named = {name.strip().casefold(): name for name in header}
    if not named.keys() & {*FORMS, *PROMPT_COLUMNS["text"]}:
        known = ", ".join([*PROMPT_COLUMNS["text"], *FORMS])
        why = (
            f"it holds neither prompts nor answers: no column is one of {known}, nor is it another"
            f" tool's file or labelled pairs of answers (there: {', '.join(header)})"
        )
        raise ConfigurationError([f"{path}: {why}"])
    model, text = (
        next((named[each] for each in of if each in named), None) for of in (MODELS, TEXTS)
    )
    if model is None or text is None:
        return _of_columns(path, header, rows, n_named)
    _require_each_once(path, header)
    return _of_rows(path, header, rows, (model, text))


def _require_each_once(path: Path, header: Sequence[str]) -> None:
    if faults := [*doubled(None, header)]:
        raise ConfigurationError([f"{path}: {fault}" for fault in faults])


def _of_folder(folder: Path) -> AnswersTable:
    """Read each file of a folder that holds answers, or questions that answers name by their ids.

    Of the other files say why they hold none.
    """
    files: dict[Path, Sequence[AnswerRow]] = {}
    questions: dict[str, Fields] = {}
    unread: list[str] = []
    for file in sorted(folder.rglob("*")):
        if _OF_REFERENCES in file.parts:  # MT-bench's, of no system that competes
            continue
        if file.is_file() and not _SUFFIXES.isdisjoint(file.suffixes):
            try:
                rows = [*records_of(file, None)]
                if found := _questions(rows):
                    questions |= found
                else:
                    files[file] = _answers_of(file, rows)
            except ConfigurationError as error:
                unread += error.faults
    if not files:
        raise ConfigurationError([f"{folder}: no file in it holds answers", *unread])
    return _of_files(folder, files, questions)._replace(unread=tuple(unread))


def _questions(rows: Iterable[Record | BadRow]) -> dict[str, Fields]:
    """Return the prompts of a file that has an id and a question in each row, and no answer."""
    found: dict[str, Fields] = {}
    for row in rows:
        fields = row.fields if isinstance(row, Record) else {}
        name = next((fields[key] for key in _IDS if not is_missing(fields.get(key))), None)
        form = next((key for key in _QUESTIONS if not is_missing(fields.get(key))), None)
        is_told = is_of_a_tool(fields) or not {*TEXTS, *_TOLD}.isdisjoint(fields)
        if name is None or form is None or is_told:
            return {}
        asked = form if form in FORMS else "text"
        prompt = {"prompt_id": str(name), asked: fields[form]}
        found[str(name)] = {**prompt, **said_of_prompt(fields)}
    return found


def _answers_of(file: Path, rows: Iterable[Record | BadRow]) -> Sequence[AnswerRow]:
    """Return the answers of a file.

    Raises:
        ConfigurationError: A row is no answer.
    """
    answers: list[AnswerRow] = []
    for row in answers_of_rows(rows):
        if isinstance(row, BadRow):
            raise ConfigurationError([f"{file}:{row.line}: {row.why}"])
        answers.append(row[1])
    if not answers:
        raise ConfigurationError([f"{file}: it holds no answers"])
    return answers


def _of_files(
    path: Path,
    files: Mapping[Path, Sequence[AnswerRow]],
    questions: Mapping[str, Fields],
) -> AnswersTable:
    asked: dict[str, Fields] = {}
    for row in chain.from_iterable(files.values()):
        if row.asked:
            is_talk = not row.prompt.keys().isdisjoint(FORMS)
            text = {} if is_talk else {"text": row.asked}
            asked.setdefault(row.asked, {**text, **row.prompt})
        elif name := next((name for name in row.prompts if name in questions), None):
            asked.setdefault(name, questions[name])
    if not asked:
        remedy = (
            "its rows name prompts by id only; name the folder that has the questions, too, or"
            " write a bank of those prompts, and an entrant of recorded answers for each system"
        )
        raise ConfigurationError([f"{path}: {remedy}"])
    prompts = tuple(bank_row(prompt) for prompt in asked.values())
    entrants: dict[str, Mapping[str, str]] = {}
    for name, keys in _systems(files):
        if entrants.setdefault(name, keys) != keys:
            fault = f"{entrants[name]['responses']} and {keys['responses']} both have answers of"
            raise ConfigurationError([f"{fault} {name!r}; keep one of them"])
    return AnswersTable(prompts, _compared(path, entrants))


def _systems(
    files: Mapping[Path, Sequence[AnswerRow]],
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each system's name, and the keys that say where its answers are."""
    for file, rows in files.items():
        models = [*dict.fromkeys(row.model for row in rows if row.model)]
        if len(models) > 1:
            yield from ((name, {"responses": str(file), "model": name}) for name in models)
        else:
            is_of_a_task = file.name.startswith(_OF_A_TASK)
            name = file.parent.name if is_of_a_task else file.stem
            yield models[0] if models else name, {"responses": str(file)}


def _of_labelled(path: Path, pairs: LabelledPairs) -> AnswersTable:
    if not pairs.pairs:
        remedy = (
            "a row needs a prompt, two answers, and who won: model_a, model_b or tie; if it holds"
            " answers of systems, rename the column of labels"
        )
        raise ConfigurationError([f"{path}: no labelled pair is in it; {remedy}"])
    entrants = {side: {"responses": PAIRS_FILE, "column": side} for side in SIDES}
    return AnswersTable(pairs.prompts, entrants, labelled=pairs)


def _of_columns(
    path: Path, header: Sequence[str], rows: Sequence[Record | BadRow], n_named: int
) -> AnswersTable | PromptTable:
    """Read a table with a column for each system's answers, or for none."""
    column = columns_by_field(path, header, PROMPT_COLUMNS)
    prompts = prompts_of_rows(path, rows, column)
    others = other_columns(header, column)
    figures = {figure_of(name, figure) for name in others for figure in FIGURES}
    beside = [name for name in others if _is_beside(name)]
    systems = [name for name in others if name not in {*figures, *beside}]
    n_columns = sum(name in systems for name in header)  # two may have the same name
    if n_columns < _FEWEST or n_named >= _FEWEST:
        return PromptTable(prompts, others)
    _require_each_once(path, header)
    unread = tuple(f"column {name!r}, by its name; rename it to compare it" for name in beside)
    entrants = {name: {"responses": str(path), "column": name} for name in systems}
    records = [row for row in rows if isinstance(row, Record)]
    n_empty = sum(record.fields.get(name) == "" for record in records for name in systems)
    return AnswersTable(prompts, entrants, column, unread, n_empty=n_empty)


def _is_beside(name: str) -> bool:
    """Say whether a column usually holds no answers, by its name."""
    return name.startswith("_") or name.strip().casefold() in _NO_ANSWERS


def _of_rows(
    path: Path,
    header: Sequence[str],
    rows: Sequence[Record | BadRow],
    columns: tuple[str, str],
) -> AnswersTable:
    """Read a table with a row for each system's answer: whose it is, and the answer."""
    model, text = columns
    without_text = {
        field: [name for name in of if name != text.strip().casefold()]
        for field, of in PROMPT_COLUMNS.items()
    }
    column = columns_by_field(path, header, without_text)
    asked = [name for field, name in column.items() if field in ASKED]
    records = [row for row in rows if isinstance(row, Record)]
    firsts = {
        str([record.fields.get(name) for name in asked]): record for record in reversed(records)
    }
    bad = [row for row in rows if isinstance(row, BadRow)]
    prompts = prompts_of_rows(path, [*bad, *reversed(firsts.values())], column)
    names = dict.fromkeys(record.fields.get(model) for record in records)
    models = [str(name) for name in names if not is_missing(name)]
    entrants = {name: {"responses": str(path), "model": name} for name in models}
    return AnswersTable(prompts, _compared(path, entrants), column)


def _compared(
    path: Path, entrants: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Mapping[str, str]]:
    """Return the entrants, of which there must be two.

    Raises:
        ConfigurationError: There are fewer.
    """
    if len(entrants) >= _FEWEST:
        return entrants
    there = ", ".join(entrants) or "nobody"
    remedy = (
        "name a folder with the files of two or more systems; for the prompts alone, remove the"
        " answers"
    )
    raise ConfigurationError([f"{path}: it has answers of {there} only; {remedy}"])
