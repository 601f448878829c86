"""Run the fake as a process: `python -m tests.providers.anthropic`.

It tells its port, and ends when its standard input does.
"""

import sys
from argparse import ArgumentParser

from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.loopback import tell_port


def main() -> None:
    """Serve until standard input ends."""
    parser = ArgumentParser(prog="python -m tests.providers.anthropic", description=__doc__)
    add = parser.add_argument
    add("--ends-after-retrievals", type=int, default=1, metavar="N", help="-1: never by these")
    retrievals = parser.parse_args().ends_after_retrievals
    with FakeAnthropic(ends_after_retrievals=None if retrievals < 0 else retrievals) as fake:
        tell_port(fake.port)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
