"""Answers that one already has: an entrant of loader `recorded`, and the table behind it.

The entrant's identity is the content of its answers to the bank's prompts. The order of the rows
and other columns do not matter; a corrected answer makes it another version of the entrant.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from commands.errors import ConfigurationError, counted, first_lines, joined_names
from commands.importing.formats.answers import AnswerRow, answers_of_rows, text_of, texts_of
from commands.importing.formats.files import reading, records_of
from commands.importing.formats.rows import BadRow, Record, unpacked
from commands.ports import GeneratedText, GenerationFailure, GenerationTask
from commands.settings.sections import RecordedSection
from commands.settings.toml import nearest
from ledger.events.conversations import Messages, asked_so_far, n_answers, turns_in
from ledger.events.registration import Entrant, Prompt
from ledger.identity import Digest, EntrantId, PromptId, digest_of, digest_of_bytes
from projections.tournament.estimate import BYTES_PER_TOKEN, n_bytes

Asked: TypeAlias = str | Messages


class RecordedAnswers(NamedTuple):
    """The answers of a file to the bank's prompts, by what is asked.

    That is a prompt's text, or a conversation up to a question, answers of the file included: of
    several questions one behind the prompt's id, as other prompts may begin with the same.
    """

    by_prompt: Mapping[Asked, AnswerRow]
    file: Path
    file_digest: Digest

    @property
    def digest(self) -> Digest:
        """Digest of what was answered to which text."""
        asked = sorted(
            self.by_prompt, key=lambda each: (each, ()) if isinstance(each, str) else ("", each)
        )
        return digest_of([(each, self.by_prompt[each].text) for each in asked])

    def has_all(self, prompt: Prompt) -> bool:
        """Say whether it has an answer to each question of a prompt."""
        answers: tuple[str, ...] = ()
        for _ in range(n_answers(prompt.turns)):
            row = self.by_prompt.get(_asked(prompt, answers))
            if row is None or row.text is None:
                return False
            answers = (*answers, row.text)
        return True


def _asked(prompt: Prompt, answers: tuple[str, ...]) -> Asked:
    if not prompt.turns:
        return prompt.text
    asked = asked_so_far(prompt.turns, answers)
    return _of_prompt(prompt.prompt_id, asked) if n_answers(prompt.turns) > 1 else asked


def _of_prompt(prompt_id: PromptId | None, asked: Messages) -> Messages:
    return (("prompt", prompt_id or ""), *asked)


def recorded_entrant(section: RecordedSection, folder: Path, bank: Sequence[Prompt]) -> Entrant:
    """Return the entrant whose answers a file has.

    Raises:
        ConfigurationError: The file cannot be read, or does not say what was answered to what.
    """
    answers = read_answers(section, folder, bank)
    longest = max(n_bytes(row.text or "") for row in answers.by_prompt.values())
    return Entrant(
        entrant_id=EntrantId(section.id),
        loader="recorded",
        weights=str(section.responses),
        weights_digest=answers.digest,
        max_new_tokens=max(1, round(longest / BYTES_PER_TOKEN)),
        dtype=None,
    )


def read_answers(section: RecordedSection, folder: Path, bank: Sequence[Prompt]) -> RecordedAnswers:
    """Read the answers of an entrant to the prompts of a bank; those to others are left out.

    Raises:
        ConfigurationError: The file cannot be read, no row names a prompt of the bank, or two rows
            contradict each other.
    """
    file = folder / section.responses
    digest = _digest_of(file)
    named = _by_name(bank)
    alike = _by_text(bank)
    bad: list[str] = []
    found: dict[Asked, tuple[int, AnswerRow]] = {}  # with the line of each
    models: Counter[str] = Counter()
    n_rows = 0
    for line, row in _rows(file, section.column, _records(file, digest), bad):
        models[row.model or ""] += 1
        if section.model not in {None, row.model}:
            continue
        n_rows += 1
        said = (name for given in row.prompts for name in (given, given.strip()))
        prompt = next((named[name] for name in said if name in named), None)
        if prompt is None:
            continue
        texts, n = _texts(row, prompt), n_answers(prompt.turns)
        if len(texts) > n and not row.may_go_on:
            why = f"{len(texts)} answers, but the prompt asks for {n}"
            bad.append(f"{line}: {why}; give each question one")
            continue
        for asked, answer in _answers_to(prompt, row, texts[:n], alike[prompt.text]):
            first_line, first = found.setdefault(asked, (line, answer))
            if first.model != row.model:
                bad.append(f"{line}: {_choose_model(models)}")
            elif first.text != answer.text:
                why = f"another answer to the prompt of row {first_line}; keep one of them"
                bad.append(f"{line}: {why}")
    if bad:
        raise ConfigurationError(
            [*first_lines([f"{file}:{each}" for each in bad], len(bad), "row")]
        )
    if not found:
        raise ConfigurationError([f"{file}: {_none_found(section, n_rows, models)}"])
    return RecordedAnswers({asked: row for asked, (_, row) in found.items()}, file, digest)


def _digest_of(file: Path) -> Digest:
    if not file.exists():
        raise ConfigurationError([f"{file}: there is no such file of answers; correct `responses`"])
    with reading(file):
        return digest_of_bytes(file.read_bytes())


def _by_name(bank: Sequence[Prompt]) -> Mapping[str, Prompt]:
    """Return the prompts by what may name them: an id, the text, or a question of one alone.

    Each also without the spaces around it, which a new bank leaves out and a table may have.
    """
    questions: defaultdict[str, dict[str, Prompt]] = defaultdict(dict)
    for prompt in bank:
        for role, content in prompt.turns:
            if role == "user":
                questions[content].setdefault(prompt.text, prompt)  # samples have one text
    named = {said: each for said, of in questions.items() for each in of.values() if len(of) == 1}
    named |= {prompt.text: prompt for prompt in reversed(bank)}  # the first sample
    named |= {prompt.prompt_id: prompt for prompt in bank}
    return {name.strip(): each for name, each in reversed(named.items())} | named


def _by_text(bank: Sequence[Prompt]) -> Mapping[str, Sequence[Prompt]]:
    alike: defaultdict[str, list[Prompt]] = defaultdict(list)
    for prompt in bank:
        alike[prompt.text].append(prompt)
    return alike


def _texts(row: AnswerRow, prompt: Prompt) -> Sequence[str]:
    """Return a row's answers to the questions of a prompt, of which the last may be missing."""
    if row.turns or row.text is None:
        return row.turns
    several = _split(row.text) if n_answers(prompt.turns) > 1 else ()
    return several or (row.text,)


