"""`choices` and `rollout`: questions of any data set, whose fields the settings name."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from commands.entrants.chats import Chat, Turn, plain_text, user_turn
from commands.errors import ConfigurationError
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.shipped.bank import contains_answer
from commands.evaluating.shipped.items import ListedEvaluation
from commands.evaluating.shipped.questions import choice_question, text_of, value_of
from commands.evaluating.shipped.rows import made_of, read_rows, split_files
from commands.importing.formats.files import OpenParquet
from commands.importing.formats.rows import Fields
from commands.ports import ContinuationLikelihood
from commands.settings.sections import EvaluationOptions, UserPath
from ledger.events.evaluations import ChoicesObserved, Observation
from ledger.identity import Json

_BETWEEN: Final = "\n\n"  # examples


class LayoutParameters(BaseModel):
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

    def subject_of(self, fields: Fields) -> str:
        """Return the subject that a row belongs to; empty without subjects."""
        return text_of(self.subject, fields) if self.subject else ""


class ChoiceParameters(LayoutParameters):
    """Parameters of `choices`."""

    choices: str | tuple[str, ...] = "choices"
    answers: Literal["letters", "texts"] = "letters"


class RolloutParameters(LayoutParameters):
    """Parameters of `rollout`."""

    choices: str | tuple[str, ...] | None = None
    answers: Literal["texts", "letters", "numbers"] = "texts"
    max_new_tokens: PositiveInt | None = None  # None: by the kind of answer


class Question(NamedTuple):
    """What a row asks, and what is right."""

    text: str
    shown: str  # the answer, as an example shows it
    expected: str  # of a free answer
    choices: tuple[str, ...] = ()
    correct: int = 0  # index among the choices
    before: Chat = ()  # the examples

    @property
    def chat(self) -> Chat:
        """The examples and the question as turns."""
        return (*self.before, *user_turn(self.text))


class _Layout(ListedEvaluation[Question]):
    """Base of both: a question for each row, behind examples of its subject."""

    leads_to_answer: ClassVar[str]  # stands between an example and its answer in plain text

    def __init__(
        self,
        chosen: LayoutParameters,
        folder: Path,
        open_parquet: OpenParquet,
        question_of: Callable[[Fields], Question],
    ) -> None:
        self.bos = chosen.bos
        before = self._examples(chosen, folder, open_parquet, question_of)

        def asked(fields: Fields) -> Question:
            return question_of(fields)._replace(before=before(fields))

        rows = read_rows(split_files(folder / chosen.file, chosen.split), open_parquet)
        subjects = made_of(rows, chosen.subject_of) if chosen.subject else {}
        super().__init__(made_of(rows, asked), [*subjects.values()])

    def _examples(
        self,
        chosen: LayoutParameters,
        folder: Path,
        open_parquet: OpenParquet,
        question_of: Callable[[Fields], Question],
    ) -> Callable[[Fields], Chat]:
        """Return what gives the turns before a row's question: examples of its subject, if any."""
        if not chosen.shots:
            return lambda _: ()
        if chosen.shots_file is None:
            fault = f"shots is {chosen.shots}; say shots_file, which has examples"
            raise ConfigurationError([fault])
        rows = read_rows(split_files(folder / chosen.shots_file), open_parquet)
        by_subject: dict[str, list[Question]] = {}
        for row, example in zip(rows, made_of(rows, question_of).values(), strict=True):
            by_subject.setdefault(chosen.subject_of(row.fields), []).append(example)

        def before(fields: Fields) -> Chat:
            subject = chosen.subject_of(fields)
            examples = by_subject.get(subject, [])[: chosen.shots]
            if len(examples) < chosen.shots:
                where = f"{chosen.shots_file} has {len(examples)} examples"
                of = f" of {subject!r}" if chosen.subject else ""
                raise ValueError(f"shots is {chosen.shots}, but {where}{of}")
            return tuple(turn for example in examples for turn in self._turns_of(example))

        return before

    def _turns_of(self, example: Question) -> Chat:
        asked = Turn("user", example.text, self.leads_to_answer)
        return asked, Turn("assistant", example.shown, _BETWEEN)

    def chat_turns(self, index: int) -> Chat:
        """Return the examples and the question as turns."""
        return self.items[index].chat


