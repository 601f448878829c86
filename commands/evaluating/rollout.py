"""Evaluation of what an entrant answers."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from commands.errors import EvaluationFault
from commands.evaluating.evaluation import Evaluation, Observed, Scores, reduced
from commands.evaluating.samples import Inference, Judged, Row, Sample, Seen, Unseen, seed_of
from commands.evaluating.user_code import blaming, text, texts
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import (
    AnswerObserved,
    EvaluationKind,
    Observation,
    PredictionObserved,
    UnscorableReason,
)
from ledger.events.registration import Entrant
from ledger.events.responses import ResponseFailureReason
from ledger.identity import Json, digest_of


class ScoredEvaluation(Evaluation):
    """What an entrant said is cleaned, and scored beside what was wanted.

    Wanted is an expected answer, or of an encoding the text itself. A subclass defines `check`, or
    `score` where a score is not 1 or 0.
    """

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return what of a text is compared."""

    def check(self, wanted: str, cleaned: str, /) -> bool:
        """Say whether a cleaned text is right.

        Raises:
            NotImplementedError: A subclass defines neither this nor `score`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither check nor score")

    def score(self, wanted: Sequence[str], cleaned: Sequence[str], /) -> Sequence[float]:
        """Return a score for each cleaned text: by default 1 where `check` says yes, else 0."""
        return [float(self.check(y, y_hat)) for y, y_hat in zip(wanted, cleaned, strict=True)]

    def judged(self, wanted: str, said: str) -> Judged:
        """Clean and score a text.

        Raises:
            TypeError: `clean` gives no text.
            ValueError: `clean` gives what UTF-8 cannot say, or `score` not one score, or one that
                is no finite number.
        """
        cleaned = text(self.clean(said), f"{type(self).__name__}.clean gives")
        [score] = map(float, self.score([wanted], [cleaned]))
        if not isfinite(score):
            raise ValueError(f"score gives {score} for {cleaned!r}; a score is a finite number")
        return Judged(cleaned, score)

    def rescored(self, observation: Observation) -> Observation:
        """Clean and score again what is on record; what other kinds observed stays."""
        match observation:
            case AnswerObserved() if self.kind == "rollout":
                judged = self.judged(observation.expected, observation.text)
            case PredictionObserved() if self.kind == "encoding":
                judged = self.judged(observation.text, observation.prediction)
            case _:
                return observation
        return replace(observation, cleaned=judged.cleaned, score=judged.score)

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of the scores, or each."""
        scores = (
            each.score if isinstance(each, AnswerObserved | PredictionObserved) else float("nan")
            for each in observations
        )
        return reduced([*scores], reduce)


_REASONS: Final[Mapping[ResponseFailureReason, UnscorableReason]] = {
    "prompt_too_long": "too_long",
    "out_of_memory": "out_of_memory",
    "not_finite": "not_finite",
    "rejected": "rejected",
    "refused": "refused",
}


class _Question(NamedTuple):
    sample: Sample
    expected: str
    task: GenerationTask


