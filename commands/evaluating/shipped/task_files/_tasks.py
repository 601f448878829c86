"""The four kinds of tasks as evaluations, scored as lm-evaluation-harness scores them."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from commands.entrants.chats import Chat, plain_text
from commands.evaluating.comparison import PerplexityComparisonEvaluation
from commands.evaluating.likelihoods import PerplexityEvaluation, Results
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.shipped._questions import ChoiceQuestion, ContextChoices
from commands.evaluating.shipped.items import AskedQuestion, DividedEvaluation, DividedRollout
from commands.evaluating.shipped.task_files._answers import are_equal, filtered
from commands.evaluating.shipped.task_files._settings import FilterStep, MetricKeys, TaskKeys
from commands.evaluating.values import ComparisonItem, Scores, reduce_scores
from commands.ports import Continuation
from commands.settings.sections import Reduce
from ledger.events.evaluations import ChoicesObserved, DocumentObserved, Observation


class TaskChoices(ContextChoices):
    """A multiple_choice task."""

    def __init__(
        self, questions: Mapping[str, ChoiceQuestion], keys: TaskKeys, *, bos: bool
    ) -> None:
        """Take the questions; acc_mutual_info also reads the choices without their context."""
        super().__init__(
            questions,
            delimiter=keys.target_delimiter,
            chat_delimiter=keys.chat_delimiter,
            bos=bos,
        )
        self.between = keys.fewshot_delimiter
        metrics = {each.metric for each in keys.metric_list}
        self.asks_unconditional = "acc_mutual_info" in metrics


class ContextText(NamedTuple):
    """A context, and the text behind it."""

    context: Chat
    text: str


class TaskLikelihood(DividedEvaluation[ContextText], PerplexityComparisonEvaluation):
    """A loglikelihood task: one text behind a context, right if greedy decoding gives it."""

    def __init__(self, texts: Mapping[str, ContextText], keys: TaskKeys, *, bos: bool) -> None:
        """Take the texts, by label."""
        super().__init__(texts)
        self.bos, self.between = bos, keys.fewshot_delimiter

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a context, and the text behind it as the only choice."""
        context, text = self.items[index]
        return plain_text(context), [text], 0

    def chat_turns(self, index: int) -> Chat:
        """Return the examples and the context as turns."""
        return self.items[index].context

    def item(self, index: int) -> ComparisonItem:
        """Return the same; other comparisons need two choices at least."""
        context, text = self.items[index]
        return self.in_chat(ComparisonItem(plain_text(context), (text,), 0), index)

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of what greedy decoding gives (acc), or each."""
        scores = (
            float(each.choices[0].is_greedy) if isinstance(each, ChoicesObserved) else float("nan")
            for each in observations
        )
        return reduce_scores([*scores], reduce)


class TaskDocuments(DividedEvaluation[str], PerplexityEvaluation):
    """A loglikelihood_rolling task."""

    def __init__(self, documents: Mapping[str, str], *, bos: bool) -> None:
        """Take the documents, by label."""
        super().__init__(documents)
        self.bos = bos

    def get(self, index: int) -> str:
        """Return a document."""
        return self.items[index]

    def observation_of(
        self, sample: Sample, continuations: Sequence[Continuation], results: Results
    ) -> Observation:
        """Return the log-likelihood; a space at either end of a document ends an empty word."""
        observed = super().observation_of(sample, continuations, results)
        assert isinstance(observed, DocumentObserved)  # noqa: S101  # as documents give
        return replace(observed, n_words=len(re.split(r"\s+", continuations[0].text)))


class TaskAnswers(DividedRollout):
    """A generate_until task under one of its filters; `score` is its exact_match."""

    is_chat = False

    def __init__(
        self,
        questions: Mapping[str, AskedQuestion],
        keys: TaskKeys,
        steps: Sequence[FilterStep],
        *,
        whole: str,
        bos: bool,
    ) -> None:
        """Take the questions, by label, and the filter's steps.

        All evaluations of a task file share `whole`, and with it the answers.
        """
        super().__init__(questions)
        self.stop, self.bos, self.whole = keys.stop, bos, whole
        self.between = keys.fewshot_delimiter
        self._n_new = keys.generation_kwargs.max_gen_toks
        self._steps, self._rules = tuple(steps), keys.metric_list or (_EXACT_MATCH,)
        self._scoring = repr((self._steps, self._rules))  # a part of the scorer's digest

    def clean(self, y_hat: str) -> str:
        """Return what the filter keeps of an answer."""
        return filtered(y_hat, self._steps)

    def check(self, y: str, y_hat: str) -> bool:
        """Return whether the texts are equal but for what the metric ignores."""
        return all(are_equal(y, y_hat, rule) for rule in self._rules)

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self._n_new


_EXACT_MATCH = MetricKeys(metric="exact_match")
