"""Evaluation of how likely texts are to an entrant."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from commands.evaluations.evaluation import Scores
from commands.evaluations.reading import ReadingEvaluation, Results
from commands.evaluations.returned import text
from commands.evaluations.sample import Sample
from commands.evaluations.terms import Reduce
from commands.ports import Passage
from ledger.events.evaluations import DocumentObserved, EvaluationKind, Observation
from ledger.events.registration import Entrant
from ledger.identity import Json


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

    def passages(self, sample: Sample, entrant: Entrant) -> tuple[Passage, ...]:
        """Return the document, behind nothing."""
        return (Passage(sample.item, entrant, "", self._item(sample.index), rolls=True),)

    def observed(self, sample: Sample, passages: Sequence[Passage], read: Results) -> Observation:  # noqa: ARG002  # as comparisons
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
