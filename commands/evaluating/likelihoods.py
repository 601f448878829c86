"""Evaluations scored from the log-likelihoods that an entrant gives to texts.

`LikelihoodEvaluation` is their base; `EncodingEvaluation` scores the likeliest token at each place,
`PerplexityEvaluation` a whole document. Comparisons of continuations are in comparison.py.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from commands.evaluating.evaluation import Evaluation, SampleResult
from commands.evaluating.rollout import ScoredEvaluation
from commands.evaluating.samples import (
    Inference,
    ObservedSample,
    Sample,
    TokenRow,
    UnscorableSample,
)
from commands.evaluating.user_code import blame_evaluation
from commands.evaluating.values import Scores, require_scores, require_text
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import (
    DocumentObserved,
    EvaluationKind,
    Observation,
    PredictionObserved,
)
from ledger.events.registration import Entrant
from ledger.identity import Digest, Json, digest_of

Results = Mapping[str, ContinuationLikelihood]


class LikelihoodEvaluation(Evaluation):
    """Base of evaluations whose samples need one or several log-likelihoods each."""

    @abstractmethod
    def continuations(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the texts of a sample whose log-likelihoods are needed.

        Continuations with the same key are computed once for all samples.
        """

    @abstractmethod
    def observation_of(
        self, sample: Sample, continuations: Sequence[Continuation], results: Results
    ) -> Observation:
        """Return the observation of a sample from the results, by key of its continuations."""

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:  # noqa: ARG002  # as rollouts
        """Return the entrant without its decoding, which log-likelihoods do not depend on."""
        return replace(inference.entrant, temperature=None, max_new_tokens=1)

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:  # noqa: ARG002  # as rollouts
        """Return how texts begin; else the entrant and the items determine the log-likelihoods.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
            TypeError: `bos` is neither True nor False.
        """
        inference.require_likelihoods(self.id)
        return self.beginning()

    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Compute all log-likelihoods; yield each sample as soon as its own are done."""
        entrant = self.configured(inference, options)
        of_sample = {sample: self._continuations_of(sample, entrant) for sample in samples}
        waiting = dict(of_sample)
        every = {each.key: each for continuations in of_sample.values() for each in continuations}
        results: dict[str, ContinuationLikelihood] = {}
        failures: dict[str, LikelihoodFailure] = {}
        model = inference.require_likelihoods(self.id)()
        for batch in model.log_likelihoods([*every.values()]):
            for each in batch:
                if isinstance(each, ContinuationLikelihood):
                    results[each.key] = each
                else:
                    failures[each.key] = each
            done = [
                sample
                for sample, continuations in waiting.items()
                if all(each.key in results or each.key in failures for each in continuations)
            ]
            if done:
                yield tuple(
                    self._result(sample, waiting.pop(sample), results, failures) for sample in done
                )

    def _continuations_of(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        with blame_evaluation(self.id, f"getting {sample.label}"):
            continuations = self.continuations(sample, entrant)
            if not continuations:
                raise ValueError("the item has no text to evaluate")
            return continuations

    def _result(
        self,
        sample: Sample,
        continuations: Sequence[Continuation],
        results: Results,
        failures: Mapping[str, LikelihoodFailure],
    ) -> SampleResult:
        for continuation in continuations:
            if fault := failures.get(continuation.key):
                return UnscorableSample(sample, fault.reason, fault.detail)
        with blame_evaluation(self.id, f"scoring {sample.label}"):
            observation = self.observation_of(sample, continuations, results)
        rows = tuple(
            TokenRow(each.context_ids, each.text_ids)
            for each in (results[p.key] for p in self.primary_continuations(continuations))
        )
        return ObservedSample(sample, self.cluster(continuations), observation, rows)

    def primary_continuations(
        self, continuations: Sequence[Continuation]
    ) -> Sequence[Continuation]:
        """Return the continuations whose tokens `return_intermediates` shows."""
        return continuations

    def cluster(self, continuations: Sequence[Continuation]) -> Digest:
        """Return the cluster of dependent samples: the digest of their context, or text."""
        return digest_of(continuations[0].context or continuations[0].text)


class TextEvaluation(LikelihoodEvaluation):
    """Evaluation whose items are texts, each read without a context."""

    rolls: ClassVar[bool] = False  # cut a long text into windows, rather than not read it
    shows_predicted: ClassVar[bool] = False

    @abstractmethod
    def get(self, index: int) -> str:
        """Return a text."""

    def item(self, index: int) -> str:
        """Return a text, checked."""
        return require_text(self.get(index), f"{type(self).__name__}.get({index}) gives")

    def continuations(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the text, without a context."""
        text = self.item(sample.index)
        return (
            Continuation(
                sample.item,
                entrant,
                "",
                text,
                rolls=self.rolls,
                bos=self.bos,
                shows_predicted=self.shows_predicted,
            ),
        )


