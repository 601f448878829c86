"""lm-evaluation-harness on task files: prints metrics, answers and what the weights read, as JSON.

This is run by the Python of an environment of its own, and imports nothing of the project's.
"""

import json
import sys
from typing import Any

import torch
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager


class NotingLM(HFLM):  # type: ignore[misc]  # as above
    """Weights that note the tokens which they read."""

    def __init__(self, weights: str) -> None:
        """Load weights."""
        super().__init__(weights, dtype="float32", device="cpu", batch_size=8)
        self.texts: list[tuple[list[int], int, float]] = []  # with the length of the context
        self.prompts: list[list[int]] = []

    def _loglikelihood_tokens(self, requests: list[Any], **settings: Any) -> list[Any]:  # noqa: ANN401
        found = list(super()._loglikelihood_tokens(requests, **settings))
        for (request, context, text), (log_likelihood, _) in zip(requests, found, strict=True):
            if request is not None:  # else it is a window of a text that rolls
                read = [*context, *text][-(self.max_length + 1) :]
                self.texts.append((read, len(read) - len(text), log_likelihood))
        return found

    def loglikelihood_rolling(self, requests: list[Any], *settings: Any) -> list[float]:  # noqa: ANN401
        """Note texts whole."""
        found = list(super().loglikelihood_rolling(requests, *settings))
        for request, log_likelihood in zip(requests, found, strict=True):
            read = [self.prefix_token_id, *self.tok_encode(request.args[0])]
            self.texts.append((read, 1, log_likelihood))
        return found

    def _model_generate(self, context: torch.Tensor, *given: Any, **settings: Any) -> Any:  # noqa: ANN401
        for row, mask in zip(context, settings["attention_mask"], strict=True):
            self.prompts.append(row[mask.bool()].tolist())
        return super()._model_generate(context, *given, **settings)


def main(weights: str, folder: str, settings: str, *tasks: str) -> None:
    """Evaluate weights at their own defaults but for settings in JSON."""
    told, sys.stdout = sys.stdout, sys.stderr  # whoever prints writes no answer
    torch.set_num_threads(1)
    lm = NotingLM(weights)
    found = simple_evaluate(
        model=lm,
        tasks=[*tasks],
        bootstrap_iters=0,
        task_manager=TaskManager(include_path=folder, include_defaults=False),
        **json.loads(settings),
    )
    answers = {
        name: [
            [each["doc_id"], each["filter"], each["resps"][0][0], each["filtered_resps"][0]]
            for each in samples
        ]
        for name, samples in found["samples"].items()
        if samples and isinstance(samples[0]["filtered_resps"][0], str)
    }
    results = {name: dict(each) for name, each in found["results"].items()}
    told_all = {"results": results, "answers": answers, "texts": lm.texts, "prompts": lm.prompts}
    json.dump(told_all, told, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
