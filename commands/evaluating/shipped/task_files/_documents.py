"""What a task's keys make of a document: its text, choices and target, and the whole context.

The rules are those of lm-evaluation-harness 0.4.13 (lm_eval/api/task.py).
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from commands.entrants.chats import Chat, Turn
from commands.evaluating.shipped._templates import fill_in
from commands.evaluating.shipped.task_files._settings import TaskKeys

Document = Mapping[str, object]
ChoiceKeys = str | tuple[str, ...] | Mapping[str, str] | None
_SEED = 1234  # of examples drawn, lm-evaluation-harness's own default


@dataclass(frozen=True)
class DocumentKeys:
    """The keys that show a document, for a question or for an example."""

    columns: frozenset[str]
    text_key: str
    target_key: str | int
    choice_key: ChoiceKeys
    gen_prefix: str | None
    delimiter: str  # before the target

    def text(self, document: Document) -> str:
        """Return the question.

        Raises:
            ValueError: It is not a text, as in tasks whose choices are contexts.
        """
        found = self.filled(self.text_key, document)
        is_filled = self.text_key not in self.columns and self.choice_key is not None
        if not isinstance(found, str) or (is_filled and found.isdigit()):
            raise ValueError(f"doc_to_text gives {found!r}; several contexts are not supported")
        return found

    def choices(self, document: Document) -> tuple[str, ...]:
        """Return the choices.

        Raises:
            ValueError: They are not a list of texts.
        """
        found: object = self.choice_key
        if isinstance(found, str):
            found = self.filled(found, document)
            found = _literal(found) if isinstance(found, str) else found
        if isinstance(found, Mapping):
            found = [*found.values()]
        if not isinstance(found, list | tuple) or not all(isinstance(x, str) and x for x in found):
            raise ValueError(f"doc_to_choice gives {found!r:.80}; it must be a list of texts")
        return tuple(found)

    def target(self, document: Document) -> int | str:
        """Return the target: an index of the choices, or a text.

        Raises:
            ValueError: There are several targets, or it is neither.
        """
        if isinstance(self.target_key, int):
            return self.target_key
        found = self.filled(self.target_key, document)
        if self.target_key not in self.columns and isinstance(found, str):
            is_list = found[:1] == "[" and found[-1:] == "]" and len(found) > 1
            if (found.isdigit() and self.choice_key is not None) or is_list:
                found = _literal(found)
        match found:
            case bool() | None | {}:
                raise ValueError(f"doc_to_target gives {found!r:.80}, which is not supported")
            case int() | str():
                return found
            case float():
                return str(found)
            case _:
                why = "several targets are not supported"
                raise ValueError(f"doc_to_target gives {found!r:.80}; {why}")

    def correct(self, document: Document, choices: Sequence[str]) -> int:
        """Return the index of the target among the choices.

        Raises:
            ValueError: The target is none of them.
        """
        found = self.target(document)
        if isinstance(found, str) and found in choices:
            return choices.index(found)
        if isinstance(found, str) and found.isdecimal():  # from a CSV file, whose cells are texts
            found = int(found)
        if isinstance(found, int) and 0 <= found < len(choices):
            return found
        raise ValueError(f"doc_to_target gives {found!r}, which is none of {list(choices)!r:.200}")

    def expected(self, document: Document) -> str:
        """Return the target as a text: one that it is, or the choice that it counts.

        Raises:
            ValueError: The target is none of the choices.
        """
        found = self.target(document)
        if self.choice_key is None or (isinstance(found, str) and not found.isdecimal()):
            return str(found)
        choices = self.choices(document)
        return choices[self.correct(document, choices)]

    def prefix(self, document: Document) -> str:
        """Return the beginning of an answer, which is given."""
        return str(self.filled(self.gen_prefix, document)) if self.gen_prefix else ""

    def question(self, document: Document) -> Chat:
        """Return the question with the beginning of its answer."""
        text, prefix = self.text(document), self.prefix(document)
        between = _between(text, prefix, self.delimiter)
        return (Turn("user", text, between), *((Turn("assistant", prefix),) if prefix else ()))

    def example(self, document: Document, behind: str) -> Chat:
        """Return the question with its answer, if it has one, and the delimiter behind that."""
        text, prefix, found = self.text(document), self.prefix(document), self.expected(document)
        if not found:
            return self.question(document)
        answer = f"{prefix}{_between(prefix, found, ' ')}{found}"
        between = _between(text, answer, self.delimiter) if prefix else self.delimiter
        return Turn("user", text, between), Turn("assistant", answer, behind)

    def filled(self, key: str, document: Document) -> object:
        """Return the field that a key names, or the text of a template."""
        return document[key] if key in self.columns else fill_in(key, document)


def _between(first: str, second: str, delimiter: str) -> str:
    """Return the delimiter, unless there is a space between two texts, or one is empty."""
    if not (first and second) or first[-1].isspace() or second[0].isspace():
        return ""
    return delimiter


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def question_keys(keys: TaskKeys, columns: Sequence[str]) -> DocumentKeys:
    """Return the keys that show the documents that are asked."""
    return DocumentKeys(
        frozenset(columns),
        keys.doc_to_text,
        keys.doc_to_target,
        keys.doc_to_choice,
        keys.gen_prefix,
        keys.target_delimiter,
    )


def example_keys(keys: TaskKeys, columns: Sequence[str]) -> DocumentKeys:
    """Return the keys that show examples."""
    own = keys.fewshot_config
    asked = question_keys(keys, columns)
    return DocumentKeys(
        asked.columns,
        asked.text_key if own.doc_to_text is None else own.doc_to_text,
        asked.target_key if own.doc_to_target is None else own.doc_to_target,
        asked.choice_key if own.doc_to_choice is None else own.doc_to_choice,
        asked.gen_prefix if own.gen_prefix is None else own.gen_prefix,
        asked.delimiter if own.target_delimiter is None else own.target_delimiter,
    )


class ContextWriter:
    """Writes the contexts of documents, one after the other: description, examples, question.

    Examples are drawn as lm-evaluation-harness draws them, from one stream over all documents.
    """

    def __init__(
        self, keys: TaskKeys, columns: Sequence[str], examples: Sequence[Document]
    ) -> None:
        """Write for documents that have these columns."""
        self._description = keys.description
        self._shown, self._example = question_keys(keys, columns), example_keys(keys, columns)
        between = keys.fewshot_config.fewshot_delimiter
        self._between = keys.fewshot_delimiter if between is None else between
        self._sampler = ExampleSampler(keys, examples)

    def write(self, document: Document) -> Chat:
        """Return the context of the next document, the description as the system's turn.

        Raises:
            ValueError: There are too few examples, or a key does not fit a document.
        """
        described = self._description and self._shown.filled(self._description, document)
        turns = [Turn("system", str(described))] if described else []
        for each in self._sampler.draw(document):
            turns += self._example.example(each, self._between)
        return (*turns, *self._shown.question(document))


class ExampleSampler:
    """Draws the examples of one document after the other, none of them the document itself."""

    def __init__(self, keys: TaskKeys, examples: Sequence[Document]) -> None:
        """Draw from these."""
        self._n = keys.num_fewshot
        self._is_first = keys.fewshot_config.sampler == "first_n"
        self._may_meet = keys.shots_split == keys.test_split
        self._examples = [*examples]
        self._rng = Random(_SEED)  # noqa: S311  # theirs, and no secret

    def draw(self, document: Document) -> Sequence[Document]:
        """Return the examples of a document.

        Raises:
            ValueError: There are too few.
        """
        if not self._n:
            return ()
        others = [each for each in self._examples if not self._may_meet or each != document]
        if len(others) < self._n:
            raise ValueError(f"num_fewshot is {self._n}, but there are {len(others)} examples")
        if self._is_first:
            return others[: self._n]
        if not self._may_meet:
            return self._rng.sample(self._examples, self._n)
        n_drawn = min(self._n + 1, len(self._examples))
        drawn = self._rng.sample(self._examples, n_drawn)
        chosen = [each for each in drawn if each != document][: self._n]
        return chosen if len(chosen) == self._n else self._rng.sample(others, self._n)