class EncodingEvaluation(ScoredEvaluation, TextEvaluation):
    """Evaluation of texts by the likeliest token at each place, given the tokens before it."""

    kind: ClassVar[EvaluationKind] = "encoding"
    shows_predicted: ClassVar[bool] = True

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return the part of a prediction to compare; it has as many tokens as its text."""

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the evaluation's name: predictions scored by another evaluation are not shared.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        return {**super().settings(inference, options), "scored_by": self.id}

    def observation_of(
        self,
        sample: Sample,  # noqa: ARG002  # as comparisons
        continuations: Sequence[Continuation],
        results: Results,
    ) -> Observation:
        """Return the predicted tokens, and their score."""
        expected, each = continuations[0].text, results[continuations[0].key]
        scored = self.score_text(expected, each.predicted)
        return PredictionObserved(
            text=expected,
            predicted=each.predicted_ids,
            target=each.text_ids,
            prediction=each.predicted,
            cleaned=scored.cleaned,
            score=scored.score,
        )


class PerplexityEvaluation(TextEvaluation):
    """Evaluation of whole documents: a long one is cut into windows, and each token counts once."""

    kind: ClassVar[EvaluationKind] = "perplexity"
    higher_is_better: ClassVar[bool] = False
    rolls: ClassVar[bool] = True

    def score(
        self, per_sample_nll: NDArray[np.float64], per_sample_count: NDArray[np.float64]
    ) -> Sequence[float]:
        """Return each document's perplexity: exp(nll / count), in nats and tokens.

        Only `reduce="none"` uses it, when the evaluation or `Evaluator.evaluate` is called: a mean
        is over tokens, not over documents. The ledger records log-likelihoods, not scores, so the
        metrics of `tourney` and of results.json do not depend on this method or on
        `higher_is_better`: lower is better for each of them.
        """
        return [*map(float, np.exp(per_sample_nll / per_sample_count))]

    def observation_of(
        self,
        sample: Sample,  # noqa: ARG002  # as comparisons
        continuations: Sequence[Continuation],
        results: Results,
    ) -> Observation:
        """Return the document's log-likelihood, and its length in tokens, bytes and words."""
        document, each = continuations[0].text, results[continuations[0].key]
        return DocumentObserved(
            log_likelihood=each.log_likelihood,
            n_tokens=len(each.text_ids),
            n_bytes=len(document.encode()),
            n_words=len(document.split()),
            n_windows=each.n_windows,
        )

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the perplexity over all tokens, the sum of nats, or each document's perplexity."""
        documents = [each for each in observations if isinstance(each, DocumentObserved)]
        nll = np.array([-each.log_likelihood for each in documents])
        count = np.array([each.n_tokens for each in documents], dtype=np.float64)
        if reduce == "none":
            every = np.full(len(observations), np.nan)
            is_observed = [isinstance(each, DocumentObserved) for each in observations]
            what = f"{type(self).__name__}.score gives"
            every[is_observed] = require_scores(self.score(nll, count), len(documents), what)
            return every
        if not documents:
            return float("nan")
        return float(nll.sum() if reduce == "sum" else np.exp(nll.sum() / count.sum()))
