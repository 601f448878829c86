"""How long whole evaluations take here and in lm-evaluation-harness, in processes of their own.

What is measured is the processor's time, so it does not depend on what else the machine does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.bench import ROOT, say
from tests.benchmarks.rounds import Rounds, interleaved
from tests.benchmarks.table import Row, at_least, compared, stated
from tests.benchmarks.texts.task_files.weights import Size, made_weights

_FILES: Final = Path(__file__).parent
OURS: Final = ("-m", "tests.benchmarks.texts.task_files.our_speed")
THEIRS: Final = (str(_FILES / "their_speed.py"),)


class TimedTask(NamedTuple):
    """A task file to evaluate, what kind it is, and how much quicker it must be at least."""

    file: str
    kind: str
    asked: float = 1.0


TIMED: Final = (
    TimedTask("arc_easy", "multiple_choice"),
    TimedTask("arc_challenge", "multiple_choice, texts behind 3 examples"),
    TimedTask("mmlu_anatomy", "multiple_choice, letters behind 5 examples"),
    TimedTask("lambada_openai", "loglikelihood"),
    TimedTask("pile_10k", "loglikelihood_rolling"),
    TimedTask("gsm8k", "generate_until"),
)


class SpeedWorker:
    """A process that evaluates a task file when it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until it has loaded its weights."""
        self._process = process
        self.begun = self._heard()

    def seconds(self, task: str, batch_size: str) -> float:
        """Return how long the processor worked on an evaluation, its task file read."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{task} {batch_size}\n")
        self._process.stdin.flush()
        return self._heard()["evaluating"]

    def _heard(self) -> Mapping[str, float]:
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))


@contextmanager
def _working(command: Sequence[str], weights: Path, folder: Path) -> Iterator[SpeedWorker]:
    """Give a process of its own with these weights."""
    environment = {**os.environ, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        [*command, str(weights), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=environment,
    ) as process:
        yield SpeedWorker(process)
        assert process.stdin is not None
        process.stdin.close()


class _Measured(NamedTuple):
    family: str
    rounds: Rounds
    automatic: str

    @property
    def ratio(self) -> float:
        return self.rounds.ratio("theirs", "ours")  # of seconds: the more of theirs, the quicker


def speed_rows(python: str, folder: Path, size: Size, n_rounds: int) -> Iterator[Row]:
    """Yield a row for each kind of task, of the family that gains least, and one for the start."""
    measured: dict[TimedTask, list[_Measured]] = {task: [] for task in TIMED}
    starts = []
    for family, weights in made_weights(folder / size.name, size):
        with (
            _working([sys.executable, *OURS], weights, folder) as ours,
            _working([python, *THEIRS], weights, folder) as theirs,
        ):
            starts.append((ours.begun, theirs.begun))
            for task in TIMED:
                contenders = {
                    "ours": partial(ours.seconds, task.file, "-"),
                    "theirs": partial(theirs.seconds, task.file, "1"),
                }
                rounds = interleaved(n_rounds, contenders)
                automatic = (
                    f"; auto: {theirs.seconds(task.file, 'auto'):.3f} s" if size.tries_auto else ""
                )
                measured[task].append(_Measured(family, rounds, automatic))
                say(f"{size.name} | {family} | {task.file} | {measured[task][-1].ratio:.2f}")
    for task, of_families in measured.items():
        least = min(of_families, key=lambda each: each.ratio)
        ours_s, theirs_s = map(least.rounds.median, ("ours", "theirs"))
        yield compared(
            f"{size.name}: {task.kind} ({task.file}), least of four families",
            f"{ours_s:.3f} s",
            f"lm-eval, batch size 1: {theirs_s:.3f} s{least.automatic}",
            least.ratio,
            at_least(task.asked),
        )
    for number, who in enumerate(("tourney", "lm-eval")):
        began = [each[number] for each in starts]
        told = "; ".join(
            f"{what} {max(each[what] for each in began):.1f} s" for what in ("starting", "loading")
        )
        yield stated(f"{size.name}: {who}, apart from the above", told, 0.0)
