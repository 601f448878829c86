"""A process to kill: appends batches for ever and says each place once it is recorded.

`python -m tests.ledger.appender PATH` prints one line per batch: position and chain.
"""

import sys
from itertools import count
from pathlib import Path

from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.facts import verdicts

BATCH = 5


def append_for_ever(path: Path) -> None:
    """Append until killed, going on where the ledger ends."""
    with Ledger.open(path) as ledger:
        for after in count(ledger.head.position, BATCH):
            last = ledger.append(STREAM, verdicts(BATCH, after=after))[-1]
            sys.stdout.write(f"{last.position} {last.chain}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    append_for_ever(Path(sys.argv[1]))
