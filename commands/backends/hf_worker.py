"""What answering, reading and judging with weights on this machine have in common."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from commands.backends.batching import grouped
from commands.backends.device import free_memory, prepare_device
from commands.backends.loading import Load, Loaded, check_ahead, load_entrant, load_key
from commands.ports import GenerationTask, Passage

Work = TypeVar("Work", GenerationTask, Passage)
Finished = TypeVar("Finished")


class HfWorker:
    """Works as entrants, load by load and batch by batch.

    A load is weights, adapters or shards, and dtype: entrants that share one work together, and it
    is freed before the next.
    """

    def __init__(
        self,
        batch_tokens: int,
        device: str = "auto",
        cpu_threads: int | None = None,
        load: Load = load_entrant,
    ) -> None:
        """Allow batches of that many tokens: what is read, padding and new tokens together.

        cpu_threads is set for the whole process; None leaves torch's own choice. What `load` keeps
        of its own is not freed.

        Raises:
            ConfigurationError: There is no such device here.
        """
        self._batch_tokens = batch_tokens
        self._device = prepare_device(device, cpu_threads)
        self._load = load

    def _load_by_load(
        self,
        owed: Sequence[Work],
        do: Callable[[Loaded, Sequence[Work]], Iterator[Finished]],
    ) -> Iterator[Finished]:
        """Do the work of one load after the other.

        `do` alone may hold what is loaded, or two loads would be in memory at once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; what can be told of that before
                its turn is told before anything is done.
        """
        loads = grouped(owed, lambda each: load_key(each.entrant))
        check_ahead(same_load[0].entrant for same_load in loads[1:])  # the first comes now
        for n, same_load in enumerate(loads):
            if n:
                free_memory(self._device)  # of the load before
            yield from do(self._load(same_load[0].entrant, self._device), same_load)
