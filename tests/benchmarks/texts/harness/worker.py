"""lm-evaluation-harness in a process and an environment of its own."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.texts.harness.items import WEIGHTS, Items

_THEIRS: Final = Path(__file__).with_name("theirs.py")


class Worker:
    """A process that answers line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Ask this one."""
        self._process = process

    def facts(self) -> Mapping[str, Any]:
        """Return log-likelihoods, metrics and versions."""
        return dict(self._asked("facts"))

    def seconds(self, kind: str, batch_size: int) -> float:
        """Return how long it takes to read the items of a kind."""
        return float(self._asked(f"{kind} {batch_size}"))

    def _asked(self, line: str) -> Any:  # noqa: ANN401  # what JSON holds
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def at_work(python: str, items: Items, folder: Path) -> Iterator[Worker]:
    """Give lm-evaluation-harness of that Python's environment, with the items in a folder."""
    _write(folder / "questions.jsonl", [each._asdict() for each in items.questions])
    _write(folder / "documents.jsonl", [{"text": text} for text in items.documents])
    with subprocess.Popen(
        [python, str(_THEIRS), str(WEIGHTS), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HOME": str(folder), "HF_HUB_OFFLINE": "1"},
    ) as process:
        yield Worker(process)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
