"""What a Hydra is asked for: answers, the probability that each is correct, and log-likelihoods.

Log-likelihoods are computed as it samples at temperature 1: P_d is the product of the other heads'
experts or, without a jury, head d's own distribution.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.hydra.decoding import HydraRow, HydraSteps
from commands.backends.hydra.net import HydraNet, Route, TokenBlock
from commands.backends.hydra.poe import product_of_experts
from commands.backends.hydra.weights import CORRECT, WRONG
from commands.backends.weights.answers import DecodingRules, PromptRow, as_answer
from commands.backends.weights.chat import encode, encode_prompt
from commands.backends.weights.decoding import follow
from commands.backends.weights.loaded import LoadedWeights, padded
from commands.ports import GeneratedText, GenerationFailure
from ledger.events.registration import Hydra

BEFORE, AFTER = " Answer: ", "\nTask: Reply A (correct) or B (wrong): "
_N_GROWTH: Final = 8  # extra tokens that a text may need inside another

Answer = GeneratedText | GenerationFailure


class ResponseState(NamedTuple):
    """A response, and the head's state at its first token."""

    prompt_text: str
    response_text: str
    first_state: torch.Tensor  # (D,)


def n_correctness_tokens(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return how many tokens the question needs, besides those of prompt and response."""
    return len(encode(tokenizer, BEFORE + AFTER)) + _N_GROWTH


def answer_as_hydra(
    loaded: LoadedWeights,
    heads: Hydra,
    rules: DecodingRules,
    dtype: str | None,
    prompts: Sequence[PromptRow],
) -> list[Answer]:
    """Answer a batch of prompts; with an uncertainty head, its time is that of the rating, too.

    Raises:
        torch.OutOfMemoryError: The prompts are too many for the device.
    """
    started_s = time.perf_counter()
    net = loaded.model
    rows = [
        HydraRow.start(prompt, net.n_heads, bypass_jury=heads.bypass_jury) for prompt in prompts
    ]
    follow(HydraSteps(net, rows, rules.how, heads.beta), rows, rules.ending)
    answers = [as_answer(row, loaded.tokenizer, rules.ending, dtype=dtype) for row in rows]
    if heads.uncertainty:
        answers = _rated(loaded, dtype, rows, answers)
    elapsed_s = time.perf_counter() - started_s
    return [
        replace(answer, elapsed_s=elapsed_s, diagnostics=row.diagnostics())
        if isinstance(answer, GeneratedText)
        else answer
        for answer, row in zip(answers, rows, strict=True)
    ]


def _rated(
    loaded: LoadedWeights,
    dtype: str | None,
    rows: Sequence[HydraRow],
    answers: Sequence[Answer],
) -> list[Answer]:
    """Return the answers with the uncertainty head's probability that each is correct."""
    responses = [
        ResponseState(row.row.text, answer.text, row.first_state)
        for row, answer in zip(rows, answers, strict=True)
        if isinstance(answer, GeneratedText) and row.first_state is not None
    ]
    rates = iter(p_correct(loaded, responses))
    return [
        _with_probability(loaded, dtype, answer, next(rates))
        if isinstance(answer, GeneratedText)
        else answer
        for answer in answers
    ]


def _with_probability(
    loaded: LoadedWeights, dtype: str | None, answer: GeneratedText, p: float | None
) -> Answer:
    if p is None:
        detail = (
            f"the prompt, the answer and the question whether it is correct have more tokens than"
            f" the {loaded.n_positions} positions of the weights"
        )
        return GenerationFailure(answer.response_key, "prompt_too_long", detail)
    if math.isnan(p):
        detail = f"the logits of the uncertainty head are not finite, in {dtype}"
        return GenerationFailure(answer.response_key, "not_finite", detail)
    return replace(answer, p_correct=p)


@torch.inference_mode()
def p_correct(loaded: LoadedWeights, responses: Sequence[ResponseState]) -> list[float | None]:
    """Return each response's probability of being correct, NaN if the logits are not finite.

    It is p = sigmoid(z_A - z_B), the softmax over both letters. None if the question has more
    tokens than the weights have positions, which is not known before the response is encoded again.
    """
    net, limit = loaded.model, loaded.n_positions
    texts = (
        f"{response.prompt_text}{BEFORE}{response.response_text}{AFTER}" for response in responses
    )
    asked = [encode_prompt(loaded.tokenizer, text) for text in texts]
    fitting = [n for n, question in enumerate(asked) if limit is None or len(question) <= limit]
    rates: list[float | None] = [None] * len(asked)
    if not fitting:
        return rates
    ids, mask = padded([asked[n] for n in fitting], net.device)
    block = TokenBlock.behind(mask.bool(), ids.shape[1])
    states = net.trunk_states(ids, block, None)  # (B, S, D)
    states[:, -1] += torch.stack([responses[n].first_state for n in fitting])
    route = Route([net.n_heads] * len(fitting), net.device)  # the head behind those that answer
    logits = net.logits(net.head_states(states, route, block, None)[:, -1]).float()  # (B, V)
    correct, wrong = (encode(loaded.tokenizer, letter)[0] for letter in (CORRECT, WRONG))
    found = torch.sigmoid(logits[:, correct] - logits[:, wrong]).tolist()
    for n, rate in zip(fitting, found, strict=True):
        rates[n] = rate
    return rates


class HydraHeads:
    """All heads that may draft, as `Heads`."""

    def __init__(self, net: HydraNet, hydra: Hydra) -> None:
        """Take a net, and how its heads decide."""
        self._net, self._beta, self.device = net, hydra.beta, net.device
        self._is_alone = hydra.bypass_jury or net.n_heads == 1
        self.n_logits = net.n_heads * net.lm_head.out_features

    def states(self, ids: torch.Tensor, n_last: int) -> torch.Tensor:
        """Return (H, R, n_last, D) states."""
        n_rows, n_columns = ids.shape
        block = TokenBlock.behind(torch.ones_like(ids).bool(), n_columns)
        route = Route.every_head(self._net.n_heads, n_rows, self.device)
        states = self._net.head_states(
            self._net.trunk_states(ids, block, None), route, block, None
        )[:, -n_last:]
        return states.view(self._net.n_heads, n_rows, n_last, -1)

    def log_p(self, states: torch.Tensor) -> torch.Tensor:
        """Return log P_d for each head d that may draft."""
        logits = self._net.logits(states)  # (H, m, V)
        if self._is_alone:
            return logits.float().log_softmax(dim=-1)
        juries = [torch.cat([logits[:d], logits[d + 1 :]]) for d in range(len(logits))]
        return torch.stack(
            [product_of_experts(jury, temperature=1.0, beta=self._beta) for jury in juries]
        )
