"""The share of a sampled step that is spent in choosing tokens, where rows are really decoded."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar, cast

import torch
from transformers import DynamicCache, Olmo2ForCausalLM, PreTrainedTokenizerBase

from commands.backends.weights.answers import PromptRow
from commands.backends.weights.decoding import next_logits
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import RowNoise, SamplingSettings, choose
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import seconds_on
from tests.benchmarks.heads.plain import PlainWork
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, stated

N_STEPS: Final = 8  # of a round: the random numbers of so many are drawn at once

Made = TypeVar("Made")


def sampling_share(bench: Bench, model: Olmo2ForCausalLM, n_rows: int) -> Row:
    """Return how much of a step at so many rows is spent in choosing tokens."""
    n_tokens = model.config.vocab_size
    tokenizer = cast("PreTrainedTokenizerBase", None)  # nothing is encoded
    loaded = LoadedWeights(model, tokenizer, model.device, frozenset(), n_positions=None)
    prompts = PlainWork(n_rows, n_rows, N_STEPS, temperature=1.0).prompts(n_tokens)
    rounds = interleaved(bench.n_rounds, {"share": lambda: _share(loaded, prompts)})
    share = rounds.median("share")
    name = f"share of a step in sampling, {n_rows} rows, {n_tokens:,} tokens of vocabulary"
    return stated(name, f"{share:.1%}", share, at_most(0.05))


@torch.inference_mode()
def _share(loaded: LoadedWeights, prompts: Sequence[PromptRow]) -> float:
    """Read prompts, and take some steps; return the share of choosing in these."""
    ids = torch.tensor([prompt.prompt_ids for prompt in prompts], device=loaded.device)
    noise = RowNoise([prompt.seed for prompt in prompts], loaded.device)
    cache = DynamicCache()
    next_logits(loaded, ids[:, :-1], cache)
    in_model = in_choice = 0.0
    for _ in range(N_STEPS):
        logits, took_s = _timed(partial(next_logits, loaded, ids, cache), loaded.device)
        in_model += took_s
        choice, took_s = _timed(
            partial(choose, logits, ids, SamplingSettings(1.0), noise), loaded.device
        )
        in_choice += took_s
        ids = torch.cat([ids, choice.tokens[:, None]], dim=1)
    return in_choice / (in_choice + in_model)


def _timed(act: Callable[[], Made], device: torch.device) -> tuple[Made, float]:
    made: list[Made] = []

    def acted() -> None:
        made.append(act())
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    took_s = seconds_on(device, acted)
    return made[0], took_s
