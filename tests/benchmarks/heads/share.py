"""The share of a sampled step that is spent in choosing tokens, where rows are really decoded."""

from collections.abc import Callable
from typing import Final, TypeVar, cast

import torch
from transformers import Olmo2ForCausalLM, PreTrainedTokenizerBase

from commands.backends.weights.answers import DecodingRules, Ending
from commands.backends.weights.loaded import LoadedWeights, TextModel
from commands.backends.weights.slots import Slots
from commands.backends.weights.warping import SamplingSettings
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import seconds_on
from tests.benchmarks.heads.plain import PlainWork, Prompt
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, stated

N_STEPS: Final = 8  # of a round: the random numbers of so many are drawn at once

Made = TypeVar("Made")


def sampling_share(bench: Bench, model: Olmo2ForCausalLM, n_rows: int) -> Row:
    """Return how much of a step at so many rows is spent in choosing tokens."""
    n_new, n_tokens = (bench.n_rounds + 1) * N_STEPS + 1, model.config.vocab_size
    work = PlainWork(n_rows, n_rows, n_new + 1, temperature=1.0)
    rules = DecodingRules(Ending(frozenset()), work.n_new, SamplingSettings(work.temperature))
    tokenizer = cast("PreTrainedTokenizerBase", None)  # nothing is encoded
    loaded = LoadedWeights(
        cast("TextModel", model), tokenizer, model.device, frozenset(), n_positions=None
    )
    prompts = work.prompts(n_tokens)
    slots = Slots[Prompt](loaded, rules)
    slots._read(prompts)
    rounds = interleaved(bench.n_rounds, {"share": lambda: _share(slots, model.device)})
    share = rounds.median("share")
    name = f"share of a step in sampling, {n_rows} rows, {n_tokens:,} tokens of vocabulary"
    return stated(name, f"{share:.1%}", share, at_most(0.05))


@torch.inference_mode()
def _share(slots: Slots[Prompt], device: torch.device) -> float:
    """Take some steps as `Slots` does; return the share of choosing in them."""
    in_model = in_choice = 0.0
    for _ in range(N_STEPS):
        ids = slots._ids
        logits, took_s = _timed(slots._next_logits, device)
        in_model += took_s
        slots._ids, took_s = _timed(lambda: slots._chosen(logits, ids, slots._noise), device)  # noqa: B023  # called at once
        in_choice += took_s
        slots._extended(0)
    return in_choice / (in_choice + in_model)


def _timed(act: Callable[[], Made], device: torch.device) -> tuple[Made, float]:
    made: list[Made] = []

    def acted() -> None:
        made.append(act())
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    took_s = seconds_on(device, acted)
    return made[0], took_s
