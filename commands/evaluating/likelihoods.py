"""Evaluations that read texts: how likely their tokens are to an entrant."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from commands.evaluating.evaluation import Evaluation, Observed, Scores
from commands.evaluating.rollout import ScoredEvaluation
from commands.evaluating.samples import Inference, Row, Sample, Seen, Unseen
from commands.evaluating.user_code import blaming, text
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


class ReadingEvaluation(Evaluation):
    """A sample is read as one passage or several, and observed when all of them are read."""

    @abstractmethod
    def passages(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return what is read of a sample.

        Two passages of one key are the same, and are read once for all samples.
        """

    @abstractmethod
    def observed(
        self, sample: Sample, passages: Sequence[Continuation], read: Results
    ) -> Observation:
        """Return what was observed, once all the passages of a sample were read."""

    def configured(self, inference: Inference, terms: EvaluationOptions) -> Entrant:  # noqa: ARG002  # as rollouts
        """Return the entrant without its decoding, which reading does not depend on."""
        return replace(inference.entrant, temperature=None, max_new_tokens=1)

    def settings(self, inference: Inference, terms: EvaluationOptions) -> Mapping[str, Json]:  # noqa: ARG002  # as rollouts
        """Return nothing: the entrant and the items determine what is read.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        inference.require_likelihoods(self.name)
        return {}

    def observe(
        self, inference: Inference, samples: Sequence[Sample], terms: EvaluationOptions
    ) -> Iterator[tuple[Observed, ...]]:
        """Read passages, and observe each sample as soon as its own are read."""
        entrant = self.configured(inference, terms)
        of_sample = {sample: self._asked(sample, entrant) for sample in samples}
        waiting = dict(of_sample)
        every = {each.key: each for passages in of_sample.values() for each in passages}
        read: dict[str, ContinuationLikelihood] = {}
        unread: dict[str, LikelihoodFailure] = {}
        for batch in inference.require_likelihoods(self.name)().log_likelihoods([*every.values()]):
            read.update(
                (each.key, each) for each in batch if isinstance(each, ContinuationLikelihood)
            )
            unread.update((each.key, each) for each in batch if isinstance(each, LikelihoodFailure))
            done = [
                sample
                for sample, passages in waiting.items()
                if all(each.key in read or each.key in unread for each in passages)
            ]
            if done:
                yield tuple(
                    self._observed(sample, waiting.pop(sample), read, unread) for sample in done
                )

    def _asked(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        with blaming(self.name, f"getting {sample.label}"):
            passages = self.passages(sample, entrant)
            if not passages:
                raise ValueError("there is nothing to read, and it would be owed for ever")
            return passages

    def _observed(
        self,
        sample: Sample,
        passages: Sequence[Continuation],
        read: Results,
        unread: Mapping[str, LikelihoodFailure],
    ) -> Observed:
        for passage in passages:
            if fault := unread.get(passage.key):
                return Unseen(sample, fault.reason, fault.detail)
        with blaming(self.name, f"scoring {sample.label}"):
            observation = self.observed(sample, passages, read)
        rows = tuple(
            Row(each.context_ids, each.text_ids)
            for each in (read[p.key] for p in self.shown(passages))
        )
        return Seen(sample, self.cluster(passages), observation, rows)

    def shown(self, passages: Sequence[Continuation]) -> Sequence[Continuation]:
        """Return the passages whose tokens are a sample's intermediates."""
        return passages

    def cluster(self, passages: Sequence[Continuation]) -> Digest:
        """Name what samples that are not independent share: by default their context or text."""
        return digest_of(passages[0].context or passages[0].text)


class EncodingEvaluation(ScoredEvaluation, ReadingEvaluation):
    """An item is a text; the likeliest token in each place is what an entrant makes of it."""

    kind: ClassVar[EvaluationKind] = "encoding"

    @abstractmethod
    def get(self, index: int) -> str:
        """Return a text."""

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return what of a prediction is compared; it is as long as the text, in tokens."""

    def settings(self, inference: Inference, terms: EvaluationOptions) -> Mapping[str, Json]:
        """Return who scores: predictions that others score are not its own.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        return {**super().settings(inference, terms), "scored_by": self.name}

    def content(self, index: int) -> Json:
        """Return the text.

        Raises:
            TypeError: `get` gives none.
            ValueError: It gives what UTF-8 cannot say.
        """
        return self._item(index)

    def passages(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the text, behind nothing."""
        return (Continuation(sample.item, entrant, "", self._item(sample.index)),)

    def observed(
        self,
        sample: Sample,  # noqa: ARG002  # as comparisons
        passages: Sequence[Continuation],
        read: Results,
    ) -> Observation:
        """Return what was predicted, and what it is worth."""
        wanted, each = passages[0].text, read[passages[0].key]
        judged = self.judged(wanted, each.predicted)
        return PredictionObserved(
            text=wanted,
            predicted=each.predicted_ids,
            target=each.text_ids,
            prediction=each.predicted,
            cleaned=judged.cleaned,
            score=judged.score,
        )

    def _item(self, index: int) -> str:
        return text(self.get(index), f"{type(self).__name__}.get({index}) gives")


class PerplexityEvaluation(ReadingEvaluation):
    """An item is a document, read whole: a long one window by window, each token once."""

    kind: ClassVar[EvaluationKind] = "perplexity"
    higher_is_better: ClassVar[bool] = False

    @abstractmethod
    def get(self, index: int) -> str:
        """Return a document."""

    def score(
        self, per_sample_nll: NDArray[np.float64], per_sample_count: NDArray[np.float64]
    ) -> Sequence[float]:
        """Return each document's perplexity: exp(nll / count), in nats and tokens.

        Only `reduce="none"` asks for it, when the evaluation itself or `Evaluator.evaluate` is
        called: a mean is over tokens, not over documents. Likelihoods are recorded, not scores,
        and the metrics of the ledger and of results.json do not depend on this; nor on
        `higher_is_better`, as less is better of each of them.
        """
        return [*map(float, np.exp(per_sample_nll / per_sample_count))]

    def content(self, index: int) -> Json:
        """Return the document.

        Raises:
            TypeError: `get` gives no text.
            ValueError: It gives what UTF-8 cannot say.
        """
        return self._item(index)

    def passages(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the document, behind nothing."""
        return (Continuation(sample.item, entrant, "", self._item(sample.index), rolls=True),)

    def observed(
        self,
        sample: Sample,  # noqa: ARG002  # as comparisons
        passages: Sequence[Continuation],
        read: Results,
    ) -> Observation:
        """Return how likely the document is, and how long by every measure."""
        document, each = passages[0].text, read[passages[0].key]
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
            is_read = [isinstance(each, DocumentObserved) for each in observations]
            every[is_read] = self.score(nll, count)
            return every
        if not documents:
            return float("nan")
        return float(nll.sum() if reduce == "sum" else np.exp(nll.sum() / count.sum()))

    def _item(self, index: int) -> str:
        return text(self.get(index), f"{type(self).__name__}.get({index}) gives")