def _split(text: str) -> Sequence[str]:
    """Return the answers in a text: of a list in a CSV, or of a run between the user's turns.

    Where a run has neither questions nor tools, each message is an answer.
    """
    turns = turns_in(text)
    if {role for role, _ in turns} == {"assistant"}:
        return [content for _, content in turns]
    by_entrant = groupby(turns, key=lambda turn: turn[0] not in {"system", "developer", "user"})
    runs = [tuple(run) for is_answer, run in by_entrant if is_answer]
    return [*map(text_of, runs)] or texts_of(unpacked(text))


def _answers_to(
    prompt: Prompt, row: AnswerRow, texts: Sequence[str], alike: Iterable[Prompt]
) -> Iterator[tuple[Asked, AnswerRow]]:
    """Yield what a row answers to each question of a prompt; what it lacks is left out.

    Several questions stand behind the prompt's id, so further samples have the answers again.
    """
    samples = [prompt]
    if n_answers(prompt.turns) > 1:  # what is counted is of all together
        row = row._replace(n_prompt_tokens=None, n_generated_tokens=None, elapsed_s=None, usd=None)
        samples += [each for each in alike if each.prompt_id.startswith(f"{prompt.prompt_id}#")]
    for sample in samples:
        for n, text in enumerate(texts):
            yield _asked(sample, tuple(texts[:n])), row._replace(text=text)


@lru_cache(maxsize=1)
def _records(file: Path, _content: Digest) -> Sequence[Record | BadRow]:
    """Read a file once for all entrants whose answers it has."""
    return [*records_of(file, None)]


def _rows(
    file: Path, column: str | None, rows: Sequence[Record | BadRow], bad: list[str]
) -> Iterator[tuple[int, AnswerRow]]:
    columns = {name: None for row in rows if isinstance(row, Record) for name in row.fields}
    if column is not None and column not in columns:
        fault = f"no column {column!r}, which `column` names{nearest(column, columns)}"
        raise ConfigurationError([f"{file}: {fault}"])
    for row in answers_of_rows(rows, column):
        if isinstance(row, BadRow):
            bad.append(f"{row.line}: {row.why}")
        else:
            yield row


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
    lacking = [prompt.prompt_id for prompt in bank if not answers.has_all(prompt)]
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
    row = answers.by_prompt.get(
        _of_prompt(task.prompt_id, task.messages),
        answers.by_prompt.get(task.messages or task.prompt_text),
    )
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
        usd=row.usd,
        imported_from=answers.file_digest,
    )
