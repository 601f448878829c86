"""Evaluation of which next token an entrant predicts from the true ones before it."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from commands.evaluations.inference import Inference
from commands.evaluations.reading import ReadingEvaluation, Results
from commands.evaluations.returned import text
from commands.evaluations.sample import Sample
from commands.evaluations.scored import ScoredEvaluation
from commands.evaluations.terms import Terms
from commands.ports import Passage
from ledger.events.evaluations import EvaluationKind, Observation, PredictionObserved
from ledger.events.registration import Entrant
from ledger.identity import Json


class EncodingEvaluation(ScoredEvaluation, ReadingEvaluation):
    """An item is a text; the likeliest token in each place is what an entrant makes of it."""

    kind: ClassVar[EvaluationKind] = "encoding"

    @abstractmethod
    def get(self, index: int) -> str:
        """Return a text."""

    @abstractmethod
    def clean(self, y_hat: str) -> str:
        """Return what of a prediction is compared; it is as long as the text, in tokens."""

    def settings(self, inference: Inference, terms: Terms) -> Mapping[str, Json]:
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

    def passages(self, sample: Sample, entrant: Entrant) -> tuple[Passage, ...]:
        """Return the text, behind nothing."""
        return (Passage(sample.item, entrant, "", self._item(sample.index)),)

    def observed(self, sample: Sample, passages: Sequence[Passage], read: Results) -> Observation:  # noqa: ARG002  # as comparisons
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
