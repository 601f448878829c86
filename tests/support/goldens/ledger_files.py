"""Write the golden ledger file of today's format, by the commands that a user runs.

`python -m tests.support.goldens.ledger_files`, before a version is released whose format, views or
events differ from those of the last. A file of an earlier format is never written again: it stands
for ledgers that exist.
"""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ledger.storage.schema import FORMAT
from tests.support.command_line.launching import launch, lay_out_small

LEDGERS: Final = Path(__file__).parents[2] / "golden" / "ledgers"
_N_PROMPTS: Final = 3


def golden(file_format: int) -> Path:
    """Return where the golden of a format is."""
    return LEDGERS / f"format-{file_format}.db.gz"


def unpack(packed: Path, into: Path) -> Path:
    """Write a golden's ledger into a file."""
    into.write_bytes(gzip.decompress(packed.read_bytes()))
    return into


def write() -> Path:
    """Run a tournament of a few prompts, and keep its ledger."""
    with TemporaryDirectory() as folder:
        place = lay_out_small(Path(folder, "quickstart"))
        bank = place / "bank.jsonl"
        lines = bank.read_text(encoding="utf-8").splitlines(keepends=True)
        bank.write_text("".join(lines[:_N_PROMPTS]), encoding="utf-8")
        done = launch(place, "run")
        if done.returncode:
            raise RuntimeError(done.stderr)
        packed = golden(FORMAT)
        packed.write_bytes(gzip.compress((place / "tournament.db").read_bytes(), mtime=0))
    return packed


if __name__ == "__main__":
    write()
