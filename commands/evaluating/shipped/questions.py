"""`choices` and `rollout`: questions of any data set, whose fields the settings name."""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from decimal import Decimal
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from commands.entrants.chats import Chat, Turn, plain_text, user_turn
from commands.errors import ConfigurationError
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference, subset
from commands.evaluating.shipped.bank import contains_answer
from commands.evaluating.shipped.listed import ListedEvaluation
from commands.evaluating.shipped.rows import (
    answer_index,
    choices_of,
    made_of,
    read_rows,
    split_files,
    text_of,
    value_of,
)
from commands.importing.formats.rows import Fields
from commands.settings.sections import EvaluationOptions, UserPath
from ledger.identity import Digest, Json


class Question(NamedTuple):
    """What a row asks, and what is right."""

    text: str
    expected: str  # of a free answer
    shown: str  # the answer, as an example shows it
    choices: tuple[str, ...] = ()
    correct: int = 0  # index among the choices
    subject: str = ""  # empty without subjects
    before: Chat = ()  # the examples

    def lettered(self, how: str) -> "Question":
        """Return the question with its choices listed by letter, and the letters as choices."""
        letters = tuple(ascii_uppercase[: len(self.choices)])
        lines = (f"{letter}. {text}" for letter, text in zip(letters, self.choices, strict=True))
        text, right = "\n".join([self.text, *lines, how]), letters[self.correct]
        return self._replace(text=text, expected=right, shown=right, choices=letters)

    def as_example(self, leads_to_answer: str) -> Chat:
        """Return the question with its answer; in plain text an empty line follows."""
        return (
            Turn("user", self.text, leads_to_answer),
            Turn("assistant", self.shown, "\n\n"),
        )

    @property
    def chat(self) -> Chat:
        """The examples and the question as turns."""
        return (*self.before, *user_turn(self.text))


class QuestionParameters(BaseModel):
    """Where the questions are, and the names of their fields; a name can be a Jinja template."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: UserPath
    split: str | None = None
    question: str = "question"
    answer: str = "answer"
    subject: str | None = None
    shots: NonNegativeInt = 0
    shots_file: UserPath | None = None
    bos: bool = True

    def choice_question(self, fields: Fields, choices: str | Sequence[str]) -> Question:
        """Return a row's question with its choices.

        Raises:
            ValueError: A field is missing, or does not make sense.
        """
        texts, labels = choices_of(choices, fields)
        n_most = len(ascii_uppercase)
        if not 2 <= len(texts) <= n_most:  # noqa: PLR2004  # one alone is always right
            raise ValueError(f"there are {len(texts)} choices; it takes 2 to {n_most}")
        if not all(texts):
            raise ValueError("a choice is empty")
        correct = answer_index(value_of(self.answer, fields), texts, labels)
        right = texts[correct]
        return Question(text_of(self.question, fields), right, right, texts, correct)


class ChoiceParameters(QuestionParameters):
    """Parameters of `choices`."""

    choices: str | tuple[str, ...] = "choices"
    answers: Literal["letters", "texts"] = "letters"


class RolloutParameters(QuestionParameters):
    """Parameters of `rollout`."""

    choices: str | tuple[str, ...] | None = None
    answers: Literal["texts", "letters", "numbers"] = "texts"
    max_new_tokens: PositiveInt | None = None  # None: by the kind of answer


class QuestionEvaluation(ListedEvaluation[Question]):
    """Base of both: a question for each row, behind examples of its subject."""

    leads_to_answer: ClassVar[str]  # stands between an example and its answer in plain text
    whole: str = ""  # name of the evaluation of which this is a subject

    def __init__(self, chosen: QuestionParameters, folder: Path) -> None:
        """Read the questions, and the examples before them."""
        self.bos = chosen.bos

        def question(fields: Fields) -> Question:
            subject = text_of(chosen.subject, fields) if chosen.subject else ""
            return self.question_of(fields)._replace(subject=subject)

        examples: dict[str, list[Question]] = {}  # by subject
        if chosen.shots:
            if chosen.shots_file is None:
                fault = f"shots is {chosen.shots}; say shots_file, which has examples"
                raise ConfigurationError([fault])
            shown = read_rows(split_files(folder / chosen.shots_file))
            for each in made_of(shown, question).values():
                examples.setdefault(each.subject, []).append(each)

        def asked(fields: Fields) -> Question:
            own = question(fields)
            before = examples.get(own.subject, [])[: chosen.shots]
            if len(before) < chosen.shots:
                of = f" of {own.subject!r}" if chosen.subject else ""
                where = f"{chosen.shots_file} has {len(before)} examples{of}"
                raise ValueError(f"shots is {chosen.shots}, but {where}")
            turns = (turn for each in before for turn in each.as_example(self.leads_to_answer))
            return own._replace(before=(*turns,))

        rows = read_rows(split_files(folder / chosen.file, chosen.split))
        super().__init__(made_of(rows, asked))

    @abstractmethod
    def question_of(self, fields: Fields) -> Question:
        """Return a row's question.

        Raises:
            ValueError: A field is missing, or does not make sense.
        """

    def chat_turns(self, index: int) -> Chat:
        """Return the examples and the question as turns."""
        return self.items[index].chat

    def subject_evaluations(self, table: str) -> Mapping[str, Self]:
        """Return each subject as an evaluation of its own, by name; nothing is asked twice."""
        subjects = dict.fromkeys(question.subject for question in self.items)
        return {name: self._part(name, table) for name in subjects if name}

    def _part(self, subject: str, table: str) -> Self:
        part = copy(self)
        part.whole = table
        chosen = [n for n, each in enumerate(self.items) if each.subject == subject]
        ListedEvaluation.__init__(part, {self.label(n): self.items[n] for n in chosen})
        return part

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:
        """Return the items to observe: of each subject as many as of an evaluation of its own."""
        of_subject: dict[str, list[Digest]] = {}
        for item, question in zip(items, self.items, strict=True):
            of_subject.setdefault(question.subject, []).append(item)
        chosen = {
            item
            for same in of_subject.values()
            for item in subset(same, options.length, options.seed)
        }
        return tuple(item for item in items if item in chosen)


class ChoicesOfFile(QuestionEvaluation, PerplexityComparisonEvaluation):
    """Comparison of the letters' log-likelihoods behind the listed choices, or of the choices'.

    The delimiter before a choice does not count as its length. So `acc_norm` and `acc_bytes` divide
    by the length of the choice alone, as lm-evaluation-harness does.
    """

    leads_to_answer: ClassVar[str] = " "

    def __init__(self, *, folder: Path, **parameters: Any) -> None:  # noqa: ANN401  # checked by ChoiceParameters
        """Read the questions."""
        self._chosen = ChoiceParameters(**parameters)
        super().__init__(self._chosen, folder)

    def question_of(self, fields: Fields) -> Question:
        """Return a row's question; its choices are letters, or as they are."""
        asked = self._chosen.choice_question(fields, self._chosen.choices)
        return asked.lettered("Answer:") if self._chosen.answers == "letters" else asked

    @property
    def choice_delimiter(self) -> str:  # type: ignore[override]  # a class attribute there
        """What stands before a choice: a space, but where the turn of the model begins nothing."""
        return "" if self.has_chat else " "

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a context, the choices with their delimiter, and the index of the correct one."""
        asked = self.items[index]
        texts = [f"{self.choice_delimiter}{choice}" for choice in asked.choices]
        return plain_text(asked.chat), texts, asked.correct

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the delimiter, too: it decides what is recorded as a choice's length."""
        return {**super().settings(inference, options), "delimiter": self.choice_delimiter}


