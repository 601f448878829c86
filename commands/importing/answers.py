"""Answers that one already has: an entrant of loader `recorded`, and the table behind it.

The entrant's identity is the content of its answers to the bank's prompts. The order of the rows
and other columns do not matter; a corrected answer makes it another version of the entrant.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from commands.errors import ConfigurationError, counted, first_lines, joined_names
from commands.importing.formats.answers import AnswerRow, answer_rows
from commands.importing.formats.files import OpenParquet, reading, records_of
from commands.importing.formats.rows import BadRow, InvalidFields, Sheet
from commands.ports import GeneratedText, GenerationFailure, GenerationTask
from commands.settings.sections import RecordedSection
from ledger.events.registration import Entrant, Prompt
from ledger.identity import Digest, EntrantId, digest_of, digest_of_bytes
from projections.tournament.estimate import BYTES_PER_TOKEN, n_bytes


class RecordedAnswers(NamedTuple):
    """The answers of a file to the bank's prompts, by the prompts' texts."""

    by_prompt: Mapping[str, AnswerRow]
    file: Path
    file_digest: Digest

    @property
    def digest(self) -> Digest:
        """Digest of what was answered to which text."""
        return digest_of(sorted((prompt, row.text) for prompt, row in self.by_prompt.items()))


class _FoundAnswer(NamedTuple):
    """An answer, and its row in the file."""

    line: int
    row: AnswerRow


def recorded_entrant(
    section: RecordedSection, folder: Path, bank: Sequence[Prompt], open_parquet: OpenParquet | None
) -> Entrant:
    """Return the entrant whose answers a file has.

    Raises:
        ConfigurationError: The file cannot be read, or does not say what was answered to what.
    """
    answers = read_answers(section, folder, bank, open_parquet)
    longest = max(n_bytes(row.text or "") for row in answers.by_prompt.values())
    return Entrant(
        entrant_id=EntrantId(section.id),
        loader="recorded",
        weights=str(section.responses),
        weights_digest=answers.digest,
        max_new_tokens=max(1, round(longest / BYTES_PER_TOKEN)),
        dtype=None,
    )


def read_answers(
    section: RecordedSection, folder: Path, bank: Sequence[Prompt], open_parquet: OpenParquet | None
) -> RecordedAnswers:
    """Read the answers of an entrant to the prompts of a bank; those to others are left out.

    Raises:
        ConfigurationError: The file cannot be read, no row names a prompt of the bank, or two rows
            contradict each other.
    """
    file = folder / section.responses
    with reading(file):
        digest = digest_of_bytes(file.read_bytes())
    texts = {prompt.text: prompt.text for prompt in bank}
    texts |= {prompt.prompt_id: prompt.text for prompt in bank}  # an id comes first
    bad: list[str] = []
    found: dict[str, _FoundAnswer] = {}
    models: Counter[str] = Counter()
    n_rows = 0
    for line, row in _rows(file, section.column, open_parquet, bad):
        models[row.model or ""] += 1
        if section.model not in {None, row.model}:
            continue
        n_rows += 1
        prompt = next((texts[name] for name in row.prompts if name in texts), None)
        if prompt is None or row.text is None:
            continue
        first = found.setdefault(prompt, _FoundAnswer(line, row))
        if first.row.model != row.model:
            bad.append(f"{line}: {_choose_model(models)}")
        elif first.row.text != row.text:
            why = f"another answer to the prompt of row {first.line}; keep one of them"
            bad.append(f"{line}: {why}")
    if bad:
        raise ConfigurationError(
            [*first_lines([f"{file}:{each}" for each in bad], len(bad), "row")]
        )
    if not found:
        raise ConfigurationError([f"{file}: {_none_found(section, n_rows, models)}"])
    return RecordedAnswers({name: each.row for name, each in found.items()}, file, digest)


def _rows(
    file: Path, column: str | None, open_parquet: OpenParquet | None, bad: list[str]
) -> Iterator[tuple[int, AnswerRow]]:
    is_there = column is None
    for record in records_of(file, None, open_parquet or _no_parquet):
        if isinstance(record, BadRow):
            bad.append(f"{record.line}: {record.why}")
            continue
        is_there = is_there or column in record.fields
        try:
            for row in answer_rows(record.fields, column):
                yield record.line, row
        except InvalidFields as error:
            bad.append(f"{record.line}: {error}")
    if not is_there:
        raise ConfigurationError([f"{file}: no column {column!r}, which `column` names"])


def _no_parquet(path: Path, _columns: Collection[str] | None) -> Sheet:
    raise ConfigurationError([f"{path}: nothing here opens Parquet"])


def _choose_model(models: Counter[str]) -> str:
    names = ", ".join(repr(name) for name in models)
    return f"the file has answers of {names}; name one of them by `model`"


def _none_found(section: RecordedSection, n_rows: int, models: Counter[str]) -> str:
    if section.model is not None and section.model not in models:
        there = ", ".join(repr(name) for name in models if name) or "no row names any"
        return f"no row has model {section.model!r} (there: {there})"
    n = counted(n_rows, "row")
    return f"none of its {n} answers a prompt of the bank, by prompt_id or by the prompt's text"


def unanswered(answers: RecordedAnswers, bank: Sequence[Prompt]) -> str | None:
    """Return which prompts of a bank a file has no answer to; None: it has all."""
    lacking = [prompt.prompt_id for prompt in bank if prompt.text not in answers.by_prompt]
    if not lacking:
        return None
    prompts = counted(len(lacking), "prompt")
    return f"{answers.file} has no answer to {prompts}: {joined_names(lacking)}"


class RecordedGenerator:
    """Gives the answers of files as responses; costs nothing."""

    def __init__(self, read: Callable[[EntrantId], RecordedAnswers]) -> None:
        """Take the reader of an entrant's answers."""
        self._read = read

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield the answers of one entrant after the other.

        Raises:
            ConfigurationError: A file changed since the tournament was opened.
        """
        by_entrant: dict[EntrantId, list[GenerationTask]] = {}
        for task in tasks:
            by_entrant.setdefault(task.entrant.entrant_id, []).append(task)
        for name, its_tasks in by_entrant.items():
            answers = self._read(name)
            if answers.digest != its_tasks[0].entrant.weights_digest:
                fault = f"{answers.file} changed while it was read; run the command again"
                raise ConfigurationError([fault])
            yield tuple(_result(task, answers) for task in its_tasks)


def _result(task: GenerationTask, answers: RecordedAnswers) -> GeneratedText | GenerationFailure:
    row = answers.by_prompt.get(task.prompt_text)
    if row is None or row.text is None:
        why = f"{answers.file.name} has no answer to this prompt"
        return GenerationFailure(task.response_key, "not_recorded", why)
    return GeneratedText(
        task.response_key,
        row.text,
        row.finish_reason,
        row.n_prompt_tokens,
        row.n_generated_tokens,
        row.elapsed_s,
        row.p_correct,
        imported_from=answers.file_digest,
    )
