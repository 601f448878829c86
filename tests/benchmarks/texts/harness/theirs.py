"""lm-evaluation-harness at work: it is told what to measure line by line, and answers in JSON.

This is run by the Python of an environment of its own, and imports nothing of the project's.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

N_POSITIONS = 512


def main(weights: str, folder: str) -> None:
    """Load weights and the items of a folder, and do what the input asks."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whoever prints writes no answer
    torch.set_num_threads(1)
    lm = HFLM(
        pretrained=weights, device="cpu", dtype="float32", batch_size=8, max_length=N_POSITIONS
    )
    paths = {kind: Path(folder) / f"{kind}.jsonl" for kind in ("questions", "documents")}
    requests = {kind: _requests(kind, _rows(path)) for kind, path in paths.items()}
    for line in sys.stdin:
        kind, _, batch_size = line.strip().partition(" ")
        answer = (
            _seconds(lm, kind, requests[kind], int(batch_size))
            if batch_size
            else _facts(lm, requests, paths)
        )
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _requests(kind: str, rows: list[dict[str, Any]]) -> list[Any]:
    arguments: list[tuple[str, ...]]
    if kind == "documents":
        request_type, arguments = "loglikelihood_rolling", [(row["text"],) for row in rows]
    else:
        request_type = "loglikelihood"
        arguments = [(row["context"], f" {choice}") for row in rows for choice in row["choices"]]
    return [
        Instance(request_type=request_type, doc={}, arguments=each, idx=n)
        for n, each in enumerate(arguments)
    ]


def _weighed(lm: Any, kind: str, requests: list[Any]) -> list[float]:  # noqa: ANN401  # theirs
    if kind == "documents":
        return [float(each) for each in lm.loglikelihood_rolling(requests, disable_tqdm=True)]
    return [float(each) for each, _ in lm.loglikelihood(requests, disable_tqdm=True)]


def _seconds(lm: Any, kind: str, requests: list[Any], batch_size: int) -> float:  # noqa: ANN401  # theirs
    lm.batch_size_per_gpu = batch_size
    began = time.perf_counter()
    _weighed(lm, kind, requests)
    return time.perf_counter() - began


def _facts(lm: Any, requests: dict[str, list[Any]], paths: dict[str, Path]) -> dict[str, Any]:  # noqa: ANN401  # theirs
    tasks = [
        _task(
            "questions",
            paths["questions"],
            "acc",
            output_type="multiple_choice",
            doc_to_text="{{context}}",
            doc_to_choice="choices",
            doc_to_target="gold",
        ),
        _task(
            "documents",
            paths["documents"],
            "bits_per_byte",
            output_type="loglikelihood_rolling",
            doc_to_text="",
            doc_to_target="{{text}}",
        ),
    ]
    metrics = simple_evaluate(model=lm, tasks=tasks, bootstrap_iters=0)["results"]
    return {
        **{kind: _weighed(lm, kind, each) for kind, each in requests.items()},
        "acc": metrics["questions"]["acc,none"],
        "bits_per_byte": metrics["documents"]["bits_per_byte,none"],
        "versions": {name: version(name) for name in ("lm-eval", "torch", "transformers")},
    }


def _task(name: str, path: Path, metric: str, **settings: str) -> dict[str, Any]:
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}},
        "test_split": "test",
        "metric_list": [{"metric": metric}],
        **settings,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
