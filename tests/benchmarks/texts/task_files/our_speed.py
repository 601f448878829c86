"""Task files evaluated as `tourney evaluate` does: the input tells which, JSON how long it took."""

import json
import sys
import time
from pathlib import Path
from typing import TextIO

from commands.backends.wiring import READERS, make_inference_factory
from commands.evaluating.tasks import TaskParameters
from commands.settings.sections import EvaluationOptions
from tests.benchmarks.texts.task_files.ours import GENERATION, Alone, evaluated, planned_files, tiny


def main(weights: str, folder: str) -> None:
    """Load weights, and evaluate the tasks of a folder as the input asks."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whoever prints writes no answer
    began_s = time.process_time()  # all before was starting up
    entrant = tiny(Path(weights))
    inference = make_inference_factory(Alone(GENERATION))(entrant)
    files = {each.stem: each for each in Path(folder).glob("*.yaml")}
    planned = planned_files(inference, [files["arc_easy"]], EvaluationOptions(length=1))
    evaluated(planned, Path(folder) / "loading.db")  # the first sample waits for the weights
    _answer(answers, starting=began_s, loading=time.process_time() - began_s)
    for number, line in enumerate(sys.stdin):
        task = line.split()[0]
        began_s = time.process_time()
        READERS.read_tasks(str(files[task]), Path(), TaskParameters())
        read_s = time.process_time()
        planned = planned_files(inference, [files[task]])  # which reads once more
        evaluated(planned, Path(weights) / f"{number}.db")
        reading_s = read_s - began_s
        _answer(answers, reading=reading_s, evaluating=time.process_time() - read_s - reading_s)


def _answer(answers: TextIO, **seconds: float) -> None:
    answers.write(f"{json.dumps(seconds)}\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
