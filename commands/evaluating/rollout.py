"""Evaluations of generated answers, and the scoring that they share with encoding evaluations."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from commands.errors import EvaluationFault
from commands.evaluating.evaluation import Evaluation, SampleResult, Scores, reduce_scores
from commands.evaluating.samples import (
    Inference,
    ObservedSample,
    Sample,
    ScoredText,
    TokenRow,
    UnscorableSample,
    sample_seed,
)
from commands.evaluating.user_code import blame_evaluation, require_text, require_texts
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
    """Base of evaluations that clean a text and score it against the expected one.

    The expected text is the answer, or the text itself in an encoding evaluation. A subclass
    defines `check`, or `score` for scores other than 1 and 0.
    """

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return the part of a text to compare."""

    def check(self, expected: str, cleaned: str, /) -> bool:
        """Return whether a cleaned text is right.

        Raises:
            NotImplementedError: The subclass defines neither this nor `score`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither check nor score")

    def score(self, expected: Sequence[str], cleaned: Sequence[str], /) -> Sequence[float]:
        """Return a score for each cleaned text: by default 1 if `check` is true, else 0."""
        return [float(self.check(y, y_hat)) for y, y_hat in zip(expected, cleaned, strict=True)]

    def score_text(self, expected: str, found: str) -> ScoredText:
        """Clean and score a text.

        Raises:
            TypeError: `clean` does not return a text.
            ValueError: UTF-8 cannot encode the cleaned text, or `score` does not return one finite
                number.
        """
        cleaned = require_text(self.clean(found), f"{type(self).__name__}.clean gives")
        [score] = map(float, self.score([expected], [cleaned]))
        if not isfinite(score):
            raise ValueError(f"score gives {score} for {cleaned!r}; a score is a finite number")
        return ScoredText(cleaned, score)

    def rescore(self, observation: Observation) -> Observation:
        """Clean and score a recorded text again; other observations are returned unchanged."""
        match observation:
            case AnswerObserved() | PredictionObserved() if observation.is_redacted:
                return observation
            case AnswerObserved() if self.kind == "rollout":
                scored = self.score_text(observation.expected, observation.text)
            case PredictionObserved() if self.kind == "encoding":
                scored = self.score_text(observation.text, observation.prediction)
            case _:
                return observation
        return replace(observation, cleaned=scored.cleaned, score=scored.score)

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of the scores, or each."""
        scores = (
            each.score if isinstance(each, AnswerObserved | PredictionObserved) else float("nan")
            for each in observations
        )
        return reduce_scores([*scores], reduce)


_REASONS: Final[Mapping[ResponseFailureReason, UnscorableReason]] = {
    "prompt_too_long": "too_long",
    "out_of_memory": "out_of_memory",
    "not_finite": "not_finite",
    "rejected": "rejected",
    "refused": "refused",
}


class _RolloutTask(NamedTuple):
    sample: Sample
    expected: str
    task: GenerationTask


