"""How many processes a launcher started: `accelerate launch` or `torchrun`. It needs no torch."""

import os
from typing import Final

from commands.errors import ConfigurationError

_ONE_ALONE: Final = (
    "`accelerate launch --cpu` starts one process, whatever --num_processes says; start them with"
    " `torchrun --nproc-per-node N $(which tourney) ...`"
)


def n_processes() -> int:
    """Return how many processes work together, this one included.

    Raises:
        ConfigurationError: Several were asked for, and one was started.
    """
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    if os.environ.get("ACCELERATE_USE_CPU") == "True" and "MASTER_PORT" in os.environ:
        raise ConfigurationError([_ONE_ALONE])
    return 1