class RolloutEvaluation(ScoredEvaluation):
    """An entrant answers prompts, and each answer is compared with what was expected."""

    kind: ClassVar[EvaluationKind] = "rollout"
    is_chat: ClassVar[bool] = True  # prompts are a user's turn; False: put as they are
    stop: ClassVar[tuple[str, ...]] = ()  # texts that end an answer, beside the end of the turn

    @abstractmethod
    def get(self, index: int) -> tuple[str, str]:
        """Return an item's prompt and the answer that is expected."""

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return what of an answer is compared; it holds neither the prompt nor special tokens."""

    @abstractmethod
    def max_new_tokens(self, inference: Inference) -> int:
        """Return how long an answer may be, in tokens."""

    def content(self, index: int) -> Json:
        """Return the prompt and what is expected.

        Raises:
            TypeError: `get` gives something of another type.
            ValueError: It gives what UTF-8 cannot say.
        """
        return list(self._item(index))

    def n_samples(self, terms: EvaluationOptions) -> int:
        """Count the answers to each prompt."""
        return terms.samples_per_prompt

    def configured(self, inference: Inference, terms: EvaluationOptions) -> Entrant:
        """Return the entrant with the decoding that is asked for.

        Raises:
            ValueError: An answer may have no token.
        """
        n_new = self.max_new_tokens(inference)
        if n_new < 1:
            raise ValueError(f"max_new_tokens gives {n_new}; an answer needs one at least")
        return replace(
            inference.entrant, temperature=terms.temperature or None, max_new_tokens=n_new
        )

    def settings(self, inference: Inference, terms: EvaluationOptions) -> Mapping[str, Json]:
        """Return how prompts are put, how answers are drawn if they are, and who scores them.

        Raises:
            TypeError: `stop` is one text, or no texts.
            ValueError: A text of it is empty.
        """
        drawn: Mapping[str, Json] = {"seed": terms.seed, "top_p": terms.top_p}
        is_seeded = self.configured(inference, terms).is_seeded
        return {
            "scored_by": self.name,
            "is_chat": self.is_chat,
            "stop": list(self._stop()),
            **(drawn if is_seeded else {}),
        }

    def observe(
        self, inference: Inference, samples: Sequence[Sample], terms: EvaluationOptions
    ) -> Iterator[tuple[Observed, ...]]:
        """Have prompts answered, and score what each batch answered.

        Raises:
            EvaluationFault: Its own code fails on an answer.
        """
        entrant = self.configured(inference, terms)
        questions = [self._question(entrant, sample, terms) for sample in samples]
        asked = {question.task.response_key: question for question in questions}
        for batch in inference.make_generator().generate([question.task for question in questions]):
            tried = [self._tried(asked[each.response_key], each) for each in batch]
            yield tuple(each for each in tried if not isinstance(each, EvaluationFault))
            for fault in tried:  # what was answered beside it is kept: it may have cost hours
                if isinstance(fault, EvaluationFault):
                    raise fault

    def _question(self, entrant: Entrant, sample: Sample, terms: EvaluationOptions) -> _Question:
        with blaming(self.name, f"getting {sample.label}"):
            prompt, expected = self._item(sample.index)
            stop = self._stop()
        task = GenerationTask(
            response_key=digest_of([sample.item, sample.number]),
            entrant=entrant,
            prompt_text=prompt,
            seed=seed_of(terms.seed, sample),
            options=GenerationOptions(self.is_chat, terms.top_p, stop, may_truncate=True),
        )
        return _Question(sample, expected, task)

    def _item(self, index: int) -> tuple[str, str]:
        prompt, expected = self.get(index)
        gives = f"{type(self).__name__}.get({index}) gives"
        return text(prompt, f"{gives} the prompt"), text(expected, f"{gives} the expected answer")

    def _stop(self) -> tuple[str, ...]:
        stop = texts(self.stop, f"{type(self).__name__}.stop is")
        if "" in stop:
            raise ValueError(
                f"{type(self).__name__}.stop is {stop!r}; leave the empty text out, which would end"
                " every answer at once"
            )
        return stop

    def _tried(
        self, question: _Question, result: GeneratedText | GenerationFailure
    ) -> Observed | EvaluationFault:
        try:
            return self._observed(question, result)
        except EvaluationFault as fault:
            return fault

    def _observed(self, question: _Question, result: GeneratedText | GenerationFailure) -> Observed:
        sample, expected, task = question
        if isinstance(result, GenerationFailure):
            return Unseen(sample, _REASONS[result.reason], result.detail)
        with blaming(self.name, f"scoring {sample.label}"):
            judged = self.judged(expected, result.text)
        observed = AnswerObserved(
            text=result.text,
            cleaned=judged.cleaned,
            expected=expected,
            score=judged.score,
            seed=task.seed if task.entrant.is_seeded else None,
            finish_reason=result.finish_reason,
            n_prompt_tokens=result.n_prompt_tokens,
            n_generated_tokens=result.n_generated_tokens,
            is_truncated=result.is_truncated,
        )
        row = Row(result.prompt_ids, result.generated_ids)
        return Seen(sample, digest_of(task.prompt_text), observed, (row,))
