"""A command on a Ray of its own, whose raylet is killed at its first task; run as a script."""

import os
import signal
import sys

from commands.backends.ray_pool import ray_pool
from commands.errors import ReplicaFailed
from commands.ports import GenerationTask
from commands.settings.schema import GenerationSection
from tests.support.builders.events import key
from tests.support.weights.mortal import ROSTER, ScriptedModels, sound


def ending() -> ScriptedModels:
    """Return what takes the whole Ray of this machine with it: an actor is a child of raylet."""

    def end(_: GenerationTask) -> str:
        os.kill(os.getppid(), signal.SIGKILL)
        while True:  # an answer could arrive before Ray's end is seen
            signal.pause()

    return ScriptedModels(end)


def told(message: str) -> None:
    """Say what a user is told."""
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    os.environ.pop("RAY_ADDRESS", None)
    on_cpu = GenerationSection(device="cpu")
    try:
        with ray_pool(ending, sound, on_cpu, told) as pool:
            list(pool.generate([GenerationTask(key("task"), ROSTER[0], "?", 0)]))
    except ReplicaFailed as error:
        told(str(error))
        sys.exit(error.exit_code)