_LETTER: Final = re.compile(
    r"""(?is:.*?\banswer\s*(?:is\b|:))?\W*  # anything before the letter
    ([A-Z]|[a-z](?=[.):]|\W*$))\b  # not an article""",
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_N_NEW: Final = {"texts": 64, "letters": 16, "numbers": 256}  # tokens that an answer may have


class RolloutOfFile(QuestionEvaluation, RolloutEvaluation):
    """Rollout whose answer is a letter, the last number, or holds the words of the expected one."""

    leads_to_answer: ClassVar[str] = "\n"

    def __init__(self, *, folder: Path, **parameters: Any) -> None:  # noqa: ANN401  # checked by RolloutParameters
        """Read the questions."""
        self._chosen = RolloutParameters(**parameters)
        self._answers = self._chosen.answers
        self._n_new = self._chosen.max_new_tokens or _N_NEW[self._answers]
        super().__init__(self._chosen, folder)

    def question_of(self, fields: Fields) -> Question:
        """Return a row's question, with its answer as the row has it."""
        chosen = self._chosen
        shown = str(value_of(chosen.answer, fields))
        if chosen.answers == "letters":
            if chosen.choices is None:
                raise ValueError("`choices` is missing: it names the field of the choices")
            asked = chosen.choice_question(fields, chosen.choices)
            return asked.lettered("Answer with the letter alone.")._replace(shown=shown)
        expected = text_of(chosen.answer, fields)
        if chosen.answers == "numbers" and not (expected := last_number(expected)):
            raise ValueError(f"{chosen.answer} has no number")
        return Question(text_of(chosen.question, fields), expected, shown)

    def get(self, index: int) -> tuple[str, str]:
        """Return a question behind its examples as plain text, and the expected answer."""
        asked = self.items[index]
        return plain_text(asked.chat), asked.expected

    def clean(self, y_hat: str) -> str:
        """Return the answer's letter, its last number, or the whole; "" if there is none."""
        if self._answers == "letters":
            letter = _LETTER.match(y_hat)
            return letter[1].upper() if letter else ""
        return last_number(y_hat) if self._answers == "numbers" else y_hat.strip()

    def check(self, y: str, y_hat: str) -> bool:
        """Return whether letters or numbers are equal, or the words of the expected text there."""
        return contains_answer(y_hat, y) if self._answers == "texts" else y == y_hat

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self._n_new

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the settings under the name of the whole, so that nothing is asked twice."""
        return {**super().settings(inference, options), "scored_by": self.whole or self.id}


def last_number(text: str) -> str:
    """Return the last number of a text, as `-1234.5`; "" if it has none."""
    numbers = _NUMBER.findall(text)
    return f"{Decimal(numbers[-1].replace(',', '')).normalize():f}" if numbers else ""
