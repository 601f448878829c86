"""Backends that answer from a script: for rehearsals, examples and tests."""

from collections.abc import Callable, Iterator, Sequence

from commands.ports import GeneratedText, GenerationFailure, GenerationTask, Reply
from projections.judge_query import JudgeQuery


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


class ScriptedJudge:
    """Replies by a function of the query; None is silence."""

    def __init__(self, reply: Callable[[JudgeQuery], Reply | str | None]) -> None:
        self._reply = reply
        self.asked: list[JudgeQuery] = []

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Reply]:
        """Yield replies in the order of the queries."""
        for query in queries:
            self.asked.append(query)
            reply = self._reply(query)
            if isinstance(reply, str):
                reply = Reply(query.query_key, reply, stop_reason="end_turn", model="scripted")
            if reply is not None:
                yield reply
