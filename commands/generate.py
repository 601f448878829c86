"""Use case: generate the responses that are owed, and keep each batch as it is made."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import NamedTuple

from commands.command import RecordResponse
from commands.ports import GenerationFailure, GenerationTask, Generator
from commands.progress import OnProgress
from commands.recorder import Recorder
from ledger.identity import PromptId
from projections.tournament.progress import owed_responses


class Generated(NamedTuple):
    """What a run of the generator added."""

    n_owed: int
    n_generated: int
    n_failed: int


def generate_owed(
    recorder: Recorder,
    make_generator: Callable[[], Generator],
    prompts: Collection[PromptId],
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> Generated:
    """Generate every response that the ledger lacks; a kill loses the batch in flight only.

    The generator is made only when something is owed.
    """
    owed = {cell.response_key: cell for cell in owed_responses(recorder.state, prompts)}
    if not owed:
        return Generated(n_owed=0, n_generated=0, n_failed=0)
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
    return Generated(len(owed), n_done - n_failed, n_failed)
