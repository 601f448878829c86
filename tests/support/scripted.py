"""Backends that answer from a script."""

from collections.abc import Callable, Iterator, Sequence

from commands.ports import (
    Answer,
    Continuation,
    ContinuationLikelihood,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    LikelihoodFailure,
    Reply,
)
from projections.verdicts.queries import JudgeQuery


class ScriptedGenerator:
    """Answers by a function of the task; a failure is an answer too."""

    def __init__(
        self, answer: Callable[[GenerationTask], str | GenerationFailure], *, batch: int = 1
    ) -> None:
        self._answer = answer
        self._batch = batch
        self.asked: list[GenerationTask] = []

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield answers in the order of the tasks, a batch at a time."""
        for start in range(0, len(tasks), self._batch):
            batch = tasks[start : start + self._batch]
            self.asked += batch
            yield tuple(self._result(task) for task in batch)

    def _result(self, task: GenerationTask) -> GeneratedText | GenerationFailure:
        answer = self._answer(task)
        if isinstance(answer, GenerationFailure):
            return answer
        return GeneratedText(
            response_key=task.response_key,
            text=answer,
            finish_reason="stop",
            n_prompt_tokens=len(task.prompt_text.split()),
            n_generated_tokens=len(answer.split()),
            elapsed_s=0.0,
        )


class ScriptedReader:
    """Weighs texts by a function of the passage; its tokens are characters."""

    def __init__(
        self,
        weigh: Callable[[Continuation], float | LikelihoodFailure],
        *,
        predict: Callable[[Continuation], str] = lambda passage: passage.text,
        batch: int = 1,
    ) -> None:
        """Make a reader.

        Args:
            weigh: Gives the log-likelihood of a passage's text, or why there is none.
            predict: Gives the likeliest token in each place of a passage's text; rightly, if
                nothing else is said.
            batch: How many passages come at a time.
        """
        self._weigh = weigh
        self._predict = predict
        self._batch = batch
        self.asked: list[Continuation] = []

    def log_likelihoods(
        self, passages: Sequence[Continuation]
    ) -> Iterator[tuple[ContinuationLikelihood | LikelihoodFailure, ...]]:
        """Yield what was read in the order of the passages."""
        for start in range(0, len(passages), self._batch):
            batch = passages[start : start + self._batch]
            self.asked += batch
            yield tuple(self._result(passage) for passage in batch)

    def _result(self, passage: Continuation) -> ContinuationLikelihood | LikelihoodFailure:
        weight = self._weigh(passage)
        if isinstance(weight, LikelihoodFailure):
            return weight
        predicted = self._predict(passage)
        return ContinuationLikelihood(
            key=passage.key,
            log_likelihood=weight,
            context_ids=tuple(map(ord, passage.context)),
            text_ids=tuple(map(ord, passage.text)),
            predicted_ids=tuple(map(ord, predicted)),
            predicted=predicted,
        )


class ScriptedJudge:
    """Replies by a function of the query; None is silence."""

    def __init__(self, reply: Callable[[JudgeQuery], Answer | str | None]) -> None:
        self._reply = reply
        self.asked: list[JudgeQuery] = []

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Answer]:
        """Yield replies in the order of the queries."""
        for query in queries:
            self.asked.append(query)
            reply = self._reply(query)
            if reply is not None:
                yield scripted_answer(reply, query)


def scripted_answer(said: Answer | str, query: JudgeQuery) -> Answer:
    """Return what a script says to a query; a text is a reply."""
    if not isinstance(said, str):
        return said
    return Reply(query.query_key, said, stop_reason="end_turn", model="scripted")
