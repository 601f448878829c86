"""Run the fake as a process: `python -m tests.providers.anthropic --state-dir D`.

It tells its port, and ends when its standard input does.
"""

import importlib
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from tests.providers.anthropic.batches import Pace
from tests.providers.anthropic.errors import Limits
from tests.providers.anthropic.messages import Answering
from tests.providers.anthropic.server import BATCH_HIT_RATE, FakeAnthropic
from tests.providers.loopback import tell_port


def main() -> None:
    """Serve until standard input ends."""
    options = _options()
    retrievals = options.ends_after_retrievals
    pace = Pace(
        ends_after_retrievals=None if retrievals < 0 else retrievals,
        ends_after_s=options.ends_after_s,
        share_done_at_cancel=options.share_done_at_cancel,
    )
    options.state_dir.mkdir(parents=True, exist_ok=True)
    with FakeAnthropic(
        answering=_answering(options.answering),
        pace=pace,
        limits=Limits(n_requests_per_minute=options.requests_per_minute),
        batch_hit_rate=options.batch_hit_rate,
        folder=options.state_dir,
        seed=options.seed,
    ) as fake:
        tell_port(fake.port)
        sys.stdin.buffer.read()


def _answering(name: str) -> Answering:
    module, _, function = name.partition(":")
    answering: Answering = getattr(importlib.import_module(module), function)
    return answering


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.providers.anthropic", description=__doc__)
    add = parser.add_argument
    add("--state-dir", type=Path, required=True, help="where requests and results lie")
    add("--ends-after-retrievals", type=int, default=1, metavar="N", help="-1: never by these")
    add("--ends-after-s", type=float, metavar="S", help="a batch ends so long after its creation")
    add("--share-done-at-cancel", type=float, default=0.0, help="what a cancel comes too late for")
    add("--requests-per-minute", type=int, metavar="N", help="enforced; default: no limit")
    add("--batch-hit-rate", type=float, default=BATCH_HIT_RATE, help="of the prompt cache")
    add("--answering", default="tests.providers.anthropic.messages:judge", help="MODULE:FUNCTION")
    add("--seed", type=int, default=0, help="of ids, and of the order of results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
