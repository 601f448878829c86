"""Evaluations scored from the log-likelihoods that an entrant gives to texts.

`EncodingEvaluation` scores the likeliest token at each place, `PerplexityEvaluation` a whole
document, `PerplexityComparisonEvaluation` which of several continuations of a text is likeliest.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from commands.entrants.chats import recorded_text
from commands.evaluating.evaluation import Evaluation, SampleResult
from commands.evaluating.rollout import ScoredEvaluation
from commands.evaluating.samples import (
    Inference,
    ObservedSample,
    Sample,
    TokenRow,
    UnscorableSample,
)
from commands.evaluating.user_code import (
    Scores,
    blame_evaluation,
    choices_item,
    reduce_scores,
    require_boolean,
    require_scores,
    require_text,
)
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import (
    Choice,
    ChoicesItem,
    ChoicesObserved,
    DocumentObserved,
    EvaluationKind,
    Observation,
    PredictionObserved,
    TextItem,
)
from ledger.events.registration import Entrant
from ledger.identity import Json, digest_of
from projections.evaluations.scores import credit


class LikelihoodEvaluation(Evaluation):
    """Base of evaluations whose samples need one or several log-likelihoods each.

    By default the items are texts, each read without a context.
    """

    rolls: ClassVar[bool] = False  # cut a long text into windows, rather than not read it
    shows_predicted: ClassVar[bool] = False

    def item(self, index: int) -> Any:  # noqa: ANN401  # of each kind its own
        """Return a text, checked."""
        what = f"{type(self).__name__}.get({index}) gives"
        return TextItem(text=require_text(self.get(index), what))

    def continuations(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the texts of a sample whose log-likelihoods are needed.

        Continuations with the same key are computed once for all samples; keys begin with the
        sample's item if their tokens are the sample's.
        """
        text = Continuation(
            sample.item,
            entrant,
            "",
            self.item(sample.index).text,
            rolls=self.rolls,
            bos=self.bos,
            shows_predicted=self.shows_predicted,
        )
        return (text,)

    @abstractmethod
    def observation_of(
        self, sample: Sample, likelihoods: Sequence[ContinuationLikelihood]
    ) -> Observation:
        """Return the observation of a sample from the log-likelihoods of its continuations."""

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
        waiting = {}
        for sample in samples:
            with blame_evaluation(self.id, f"getting {sample.label}"):
                waiting[sample] = self.continuations(sample, entrant)
        every = {text.key: text for texts in waiting.values() for text in texts}
        results: dict[str, ContinuationLikelihood | LikelihoodFailure] = {}
        model = inference.require_likelihoods(self.id)()
        for batch in model.log_likelihoods([*every.values()]):
            results |= {result.key: result for result in batch}
            done = [
                sample
                for sample, texts in waiting.items()
                if all(text.key in results for text in texts)
            ]
            if done:
                read = {sample: waiting.pop(sample) for sample in done}
                yield tuple(
                    self._result(sample, texts, [results[text.key] for text in texts])
                    for sample, texts in read.items()
                )

    def _result(
        self,
        sample: Sample,
        continuations: Sequence[Continuation],
        results: Sequence[ContinuationLikelihood | LikelihoodFailure],
    ) -> SampleResult:
        for result in results:
            if isinstance(result, LikelihoodFailure):
                return UnscorableSample(sample, result.reason, result.detail)
        likelihoods = [
            likelihood for likelihood in results if isinstance(likelihood, ContinuationLikelihood)
        ]
        with blame_evaluation(self.id, f"scoring {sample.label}"):
            observation = self.observation_of(sample, likelihoods)
        # samples of one context, or of one text, are not independent
        cluster = digest_of(continuations[0].context or continuations[0].text)
        rows = tuple(
            TokenRow(likelihood.context_ids, likelihood.text_ids)
            for likelihood in likelihoods
            if likelihood.key.startswith(sample.item)
        )
        return ObservedSample(sample, cluster, observation, rows)


class EncodingEvaluation(ScoredEvaluation, LikelihoodEvaluation):
    """Evaluation of texts by the likeliest token at each place, given the tokens before it."""

    kind: ClassVar[EvaluationKind] = "encoding"
    shows_predicted: ClassVar[bool] = True

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the evaluation's name: predictions scored by another evaluation are not shared.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        return {**super().settings(inference, options), "scored_by": self.id}

    def observation_of(
        self, sample: Sample, likelihoods: Sequence[ContinuationLikelihood]
    ) -> Observation:
        """Return the predicted tokens, and their score."""
        (read,) = likelihoods
        text = self.item(sample.index).text
        cleaned, score = self.score_text(text, read.predicted)
        return PredictionObserved(
            text=text,
            predicted=read.predicted_ids,
            target=read.text_ids,
            prediction=read.predicted,
            cleaned=cleaned,
            score=score,
        )


