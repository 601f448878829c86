"""lm-evaluation-harness measured: it is told what to evaluate line by line, and answers in JSON.

This is run by the Python of an environment of its own, and imports nothing of the project's.
"""

import json
import sys
import time
from typing import Any

import torch
from lm_eval.evaluator import evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager, get_task_dict


def main(weights: str, folder: str) -> None:
    """Load weights, and evaluate the tasks of a folder as the input asks."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whoever prints writes no answer
    torch.set_num_threads(1)
    began_s = time.process_time()  # all before was starting up
    lm = HFLM(pretrained=weights, device="cpu", dtype="float32")
    loaded_s = time.process_time()
    _answer(answers, starting=began_s, loading=loaded_s - began_s)
    manager = TaskManager(include_path=folder, include_defaults=False)
    for line in sys.stdin:
        task, batch_size = line.split()
        lm.batch_size_per_gpu = batch_size if batch_size == "auto" else int(batch_size)
        lm.batch_sizes = {}  # what it found out before
        began_s = time.process_time()
        tasks = get_task_dict([task], manager)
        read_s = time.process_time()
        evaluate(lm=lm, task_dict=tasks, bootstrap_iters=1_000)  # its default is 100,000
        _answer(answers, reading=read_s - began_s, evaluating=time.process_time() - read_s)


def _answer(answers: Any, **seconds: float) -> None:  # noqa: ANN401  # a text stream
    answers.write(f"{json.dumps(seconds)}\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
