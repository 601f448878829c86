"""Questions with choices, as a comparison of log-likelihoods behind the same context."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from commands.entrants.chats import Chat, plain_text
from commands.evaluating.comparison import PerplexityComparisonEvaluation
from commands.evaluating.likelihoods import Results
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.shipped.items import DividedEvaluation
from commands.ports import Continuation
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import ChoicesObserved, Observation
from ledger.identity import Json


class ChoiceQuestion(NamedTuple):
    """A context, the choices behind it, and the index of the correct one."""

    context: Chat
    choices: tuple[str, ...]
    correct: int


class ContextChoices(DividedEvaluation[ChoiceQuestion], PerplexityComparisonEvaluation):
    """Comparison of choices behind a context and a delimiter, which does not count as their length.

    So `acc_norm` and `acc_bytes` divide by the length of the choice alone, as
    lm-evaluation-harness does.
    """

    def __init__(self, questions: Mapping[str, ChoiceQuestion], *, bos: bool) -> None:
        """Take the questions, by label, and whether texts begin with the BOS token."""
        super().__init__(questions)
        self.bos = bos

    @property
    def delimiter(self) -> str:
        """What stands before a choice: a space, but where the turn of the model begins nothing."""
        return "" if self.is_asked_in_chat else " "

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a context, the choices with their delimiter, and the index of the correct one."""
        context, choices, correct = self.items[index]
        return plain_text(context), [f"{self.delimiter}{each}" for each in choices], correct

    def chat_turns(self, index: int) -> Chat:
        """Return the examples and the question as turns."""
        return self.items[index].context

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the delimiter, too: it decides what is recorded as a choice's length."""
        return {**super().settings(inference, options), "delimiter": self.delimiter}

    def observation_of(
        self, sample: Sample, continuations: Sequence[Continuation], results: Results
    ) -> Observation:
        """Return the log-likelihood of each choice, and its length without the delimiter."""
        observed = super().observation_of(sample, continuations, results)
        assert isinstance(observed, ChoicesObserved)  # noqa: S101  # as comparisons give
        choices = self.items[sample.index].choices
        measured = (
            replace(choice, n_chars=len(text), n_bytes=len(text.encode()))
            for choice, text in zip(observed.choices, choices, strict=True)
        )
        return replace(observed, choices=tuple(measured))
