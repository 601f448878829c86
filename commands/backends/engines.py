"""Where entrants' weights run: in this process, or on the accelerators that Ray knows.

Imports are inside functions, as in `wiring`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from commands.backends.loads import LocalBackend
from commands.errors import ConfigurationError, needs_extra
from commands.ports import (
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Tell,
)
from commands.settings.schema import GenerationSection
from commands.settings.toml import EngineName

Engine: TypeAlias = Callable[[], AbstractContextManager[LocalBackend]]
"""Imports what is needed; what it returns holds weights only between its entry and its exit."""


def engine_for(name: EngineName, generation: GenerationSection, tell: Tell) -> Engine:
    """Return the engine of a command.

    Raises:
        ConfigurationError: A launcher started this command several times.
    """
    _require_one_process()
    return partial(_on_ray, generation, tell) if name == "ray" else in_process(generation)


def _require_one_process() -> None:
    """Require that no launcher started the command several times: each would do all the work."""
    n_processes = os.environ.get("WORLD_SIZE", "1")
    if n_processes not in {"", "0", "1"}:
        fault = (
            f"a launcher started this command {n_processes} times (WORLD_SIZE), and each would"
            " do all the work; start it once, with --engine ray for several GPUs"
        )
        raise ConfigurationError([fault])


def in_process(generation: GenerationSection) -> Engine:
    """Return the engine that is this process."""
    return lambda: nullcontext(local_models(generation, generation.device))


class EngineGenerator:
    """Generates once, on an engine whose memory is free again when it is done."""

    def __init__(self, engine: Engine) -> None:
        """Import what the engine needs.

        Raises:
            MissingExtra: A package is not installed.
        """
        self._opening = engine()

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield each finished batch's results."""
        with self._opening as local:
            yield from local.generate(tasks)


def local_models(generation: GenerationSection, device: str) -> LocalBackend:
    """Return what answers and reads in this process.

    Raises:
        MissingExtra: The packages for local models are not installed.
        ConfigurationError: The device is not available.
    """
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.local import LocalModels
    return LocalModels(generation.batch_tokens, device)


def _on_ray(generation: GenerationSection, tell: Tell) -> AbstractContextManager[LocalBackend]:
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.local import check_entrants
    with needs_extra("ray", "ray"):
        from commands.backends.cluster.pool import ray_pool
    kind = generation.device.partition(":")[0]  # Ray says which one
    return ray_pool(partial(local_models, generation, kind), check_entrants, generation, tell)