class RolloutEvaluation(ScoredEvaluation):
    """Base of evaluations that let an entrant answer prompts and compare with expected answers."""

    kind: ClassVar[EvaluationKind] = "rollout"
    is_chat: ClassVar[bool] = True  # show prompts as a user's turn; False: as plain text
    stop: ClassVar[tuple[str, ...]] = ()  # texts that end an answer, besides the end of the turn

    @abstractmethod
    def get(self, index: int) -> tuple[str, str]:
        """Return an item's prompt and the expected answer."""

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return the part of an answer to compare; it has no prompt and no special tokens."""

    @abstractmethod
    def max_new_tokens(self, inference: Inference) -> int:
        """Return the largest length of an answer, in tokens."""

    def content(self, index: int) -> Json:
        """Return the prompt and the expected answer.

        Raises:
            TypeError: `get` returns values of other types.
            ValueError: UTF-8 cannot encode one of the texts.
        """
        return list(self._item(index))

    def n_samples(self, options: EvaluationOptions) -> int:
        """Return the number of answers per prompt."""
        return options.samples_per_prompt

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:
        """Return the entrant with the temperature and answer length that the evaluation sets.

        Raises:
            ValueError: `max_new_tokens` is below 1.
        """
        n_new = self.max_new_tokens(inference)
        if n_new < 1:
            raise ValueError(f"max_new_tokens gives {n_new}; it must be at least 1")
        return replace(
            inference.entrant, temperature=options.temperature or None, max_new_tokens=n_new
        )

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return how prompts are shown, how answers are sampled, and the name of the evaluation.

        Raises:
            TypeError: `stop` is not a sequence of texts.
            ValueError: One of its texts is empty.
        """
        sampling: Mapping[str, Json] = {"seed": options.seed, "top_p": options.top_p}
        is_seeded = self.configured(inference, options).is_seeded
        return {
            "scored_by": self.name,
            "is_chat": self.is_chat,
            "stop": list(self._stop()),
            **(sampling if is_seeded else {}),
        }

    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Generate answers, and yield each batch scored.

        Raises:
            EvaluationFault: The evaluation's own code fails on an answer.
        """
        entrant = self.configured(inference, options)
        rollouts = [self._rollout(entrant, sample, options) for sample in samples]
        by_key = {rollout.task.response_key: rollout for rollout in rollouts}
        for batch in inference.make_generator().generate([rollout.task for rollout in rollouts]):
            tried = [self._try_result(by_key[each.response_key], each) for each in batch]
            yield tuple(each for each in tried if not isinstance(each, EvaluationFault))
            for fault in tried:  # after its batch is kept: it may have cost hours
                if isinstance(fault, EvaluationFault):
                    raise fault

    def _rollout(
        self, entrant: Entrant, sample: Sample, options: EvaluationOptions
    ) -> _RolloutTask:
        with blame_evaluation(self.name, f"getting {sample.label}"):
            prompt, expected = self._item(sample.index)
            stop = self._stop()
        task = GenerationTask(
            response_key=digest_of([self.name, entrant.digest, sample.item, sample.number]),
            entrant=entrant,
            prompt_text=prompt,
            seed=sample_seed(options.seed, sample),
            options=GenerationOptions(self.is_chat, options.top_p, stop, may_truncate=True),
        )
        return _RolloutTask(sample, expected, task)

    def _item(self, index: int) -> tuple[str, str]:
        prompt, expected = self.get(index)
        gives = f"{type(self).__name__}.get({index}) gives"
        return require_text(prompt, f"{gives} the prompt"), require_text(
            expected, f"{gives} the expected answer"
        )

    def _stop(self) -> tuple[str, ...]:
        stop = require_texts(self.stop, f"{type(self).__name__}.stop is")
        if "" in stop:
            raise ValueError(
                f"{type(self).__name__}.stop is {stop!r}; remove the empty text, which would end"
                " every answer at once"
            )
        return stop

    def _try_result(
        self, rollout: _RolloutTask, result: GeneratedText | GenerationFailure
    ) -> SampleResult | EvaluationFault:
        try:
            return self._result(rollout, result)
        except EvaluationFault as fault:
            return fault

    def _result(
        self, rollout: _RolloutTask, result: GeneratedText | GenerationFailure
    ) -> SampleResult:
        sample, expected, task = rollout
        if isinstance(result, GenerationFailure):
            return UnscorableSample(sample, _REASONS[result.reason], result.detail)
        with blame_evaluation(self.name, f"scoring {sample.label}"):
            scored = self.score_text(expected, result.text)
        observed = AnswerObserved(
            text=result.text,
            cleaned=scored.cleaned,
            expected=expected,
            score=scored.score,
            seed=task.seed if task.entrant.is_seeded else None,
            finish_reason=result.finish_reason,
            n_prompt_tokens=result.n_prompt_tokens,
            n_generated_tokens=result.n_generated_tokens,
            is_truncated=result.is_truncated,
        )
        row = TokenRow(result.prompt_ids, result.generated_ids)
        return ObservedSample(sample, digest_of(task.prompt_text), observed, (row,))
