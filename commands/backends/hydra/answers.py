"""Generate answers to prompts with a Hydra, and the probability that each is correct."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, cast

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.hydra._context import pad_prompts
from commands.backends.hydra._net import BlockInputs, Route
from commands.backends.hydra.decoding import HydraDecoding, decode
from commands.backends.hydra.rows import HydraRow, start_row
from commands.backends.hydra.weights import CORRECT, WRONG, LoadedHydra
from commands.backends.weights.answers import (
    Ending,
    PromptRow,
    generated_text,
    make_ending,
    not_finite,
)
from commands.backends.weights.chat import encode, encode_prompt
from commands.ports import GeneratedText, GenerationFailure
from ledger.events.registration import Hydra

BEFORE, AFTER = " Answer: ", "\nTask: Reply A (correct) or B (wrong): "
_N_GROWTH: Final = 8  # extra tokens that a text may need inside another


class ResponseState(NamedTuple):
    """A response, and the head's state at its first token."""

    prompt_text: str
    response_text: str
    first_state: torch.Tensor  # (D,)


def p_correct(loaded: LoadedHydra, responses: Sequence[ResponseState]) -> list[float | None]:
    """Return each response's probability of being correct, NaN if the logits are not finite.

    None if the question has more tokens than the weights have positions, which is not known
    before the response is encoded again.
    """
    limit = math.inf if loaded.n_positions is None else loaded.n_positions
    texts = (f"{each.prompt_text}{BEFORE}{each.response_text}{AFTER}" for each in responses)
    questions = [encode_prompt(loaded.tokenizer, text) for text in texts]
    fitting = [n for n, ids in enumerate(questions) if len(ids) <= limit]
    rates: list[float | None] = [None] * len(questions)
    found = _correctness_probabilities(
        loaded, [questions[n] for n in fitting], [responses[n].first_state for n in fitting]
    )
    for n, rate in zip(fitting, found, strict=True):
        rates[n] = rate
    return rates


@torch.inference_mode()
def _correctness_probabilities(
    loaded: LoadedHydra, questions: Sequence[tuple[int, ...]], first_states: list[torch.Tensor]
) -> list[float]:
    """Return p = sigmoid(z_A - z_B): the softmax over both letters."""
    if not questions:
        return []
    net = loaded.net
    ids, positions, mask, _ = pad_prompts(questions, net.device)
    place = BlockInputs(positions, mask[:, None], None)
    states = net.trunk_states(ids, place)  # (B, S, D)
    states[:, -1] += torch.stack(first_states)
    route = Route([loaded.n_heads] * len(questions), net.device)
    logits = net.logits(net.head_states(states, route, place)[:, -1]).float()  # (B, V)
    correct, wrong = (encode(loaded.tokenizer, letter)[0] for letter in (CORRECT, WRONG))
    return torch.sigmoid(logits[:, correct] - logits[:, wrong]).tolist()


def n_correctness_tokens(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return how many tokens the question needs, besides those of prompt and response."""
    return len(encode(tokenizer, BEFORE + AFTER)) + _N_GROWTH


Answer = GeneratedText | GenerationFailure


def answer_as_hydra(loaded: LoadedHydra, prompts: Sequence[PromptRow]) -> tuple[Answer, ...]:
    """Answer a batch of prompts, which share their decoding.

    Raises:
        torch.OutOfMemoryError: The prompts are too many for the device.
    """
    started_s = time.perf_counter()
    task = prompts[0].task
    heads = cast("Hydra", task.entrant.hydra)  # a Hydra was loaded
    decoding = HydraDecoding(
        temperature=task.entrant.temperature,
        max_new_tokens=task.entrant.max_new_tokens,
        ending=make_ending(loaded.tokenizer, loaded.end_ids, prompts[0]),
        beta=heads.beta,
        top_p=task.options.top_p,
    )
    rows = [
        start_row(
            prompt.prompt_ids,
            seed=prompt.task.seed,
            n_heads=loaded.n_heads,
            bypass_jury=heads.bypass_jury,
        )
        for prompt in prompts
    ]
    decode(loaded.net, rows, decoding)
    answers = tuple(map(partial(_answer, loaded, decoding.ending), prompts, rows))
    if heads.uncertainty:
        answers = _with_p_correct(loaded, prompts, rows, answers)
    elapsed_s = time.perf_counter() - started_s
    return tuple(
        replace(answer, elapsed_s=elapsed_s) if isinstance(answer, GeneratedText) else answer
        for answer in answers
    )


def _answer(loaded: LoadedHydra, ending: Ending, prompt: PromptRow, row: HydraRow) -> Answer:
    if row.is_broken:
        return not_finite(prompt, len(row.tokens))
    text = generated_text(prompt, row.tokens, loaded.tokenizer, ending, elapsed_s=0.0)
    return replace(text, diagnostics=row.diagnostics())


def _with_p_correct(
    loaded: LoadedHydra,
    prompts: Sequence[PromptRow],
    rows: Sequence[HydraRow],
    answers: Sequence[Answer],
) -> tuple[Answer, ...]:
    """Return the answers with the uncertainty head's probability that each is correct."""
    responses = [
        ResponseState(prompt.task.prompt_text, answer.text, row.first_state)
        for prompt, row, answer in zip(prompts, rows, answers, strict=True)
        if isinstance(answer, GeneratedText) and row.first_state is not None
    ]
    rates = iter(p_correct(loaded, responses))
    return tuple(
        _with_probability(loaded, prompt, answer, next(rates))
        if isinstance(answer, GeneratedText)
        else answer
        for prompt, answer in zip(prompts, answers, strict=True)
    )


def _with_probability(
    loaded: LoadedHydra, prompt: PromptRow, answer: GeneratedText, p: float | None
) -> Answer:
    if p is None:
        detail = (
            f"the prompt, the answer and the question whether it is correct have more tokens than"
            f" the {loaded.n_positions} positions of the weights"
        )
        return GenerationFailure(answer.response_key, "prompt_too_long", detail)
    if math.isnan(p):
        detail = (
            f"the logits of the uncertainty head are not finite, in {prompt.task.entrant.dtype}"
        )
        return GenerationFailure(answer.response_key, "not_finite", detail)
    return replace(answer, p_correct=p)
