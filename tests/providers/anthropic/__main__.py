"""Run the fake as a process: `python -m tests.providers.anthropic --state-dir D`.

It tells its port, and ends when its standard input does.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

from tests.providers.anthropic.batches import Pace
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.loopback import tell_port


def main() -> None:
    """Serve until standard input ends."""
    parser = ArgumentParser(prog="python -m tests.providers.anthropic", description=__doc__)
    add = parser.add_argument
    add("--state-dir", type=Path, required=True, help="where requests and results lie")
    add("--ends-after-retrievals", type=int, default=1, metavar="N", help="-1: never by these")
    options = parser.parse_args()
    retrievals = options.ends_after_retrievals
    pace = Pace(ends_after_retrievals=None if retrievals < 0 else retrievals)
    options.state_dir.mkdir(parents=True, exist_ok=True)
    with FakeAnthropic(pace=pace, folder=options.state_dir) as fake:
        tell_port(fake.port)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
