"""Connect to Ray: a cluster's, this machine's, or one that is started for one command.

What is started here listens on this machine only, under a key of its own, and leaves no file.
"""

import logging
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final, NamedTuple

import ray

from commands.errors import ConfigurationError
from commands.settings.schema import GenerationSection

_QUIET: Final[dict[str, Any]] = {"logging_level": logging.ERROR, "log_to_driver": False}
_OBJECTS_BYTES: Final = 100 * 2**20  # of texts; Ray would reserve a third of the memory
_LONGEST_FOLDER: Final = 40  # characters: the names of Ray's sockets hold 67 more, of 107


class Place(NamedTuple):
    """What one actor occupies."""

    num_cpus: int
    num_gpus: int = 0


@contextmanager
def connected() -> Iterator[bool]:
    """Connect to the Ray of RAY_ADDRESS, else to that of `ray start` here, else to one of our own.

    Yields whether it is of our own: then no other machine can take over.

    Raises:
        ConfigurationError: The cluster does not answer.
    """
    # Ray writes to the standard output, too, where a command's result belongs
    with _variables({"RAY_USAGE_STATS_ENABLED": "0"}), redirect_stdout(sys.stderr):
        try:
            if address := os.environ.get("RAY_ADDRESS") or _started_here():
                _connect(address)
                yield False
            else:
                with _started() as options:
                    ray.init(**options)
                    yield True
        finally:
            ray.shutdown()


def places(nodes: list[dict[str, Any]], generation: GenerationSection) -> list[Place]:
    """Return a place for each GPU of a cluster, or else for each machine.

    Raises:
        ConfigurationError: There is none.
    """
    here = [node["Resources"] for node in nodes if node["Alive"]]
    n_gpus = 0 if generation.device == "cpu" else sum(int(each.get("GPU", 0)) for each in here)
    if n_gpus:
        return [Place(1, 1)] * n_gpus
    n_cpus = (int(each.get("CPU", 0)) for each in here)
    found = [Place(n) for n in n_cpus if n]
    if not found:
        raise ConfigurationError(["Ray has neither GPUs nor CPUs; see `ray status`"])
    return found


def _started_here() -> str | None:
    """Return the address of the Ray that `ray start` began on this machine."""
    noted = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")  # noqa: S108  # Ray's own
    return noted.read_text(encoding="utf-8").strip() if noted.exists() else None


def _connect(address: str) -> None:
    try:
        ray.init(address, **_QUIET)
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        fault = f"Ray at {address} does not answer: {why}; see `ray status`, or unset RAY_ADDRESS"
        raise ConfigurationError([fault]) from error


@contextmanager
def _started() -> Iterator[Mapping[str, Any]]:
    """Yield the options of a Ray for this process alone, whose files are removed at the end."""
    folder = gettempdir() if len(gettempdir()) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108  # as Ray's own
    with (
        _variables({"RAY_AUTH_TOKEN": _own_key()}),  # else Ray writes one to the user's folder
        TemporaryDirectory(prefix="ray-", dir=folder, ignore_cleanup_errors=True) as own,
    ):
        try:
            yield {
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": _OBJECTS_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": own,
                **_QUIET,
            }
        finally:
            ray.shutdown()  # before its folder goes


@cache
def _own_key() -> str:
    """Return a secret of this process; Ray remembers the first that it is given."""
    return secrets.token_hex(32)


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment within the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
