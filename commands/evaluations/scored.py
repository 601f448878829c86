"""Evaluations whose own code says what an answer or a prediction is worth."""

from abc import abstractmethod
from collections.abc import Sequence
from math import isfinite

from msgspec.structs import replace

from commands.evaluations.evaluation import Evaluation, Scores, reduced
from commands.evaluations.returned import text
from commands.evaluations.sample import Judged
from commands.evaluations.terms import Reduce
from ledger.events.evaluations import AnswerObserved, Observation, PredictionObserved


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
