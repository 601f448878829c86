"""Use case: generate the responses that are owed, and keep each batch as it is made."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from commands.decisions.commands import RecordResponse
from commands.decisions.recorder import Recorder
from commands.ports import (
    Console,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Generator,
    OnProgress,
)
from commands.spending.approval import approve_requests
from commands.spending.consent import SpendingOptions
from commands.spending.endpoints import Request
from commands.spending.pricing import PriceBook
from ledger.identity import PromptId
from projections.tournament.progress import missing_responses


class GenerationSummary(NamedTuple):
    """What a run of the generator added."""

    n_missing: int
    n_generated: int
    n_failed: int


def generate_missing(
    recorder: Recorder,
    make_generator: Callable[[], Generator],
    prompts: Collection[PromptId],
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> GenerationSummary:
    """Generate every response that the ledger lacks; a kill loses the batch in flight only.

    The generator is made only when something is owed.
    """
    owed = {cell.response_key: cell for cell in missing_responses(recorder.state, prompts)}
    if not owed:
        return GenerationSummary(n_missing=0, n_generated=0, n_failed=0)
    tasks = [
        GenerationTask(key, cell.entrant, cell.prompt.text, cell.seed)
        for key, cell in islice(owed.items(), limit)
    ]
    n_done = n_failed = 0
    on_progress("responses", 0, len(tasks))
    for batch in make_generator().generate(tasks):
        recorder.record(*(RecordResponse(owed[result.response_key], result) for result in batch))
        n_done += len(batch)
        n_failed += sum(isinstance(result, GenerationFailure) for result in batch)
        on_progress("responses", n_done, len(tasks))
    return GenerationSummary(len(owed), n_done - n_failed, n_failed)


def generate_with_consent(
    recorder: Recorder,
    prompts: Collection[PromptId],
    make_generator: Callable[[], Generator],
    book: PriceBook,
    spending: SpendingOptions,
    console: Console,
) -> GenerationSummary:
    """Generate every response that the ledger lacks, after asking about what it costs.

    Raises:
        Refused: Nobody agreed, or the cap is too low; nothing was sent.
    """
    owed = islice(missing_responses(recorder.state, prompts), spending.limit)
    requests = [Request(cell.entrant, cell.prompt.text) for cell in owed]
    approve_requests(recorder, requests, book, spending, console)
    return generate_missing(
        recorder,
        make_generator,
        prompts,
        on_progress=console.on_progress,
        limit=spending.limit,
    )


class GeneratorByLoader:
    """A generator of all loaders, which makes those that the tasks need and no others."""

    def __init__(self, local: Callable[[], Generator], served: Callable[[], Generator]) -> None:
        """Take what makes the generator of weights here, and of those behind endpoints."""
        self._local, self._served = local, served

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield what each finished batch made, endpoints first: they are quick to fail.

        Raises:
            MissingExtra: What a loader needs is not installed; nothing was generated.
        """
        there = [task for task in tasks if task.entrant.loader == "endpoint"]
        here = [task for task in tasks if task.entrant.loader != "endpoint"]
        parts = ((self._served, there), (self._local, here))
        for generator, part in [(make(), part) for make, part in parts if part]:
            yield from generator.generate(part)