class PerplexityEvaluation(LikelihoodEvaluation):
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
        self, sample: Sample, likelihoods: Sequence[ContinuationLikelihood]
    ) -> Observation:
        """Return the document's log-likelihood, and its length in tokens, bytes and words."""
        (read,) = likelihoods
        document = self.item(sample.index).text
        return DocumentObserved(
            log_likelihood=read.log_likelihood,
            n_tokens=len(read.text_ids),
            n_bytes=len(document.encode()),
            n_words=len(document.split()),
            n_windows=read.n_windows,
        )

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the perplexity over all tokens, the sum of nats, or each document's perplexity."""
        documents = [
            observation for observation in observations if isinstance(observation, DocumentObserved)
        ]
        nll = np.array([-document.log_likelihood for document in documents])
        count = np.array([document.n_tokens for document in documents], dtype=np.float64)
        if reduce == "none":
            every = np.full(len(observations), np.nan)
            is_observed = [
                isinstance(observation, DocumentObserved) for observation in observations
            ]
            what = f"{type(self).__name__}.score gives"
            every[is_observed] = require_scores(self.score(nll, count), len(documents), what)
            return every
        if not documents:
            return float("nan")
        return float(nll.sum() if reduce == "sum" else np.exp(nll.sum() / count.sum()))


class PerplexityComparisonEvaluation(LikelihoodEvaluation):
    """Base of multiple-choice evaluations: a prefix, its continuations, and which one is correct.

    The score is 1 if the correct continuation has the highest log-likelihood (the sum over all of
    its tokens), and 1/k if k continuations tie for the highest, the correct one among them. Other
    rules, such as length normalization, are metrics over the same recorded log-likelihoods.
    """

    kind: ClassVar[EvaluationKind] = "comparison"
    asks_unconditional: bool = False  # also compute log-likelihoods without the prefix, for PMI
    choice_delimiter: str = ""  # begins each continuation, and is no part of its length

    @abstractmethod
    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return an item's prefix, its continuations and the index of the correct one."""

    def score(self, correct_flags: Sequence[float]) -> Sequence[float]:
        """Return a score for each sample; `correct_flags` are 1, 0, or 1/k for ties.

        Only calls of the evaluation and `Evaluator.evaluate` use it. The ledger records choices,
        not scores, so the metrics of `tourney` and of results.json do not depend on this method or
        on `higher_is_better`: higher is better for each of them.
        """
        return correct_flags

    def item(self, index: int) -> ChoicesItem:
        """Return an item, checked; its context as it is recorded if a chat template shows it."""
        item = choices_item(self.get(index), f"{type(self).__name__}.get({index})")
        messages = self.chat_messages(index)
        return replace(item, context=recorded_text(messages)) if messages else item

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:
        """Return the entrant without its decoding; in a chat, with its system prompt."""
        entrant = super().configured(inference, options)
        if not self.has_chat:
            return entrant
        return replace(entrant, options=entrant.chosen.in_evaluations(options.system))

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return whether there is a chat, and whether unconditional likelihoods are computed too.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        says = f"{type(self).__name__}.asks_unconditional is"
        asks = require_boolean(self.asks_unconditional, says)
        unconditional = {"asks_unconditional": True} if asks else {}
        chat = {"is_chat": True} if self.has_chat else {}
        return {**super().settings(inference, options), **unconditional, **chat}

    def continuations(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the continuations after their prefix, then, for PMI, without it."""
        item = self.item(sample.index)
        messages = self.chat_messages(sample.index, entrant.chosen.system)
        conditional = (
            Continuation(
                f"{sample.item}:{index}",
                entrant,
                item.context,
                text,
                bos=self.bos,
                messages=messages,
            )
            for index, text in enumerate(item.choices)
        )
        alone = (
            Continuation(f"alone:{digest_of(text)}", entrant, "", text, bos=self.bos)
            for text in (item.choices if self.asks_unconditional else ())
        )
        return (*conditional, *alone)

    def observation_of(
        self, sample: Sample, likelihoods: Sequence[ContinuationLikelihood]
    ) -> Observation:
        """Return the log-likelihood of each continuation."""
        item = self.item(sample.index)
        n_choices = len(item.choices)
        conditional = likelihoods[:n_choices]
        alone = [likelihood.log_likelihood for likelihood in likelihoods[n_choices:]]
        texts = [text.removeprefix(self.choice_delimiter) for text in item.choices]
        choices = (
            Choice(
                log_likelihood=each.log_likelihood,
                n_tokens=len(each.text_ids),
                n_bytes=len(text.encode()),
                n_chars=len(text),
                is_greedy=each.predicted_ids == each.text_ids,
                unconditional=alone[n] if alone else None,
            )
            for n, (text, each) in enumerate(zip(texts, conditional, strict=True))
        )
        return ChoicesObserved(
            choices=tuple(choices),
            correct=item.correct,
            n_context_tokens=max(len(likelihood.context_ids) for likelihood in conditional),
            is_truncated=any(likelihood.is_truncated for likelihood in conditional),
        )

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of the scores, or each."""
        earned = [
            credit([choice.log_likelihood for choice in observation.choices], observation.correct)
            if isinstance(observation, ChoicesObserved)
            else float("nan")
            for observation in observations
        ]
        known = [flag for flag in earned if not isnan(flag)]
        what = f"{type(self).__name__}.score gives"
        scores = iter(require_scores(self.score(known), len(known), what))
        every = [flag if isnan(flag) else next(scores) for flag in earned]
        return reduce_scores(every, reduce)
