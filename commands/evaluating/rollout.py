"""Evaluations of generated answers, and the scoring that they share with encoding evaluations.

`AnswersEvaluation` generates answers and leaves open how they are scored, `ScoredEvaluation` scores
texts, `RolloutEvaluation` does both.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from msgspec.structs import replace

from commands.entrants.chats import ChatForm, recorded_text
from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.evaluation import Evaluation, SampleResult
from commands.evaluating.samples import (
    Inference,
    ObservedSample,
    Sample,
    TokenRow,
    UnscorableSample,
    sample_seed,
)
from commands.evaluating.user_code import (
    Scores,
    blame_evaluation,
    code_digest,
    prompt_item,
    reduce_scores,
    require_boolean,
    require_integer,
    require_scores,
    require_text,
    require_texts,
)
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.errors import TourneyError
from ledger.events.evaluations import (
    AnswerObserved,
    EvaluationKind,
    Observation,
    PredictionObserved,
    PromptItem,
    UnscorableReason,
)
from ledger.events.registration import Entrant
from ledger.events.responses import ResponseFailureReason
from ledger.identity import Digest, Json, digest_of


class ScoredEvaluation(Evaluation):
    """Base of evaluations that clean a text and score it against the expected one.

    The expected text is the answer, or the text itself in an encoding evaluation. A subclass
    defines `check`, or `score` for scores other than 1 and 0.
    """

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return the part to compare: of an answer, or of all tokens that were predicted."""

    def check(self, expected: str, cleaned: str, /) -> bool:
        """Return whether a cleaned text is right.

        Raises:
            NotImplementedError: The subclass defines neither this nor `score`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither check nor score")

    def score(self, expected: Sequence[str], cleaned: Sequence[str], /) -> Sequence[float]:
        """Return a score for each cleaned text: by default 1 if `check` is true, else 0.

        Called once with all texts of a run, so a score may compare them with one another.
        """
        return [float(self.check(y, y_hat)) for y, y_hat in zip(expected, cleaned, strict=True)]

    def samples(self, options: EvaluationOptions) -> tuple[Sample, ...]:
        """Return the samples to observe.

        Raises:
            ConfigurationError: Nothing defines how answers are scored.
        """
        own = (getattr(each, "__func__", each) for each in (self.check, self.score))
        if [*own] == [ScoredEvaluation.check, ScoredEvaluation.score]:
            fault = f"{type(self).__name__} defines neither check nor score; define one of them"
            raise ConfigurationError([f"evaluation {self.id!r}: {fault}"])
        return super().samples(options)

    @property
    def scorer(self) -> Digest:
        """Digest of the code of `clean`, `check` and `score`, and of its plain attributes."""
        plain = {
            name: value
            for name, value in sorted(vars(self).items())
            if isinstance(value, str | int | float | bool | None)
        }
        return digest_of([code_digest(type(self), __package__), repr(plain)])

    def score_text(self, expected: str, text: str) -> tuple[str, float | None]:
        """Clean and check a text; a score that needs all texts is left to `score_together`."""
        kind = type(self)
        cleaned = require_text(self.clean(text), f"{kind.__name__}.clean gives")
        if kind.score is not ScoredEvaluation.score:
            return cleaned, None
        is_right = require_boolean(self.check(expected, cleaned), f"{kind.__name__}.check gives")
        return cleaned, float(is_right)

    def score_together(self, observations: Sequence[Observation]) -> Sequence[Observation]:
        """Return observations with scores, by one call of `score`, if the class defines it."""
        left = [
            observation
            for observation in observations
            if isinstance(observation, ScoredObservation)
        ]
        left = [each for each in left if each.score is None]
        if not left:
            return observations
        what = f"{type(self).__name__}.score gives"
        given = self.score([_texts_of(each)[0] for each in left], [each.cleaned for each in left])
        scores = iter(require_scores(given, len(left), what))
        return [
            replace(observation, score=next(scores))
            if isinstance(observation, ScoredObservation) and observation.score is None
            else observation
            for observation in observations
        ]

    def rescore(self, observation: Observation) -> Observation:
        """Clean and score a recorded text again; other observations are returned unchanged."""
        of_kind = AnswerObserved if self.kind == "rollout" else PredictionObserved
        if not isinstance(observation, of_kind) or observation.is_redacted:
            return observation
        cleaned, score = self.score_text(*_texts_of(observation))
        return replace(observation, cleaned=cleaned, score=score)

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of the scores, or each."""
        scored = (
            observation.score if isinstance(observation, ScoredObservation) else None
            for observation in observations
        )
        return reduce_scores([float("nan") if each is None else each for each in scored], reduce)


ScoredObservation = AnswerObserved | PredictionObserved


def _texts_of(observation: ScoredObservation) -> tuple[str, str]:
    """Return the text that was expected, and the one that came."""
    if isinstance(observation, AnswerObserved):
        return observation.expected, observation.text
    return observation.text, observation.prediction


_REASONS: Final[Mapping[ResponseFailureReason, UnscorableReason]] = {
    "prompt_too_long": "too_long",
    "out_of_memory": "out_of_memory",
    "not_finite": "not_finite",
    "rejected": "rejected",
    "refused": "refused",
}


