"""The two doors to the outside: who generates responses and who judges them.

Values in, values out; no type of torch or of a vendor's SDK crosses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ledger.events.registration import Entrant
from ledger.events.responses import FinishReason
from ledger.identity import Digest
from projections.judge_query import JudgeQuery


@dataclass(frozen=True)
class GenerationTask:
    """One response that is owed."""

    response_key: Digest
    entrant: Entrant
    prompt_text: str
    seed: int


@dataclass(frozen=True)
class GeneratedText:
    """What an entrant answered to a task."""

    response_key: Digest
    text: str
    finish_reason: FinishReason
    n_prompt_tokens: int
    n_generated_tokens: int
    elapsed_s: float


@dataclass(frozen=True)
class GenerationFailure:
    """Why a task has no answer: a fact about the task, not a fault of the program."""

    response_key: Digest
    reason: Literal["prompt_too_long", "out_of_memory", "not_finite"]
    detail: str


class Generator(Protocol):
    """Answers prompts as entrants."""

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield what each finished batch made, in any order, each task exactly once."""
        ...


@dataclass(frozen=True)
class Reply:
    """What a judge answered to a query, before anyone read a verdict into it."""

    query_key: Digest
    text: str
    stop_reason: str
    model: str


class Judge(Protocol):
    """Compares the two responses of a query."""

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Reply]:
        """Yield replies as they come, in any order, each query at most once."""
        ...
