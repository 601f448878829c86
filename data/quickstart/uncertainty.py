"""Train the uncertainty head: LoRA that predicts whether a response is correct.

It is trained with the Brier loss on responses of the tournament's Hydras, with the same question
and first state as in use. A third of the prompts is held out to measure it.
"""

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import mse_loss
from transformers import AutoTokenizer, Olmo2ForCausalLM, PreTrainedTokenizerBase

from chat import IGNORED, Example
from commands.backends.hydra.answers import AFTER, BEFORE
from commands.backends.hydra.weights import CORRECT, WRONG
from commands.backends.weights.chat import encode, encode_prompt
from fitting import Batch, Course, fit
from heads import head_output, trunk_states
from lora import adapt, inner_weights, load_merged, save_lora
from projections.tournament.matches import prompt_seed
from prompts import Prompt
from testimonies import RatedResponse, gather_responses

COURSE = Course("uncertainty", rate=5e-3, n_epochs=6)
SAMPLES = range(1, 4)  # of each Hydra's responses; 0 is the tournament's own


def train_uncertainty(prompts: Sequence[Prompt], out: Path, *, seed: int) -> None:
    """Train and save the uncertainty head of the weights and shards under `out`."""
    torch.manual_seed(seed)
    weights = out / "weights"
    base, tokenizer = load_merged(weights), AutoTokenizer.from_pretrained(weights)
    shown = [prompt for prompt in prompts if not is_held_out(prompt)]
    examples = [
        example_of(base, tokenizer, each) for each in gather_responses(out, shown, samples=SAMPLES)
    ]
    adapted = adapt(load_merged(weights))
    letters = encode(tokenizer, CORRECT)[0], encode(tokenizer, WRONG)[0]
    loss_of = partial(brier_loss, inner_weights(adapted), letters)
    epochs = repeat(examples, COURSE.n_epochs)
    fit(adapted, loss_of, epochs, course=COURSE, rng=np.random.default_rng(seed))
    save_lora(adapted, out / "hydra" / "uncertainty", weights)


def is_held_out(prompt: Prompt) -> bool:
    """Return whether a prompt is held out: one in three, by the hash of its id."""
    return prompt_seed(prompt.prompt_id) % 3 == 0


def example_of(
    base: Olmo2ForCausalLM, tokenizer: PreTrainedTokenizerBase, rated: RatedResponse
) -> Example:
    """Make an example whose only label, 1 or 0, is where the head predicts A or B."""
    prompt, response, first_state = rated.response
    ids = torch.tensor(encode_prompt(tokenizer, f"{prompt}{BEFORE}{response}{AFTER}"))
    states = trunk_states(base, ids)  # (T, D)
    states[-1] += first_state
    labels = torch.full_like(ids, IGNORED)
    labels[-1] = rated.is_correct
    return Example(states, labels)


def brier_loss(weights: Olmo2ForCausalLM, letters: tuple[int, int], batch: Batch) -> torch.Tensor:
    """Return the mean of (p - is_correct)^2, Brier 1950, where p = sigmoid(z_A - z_B)."""
    said = head_output(weights, batch)
    correct, wrong = letters
    p = torch.sigmoid(said.logits[:, correct] - said.logits[:, wrong])  # (B,)
    return mse_loss(p, said.labels.float())