class AnswersEvaluation(Evaluation):
    """Base of evaluations that let an entrant answer prompts."""

    kind: ClassVar[EvaluationKind] = "rollout"
    is_chat: bool = True  # show prompts as a user's turn; False: as plain text
    stop: tuple[str, ...] = ()  # texts that end an answer, besides the end of the turn

    @abstractmethod
    def get(self, index: int) -> tuple[str, str]:
        """Return an item's prompt and the expected answer."""

    @abstractmethod
    def max_new_tokens(self, inference: Inference) -> int:
        """Return the largest length of an answer, in tokens."""

    def score_text(self, expected: str, text: str) -> tuple[str, float | None]:  # noqa: ARG002  # scored ones use it
        """Return what counts of an answer, and its score; None: it is scored later."""
        return text, None

    def item(self, index: int) -> PromptItem:
        """Return an item's prompt and the expected answer, checked."""
        item = prompt_item(self.get(index), f"{type(self).__name__}.get({index})")
        messages = self.chat_messages(index)
        return replace(item, prompt=recorded_text(messages)) if messages else item

    def chat_form(self, inference: Inference) -> ChatForm:
        """Return how a chat template shows the prompts; by default in one turn."""
        by_class = require_boolean(self.is_chat, f"{type(self).__name__}.is_chat is")
        is_default = by_class and inference.entrant.chosen.template == "chat"
        return self._chat_form or ("one-turn" if is_default else "none")

    def n_samples(self, options: EvaluationOptions) -> int:
        """Return the number of answers per prompt."""
        return options.samples_per_prompt

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:
        """Return the entrant with the temperature and answer length that the evaluation sets."""
        what = f"{type(self).__name__}.max_new_tokens gives"
        n_new = require_integer(self.max_new_tokens(inference), what)
        if n_new < 1:
            raise ValueError(f"{what} {n_new}; it must be at least 1")
        return replace(
            inference.entrant,
            temperature=options.temperature or None,
            max_new_tokens=n_new,
            options=inference.entrant.chosen.in_evaluations(options.system),
        )

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return how prompts are shown, how answers are sampled, and the name of the evaluation."""
        sampling: Mapping[str, Json] = {"seed": options.seed, "top_p": options.top_p}
        is_seeded = self.configured(inference, options).is_seeded
        return {
            "scored_by": self.id,
            "is_chat": self.chat_form(inference) != "none",
            "stop": list(self._stop()),
            **self.beginning(),
            **(sampling if is_seeded else {}),
        }

    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Generate answers, and yield each batch scored.

        Raises:
            EvaluationFault: The evaluation's own code fails on an answer. An endpoint is then sent
                nothing more, and the other answers under way are yielded first: they are paid for.
        """
        with blame_evaluation(self.id, "reading its settings"):
            entrant = self.configured(inference, options)
            is_chat, stop = self.chat_form(inference) != "none", self._stop()
        how = GenerationOptions(is_chat, options.top_p, stop, may_truncate=True, bos=self.bos)
        asked = {}
        for sample in samples:
            expected, task = self._task(entrant, sample, how, options.seed)
            asked[task.response_key] = sample, expected, task
        faults: list[EvaluationFault] = []
        try:
            for batch in inference.generator().generate([task for *_, task in asked.values()]):
                results = []
                for answer in batch:
                    try:
                        results.append(self._result(*asked[answer.response_key], answer))
                    except EvaluationFault as fault:
                        faults.append(fault)
                yield tuple(results)
                if faults:
                    if inference.stop is None:
                        break
                    inference.stop()
        except TourneyError:
            if not faults:
                raise
        if faults:
            raise faults[0]

    def _task(
        self, entrant: Entrant, sample: Sample, how: GenerationOptions, seed: int
    ) -> tuple[str, GenerationTask]:
        """Return the expected answer, and the task."""
        with blame_evaluation(self.id, f"getting {sample.label}"):
            item = self.item(sample.index)
            messages = self.chat_messages(sample.index, entrant.chosen.system)
        task = GenerationTask(
            response_key=digest_of([self.id, entrant.digest, sample.item, sample.number]),
            entrant=entrant,
            prompt_text=item.prompt,
            seed=sample_seed(seed, sample),
            options=how,
            messages=messages if len(messages) > 1 else (),  # one alone is the prompt's text
        )
        return item.expected, task

    def _stop(self) -> tuple[str, ...]:
        stop = require_texts(self.stop, f"{type(self).__name__}.stop is")
        if "" in stop:
            raise ValueError(
                f"{type(self).__name__}.stop is {stop!r}; remove the empty text, which would end"
                " every answer at once"
            )
        return stop

    def _result(
        self,
        sample: Sample,
        expected: str,
        task: GenerationTask,
        result: GeneratedText | GenerationFailure,
    ) -> SampleResult:
        if isinstance(result, GenerationFailure):
            return UnscorableSample(sample, _REASONS[result.reason], result.detail)
        with blame_evaluation(self.id, f"scoring {sample.label}"):
            cleaned, score = self.score_text(expected, result.text)
        answer = AnswerObserved(
            text=result.text,
            cleaned=cleaned,
            expected=expected,
            score=score,
            seed=task.seed if task.entrant.is_seeded else None,
            finish_reason=result.finish_reason,
            n_prompt_tokens=result.n_prompt_tokens,
            n_generated_tokens=result.n_generated_tokens,
            is_truncated=result.is_truncated,
        )
        row = TokenRow(result.prompt_ids, result.generated_ids)
        return ObservedSample(sample, digest_of(task.prompt_text), answer, (row,))


class RolloutEvaluation(ScoredEvaluation, AnswersEvaluation):
    """Base of evaluations that let an entrant answer prompts and compare with expected answers."""
