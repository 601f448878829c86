"""A command in a process of its own: how long it takes, and in how much memory.

A process starts out with the peak of memory of the one that began it. So the command is begun by
one in between, which is small: this file.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_COMPILES_ANEW: Final = "PYTHONDONTWRITEBYTECODE"
_KIB_A_MB: Final = 1_000_000 / 1024


class Ended(NamedTuple):
    """A command that did what it should."""

    took_s: float
    peak_mb: float
    processor_s: float


def alone(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run a command to its end; what it prints is thrown away.

    Python keeps what it compiles, as it does of programs that are installed.

    Raises:
        CalledProcessError: It failed.
    """
    between = [sys.executable, "-P", __file__, *command]
    compiling = {**(os.environ if environment is None else environment), _COMPILES_ANEW: ""}
    done = subprocess.run(
        between, cwd=folder, env=compiling, stdout=subprocess.PIPE, check=True, text=True
    )
    return Ended(*json.loads(done.stdout))


def tourney(*words: str) -> list[str]:
    """Return the command that runs the command line from a cold start."""
    return [sys.executable, "-m", "tourney", *words]


def main() -> None:
    """Run the command that the arguments are, and print what it took."""
    began_s = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - began_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{sys.argv[1:]} ended with {process.returncode}")
    sys.stdout.write(
        json.dumps([took_s, used.ru_maxrss / _KIB_A_MB, used.ru_utime + used.ru_stime])
    )


if __name__ == "__main__":
    main()