class ChoicesLayout(_Layout, PerplexityComparisonEvaluation):
    """Comparison of the letters' log-likelihoods behind the listed choices, or of the choices'.

    The delimiter before a choice does not count as its length. So `acc_norm` and `acc_bytes` divide
    by the length of the choice alone, as lm-evaluation-harness does.
    """

    leads_to_answer: ClassVar[str] = " "

    def __init__(self, *, folder: Path, open_parquet: OpenParquet, **parameters: Any) -> None:  # noqa: ANN401  # checked by ChoiceParameters
        """Read the questions."""
        chosen = ChoiceParameters(**parameters)

        def question_of(fields: Fields) -> Question:
            asked = choice_question(
                fields, question=chosen.question, choices=chosen.choices, answer=chosen.answer
            )
            if chosen.answers == "letters":
                asked = asked.lettered()
                asked = asked._replace(text=f"{asked.text}\nAnswer:")
            right = asked.choices[asked.correct]
            return Question(asked.text, right, right, asked.choices, asked.correct)

        super().__init__(chosen, folder, open_parquet, question_of)

    @property
    def delimiter(self) -> str:
        """What stands before a choice: a space, but where the turn of the model begins nothing."""
        return "" if self.has_chat else " "

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a context, the choices with their delimiter, and the index of the correct one."""
        asked = self.items[index]
        texts = [f"{self.delimiter}{choice}" for choice in asked.choices]
        return plain_text(asked.chat), texts, asked.correct

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the delimiter, too: it decides what is recorded as a choice's length."""
        return {**super().settings(inference, options), "delimiter": self.delimiter}

    def observation_of(
        self, sample: Sample, likelihoods: Sequence[ContinuationLikelihood]
    ) -> Observation:
        """Return the log-likelihood of each choice, and its length without the delimiter."""
        observed = super().observation_of(sample, likelihoods)
        assert isinstance(observed, ChoicesObserved)  # noqa: S101  # as comparisons give
        measured = (
            replace(choice, n_chars=len(text), n_bytes=len(text.encode()))
            for choice, text in zip(observed.choices, self.items[sample.index].choices, strict=True)
        )
        return replace(observed, choices=tuple(measured))


_LETTER: Final = re.compile(
    r"""(?is:.*?\banswer\s*(?:is\b|:))?\W*  # anything before the letter
    ([A-Z]|[a-z](?=[.):]|\W*$))\b  # not an article""",
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_N_NEW: Final = {"texts": 64, "letters": 16, "numbers": 256}  # tokens that an answer may have


class RolloutLayout(_Layout, RolloutEvaluation):
    """Rollout whose answer is a letter, the last number, or holds the words of the expected one."""

    leads_to_answer: ClassVar[str] = "\n"

    def __init__(self, *, folder: Path, open_parquet: OpenParquet, **parameters: Any) -> None:  # noqa: ANN401  # checked by RolloutParameters
        """Read the questions."""
        chosen = RolloutParameters(**parameters)
        self._answers = chosen.answers
        self._n_new = chosen.max_new_tokens or _N_NEW[chosen.answers]

        def question_of(fields: Fields) -> Question:
            shown = str(value_of(chosen.answer, fields))
            if chosen.answers == "letters":
                if chosen.choices is None:
                    raise ValueError("`choices` is missing: it names the field of the choices")
                asked = choice_question(
                    fields, question=chosen.question, choices=chosen.choices, answer=chosen.answer
                ).lettered()
                text = f"{asked.text}\nAnswer with the letter alone."
                return Question(text, shown, asked.choices[asked.correct])
            expected = text_of(chosen.answer, fields)
            if chosen.answers == "numbers" and not (expected := last_number(expected)):
                raise ValueError(f"{chosen.answer} has no number")
            return Question(text_of(chosen.question, fields), shown, expected)

        super().__init__(chosen, folder, open_parquet, question_of)

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
