"""lm-evaluation-harness on task files: prints metrics and filtered answers as JSON.

This is run by the Python of an environment of its own, and imports nothing of the project's.
"""

import json
import sys

import torch
from lm_eval import simple_evaluate  # type: ignore[import-not-found]  # installed elsewhere
from lm_eval.tasks import TaskManager  # type: ignore[import-not-found]  # likewise


def main(weights: str, folder: str, settings: str, *tasks: str) -> None:
    """Evaluate weights at their own defaults but for settings in JSON."""
    told, sys.stdout = sys.stdout, sys.stderr  # whoever prints writes no answer
    torch.set_num_threads(1)
    manager = TaskManager(include_path=folder, include_defaults=False)
    found = simple_evaluate(
        model="hf",
        model_args={"pretrained": weights, "dtype": "float32"},
        tasks=[*tasks],
        batch_size=8,
        device="cpu",
        bootstrap_iters=0,
        task_manager=manager,
        **json.loads(settings),
    )
    answers = {
        name: [[each["doc_id"], each["filter"], each["filtered_resps"]] for each in samples]
        for name, samples in found["samples"].items()
        if samples and isinstance(samples[0]["filtered_resps"][0], str)
    }
    results = {name: dict(each) for name, each in found["results"].items()}
    json.dump(
        {
            "results": results,
            "groups": found.get("groups", {}),
            "answers": answers,
        },
        told,
        default=str,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
