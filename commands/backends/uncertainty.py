"""Ask a Hydra's uncertainty head whether a response is correct.

It reads the prompt, the response and a question, and at the last token also the witness: the state
in which the deciding head stood as it began to answer. What it says is A (correct) or B (wrong).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.hf_chat import encode, encode_prompt
from commands.backends.hydra import Place, Route
from commands.backends.hydra_context import padded
from commands.backends.hydra_weights import LoadedHydra

BEFORE, AFTER = " Answer: ", "\nTask: Reply A (correct) or B (wrong): "
CORRECT, WRONG = "A", "B"
N_SLACK = 8  # tokens by which a text may grow where it is cut into tokens as part of another


class Testimony(NamedTuple):
    """A response, and the state in which it was begun."""

    prompt_text: str
    response_text: str
    witness: torch.Tensor  # (D,)


@torch.inference_mode()
def p_correct(loaded: LoadedHydra, testimonies: Sequence[Testimony]) -> list[float]:
    """Return for each response the probability that it is correct, NaN where logits are no numbers.

    p = sigmoid(z_A - z_B): the softmax over both letters.
    """
    if not testimonies:
        return []
    net, tokenizer = loaded.net, loaded.tokenizer
    prompts = [
        encode_prompt(tokenizer, f"{each.prompt_text}{BEFORE}{each.response_text}{AFTER}")
        for each in testimonies
    ]
    ids, positions, mask, _ = padded(prompts, net.device)
    place = Place(positions, mask[:, None], None)
    states = net.trunk_states(ids, place)  # (B, S, D)
    states[:, -1] += torch.stack([each.witness for each in testimonies])
    route = Route([loaded.n_heads] * len(prompts), net.device)
    logits = net.logits(net.head_states(states, route, place)[:, -1]).float()  # (B, V)
    correct, wrong = (encode(tokenizer, letter)[0] for letter in (CORRECT, WRONG))
    return torch.sigmoid(logits[:, correct] - logits[:, wrong]).tolist()


def n_question_tokens(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return how many tokens the question adds to a prompt and its response, at most."""
    return len(encode(tokenizer, BEFORE + AFTER)) + N_SLACK
