"""Where entrants' weights work: in this process, in those of a launcher, or on a Ray cluster.

Imports are inside functions, as in `wiring`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from commands.errors import ConfigurationError, MissingExtra
from commands.ports import (
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Generator,
    LikelihoodModel,
    Tell,
)
from commands.settings.schema import GenerationSection
from commands.settings.toml import EngineName

if TYPE_CHECKING:
    from commands.backends.cluster.pool import RayPool
    from commands.backends.huggingface.replicas import ReplicaGroup

_ONE_ALONE: Final = (
    "`accelerate launch --cpu` starts one process, whatever --num_processes says; start them with"
    " `torchrun --nproc-per-node N $(which tourney) ...`"
)


@contextmanager
def needs_extra(extra: str, package: str) -> Iterator[None]:
    """Name the extra that is missing when an import inside fails.

    Raises:
        MissingExtra: A package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or package, extra) from error


class LocalBackends(NamedTuple):
    """The generator and the likelihood model of entrants whose weights are loaded."""

    generator: Generator
    reader: LikelihoodModel


Engine: TypeAlias = Callable[[], AbstractContextManager[LocalBackends]]
"""Imports what is needed; what it returns holds weights only between its entry and its exit."""


@contextmanager
def engine_for(
    name: EngineName, generation: GenerationSection, tell: Tell
) -> Iterator[Engine | None]:
    """Yield the engine of a command, with all processes of a launcher if there are several.

    Other processes than the first do their shares of the work here, and get None.

    Raises:
        ConfigurationError: Several processes were asked for, and one was started; or a launcher
            started several to use Ray.
        MissingExtra: The packages for local models are not installed.
    """
    n = n_processes()
    if name == "ray" and n > 1:
        raise ConfigurationError([_TWO_WAYS])
    if name == "ray":
        yield partial(_on_ray, generation, tell)
    elif n == 1:
        yield in_process(generation)
    elif not (replicas := _replicas(generation)).is_main:
        replicas.serve()
        yield None
    else:
        with replicas.leading():
            yield partial(_leading, replicas)


_TWO_WAYS = (
    "--engine ray starts its own processes: run the command without `accelerate launch` or"
    " `torchrun`, or leave --engine out"
)


def in_process(generation: GenerationSection) -> Engine:
    """Return the engine that is this process alone."""
    return lambda: nullcontext(local_backends(generation, generation.device))


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
            yield from local.generator.generate(tasks)


def local_backends(generation: GenerationSection, device: str) -> LocalBackends:
    """Return a generator and a likelihood model that share their weights, in this process.

    Raises:
        MissingExtra: The packages for local models are not installed.
        ConfigurationError: The device is not available.
    """
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.generator import HfGenerator
        from commands.backends.huggingface.reader import HfLikelihoodModel
        from commands.backends.huggingface.worker import LastLoaded
    options = (generation.batch_tokens, device, generation.cpu_threads, LastLoaded())
    return LocalBackends(HfGenerator(*options), HfLikelihoodModel(*options))


def _replicas(generation: GenerationSection) -> "ReplicaGroup":
    with needs_extra("models", "accelerate"):
        from commands.backends.huggingface.replicas import ReplicaGroup
    make = partial(local_backends, generation)
    return ReplicaGroup(make, generation.batch_tokens, generation.device)


@contextmanager
def _leading(replicas: "ReplicaGroup") -> Iterator[LocalBackends]:
    with replicas.leading():
        yield LocalBackends(replicas, replicas)


def _on_ray(generation: GenerationSection, tell: Tell) -> AbstractContextManager[LocalBackends]:
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.worker import check_entrants
    with needs_extra("ray", "ray"):
        from commands.backends.cluster.pool import ray_pool
    kind = generation.device.partition(":")[0]  # Ray says which one
    make = partial(local_backends, generation, kind)
    return _pooled(ray_pool(make, check_entrants, generation, tell))


@contextmanager
def _pooled(pool: "AbstractContextManager[RayPool]") -> Iterator[LocalBackends]:
    with pool as actors:
        yield LocalBackends(actors, actors)


def n_processes() -> int:
    """Return how many processes `accelerate launch` or `torchrun` started, this one included.

    Raises:
        ConfigurationError: Several were asked for, and one was started.
    """
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    if os.environ.get("ACCELERATE_USE_CPU") == "True" and "MASTER_PORT" in os.environ:
        raise ConfigurationError([_ONE_ALONE])
    return 1
