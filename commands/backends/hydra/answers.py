"""Answer one batch of prompts with a loaded Hydra."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, cast

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.hydra._context import pad_prompts
from commands.backends.hydra._net import BlockInputs, Route
from commands.backends.hydra.decoding import HydraDecoding, decode
from commands.backends.hydra.rows import HydraRow, start_row
from commands.backends.hydra.weights import CORRECT, WRONG, LoadedHydra
from commands.backends.weights.chat import encode, encode_prompt
from commands.backends.weights.decoding import (
    Ending,
    PromptRow,
    generated_text,
    make_ending,
    not_finite,
)
from commands.ports import GeneratedText, GenerationFailure
from ledger.events.registration import Hydra

BEFORE, AFTER = " Answer: ", "\nTask: Reply A (correct) or B (wrong): "
_N_GROWTH: Final = 8  # tokens by which a text is expected to grow as part of another


class ResponseState(NamedTuple):
    """A response, and the state in which it was begun."""

    prompt_text: str
    response_text: str
    first_state: torch.Tensor  # (D,)


class _CorrectnessPrompt(NamedTuple):
    """What the head is asked of a response."""

    ids: tuple[int, ...]
    first_state: torch.Tensor  # (D,)


def p_correct(loaded: LoadedHydra, testimonies: Sequence[ResponseState]) -> list[float | None]:
    """Return for each response the probability that it is correct, NaN where logits are no numbers.

    None where the question has more tokens than the weights have positions: how many a response
    has when it is read again is not known before.
    """
    limit = math.inf if loaded.n_positions is None else loaded.n_positions
    questions = [_correctness_prompt(loaded.tokenizer, each) for each in testimonies]
    rates = iter(
        _correctness_probabilities(loaded, [each for each in questions if len(each.ids) <= limit])
    )
    return [next(rates) if len(each.ids) <= limit else None for each in questions]


def _correctness_prompt(
    tokenizer: PreTrainedTokenizerBase, testimony: ResponseState
) -> _CorrectnessPrompt:
    text = f"{testimony.prompt_text}{BEFORE}{testimony.response_text}{AFTER}"
    return _CorrectnessPrompt(encode_prompt(tokenizer, text), testimony.first_state)


@torch.inference_mode()
def _correctness_probabilities(
    loaded: LoadedHydra, questions: Sequence[_CorrectnessPrompt]
) -> list[float]:
    """Return p = sigmoid(z_A - z_B): the softmax over both letters."""
    if not questions:
        return []
    net = loaded.net
    ids, positions, mask, _ = pad_prompts([each.ids for each in questions], net.device)
    place = BlockInputs(positions, mask[:, None], None)
    states = net.trunk_states(ids, place)  # (B, S, D)
    states[:, -1] += torch.stack([each.first_state for each in questions])
    route = Route([loaded.n_heads] * len(questions), net.device)
    logits = net.logits(net.head_states(states, route, place)[:, -1]).float()  # (B, V)
    correct, wrong = (encode(loaded.tokenizer, letter)[0] for letter in (CORRECT, WRONG))
    return torch.sigmoid(logits[:, correct] - logits[:, wrong]).tolist()


def n_correctness_tokens(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return for how many tokens a question about a response needs room, beside those of both."""
    return len(encode(tokenizer, BEFORE + AFTER)) + _N_GROWTH


Answer = GeneratedText | GenerationFailure


def answer_as_hydra(loaded: LoadedHydra, prompts: Sequence[PromptRow]) -> tuple[Answer, ...]:
    """Generate an answer to each prompt; all are of one decoding.

    Raises:
        torch.OutOfMemoryError: The batch is too large for the device.
    """
    started = time.perf_counter()
    heads = cast("Hydra", prompts[0].task.entrant.hydra)  # or no Hydra would have been loaded
    rows = [
        start_row(
            prompt.prompt_ids,
            seed=prompt.task.seed,
            n_heads=loaded.n_heads,
            bypass_jury=heads.bypass_jury,
        )
        for prompt in prompts
    ]
    ending = make_ending(loaded.tokenizer, loaded.end_ids, prompts[0])
    decode(loaded.net, rows, _decoding(prompts[0], heads, ending))
    answers = tuple(_answer(loaded, ending, *each) for each in zip(prompts, rows, strict=True))
    if heads.uncertainty:
        answers = _with_p_correct(loaded, prompts, rows, answers)
    return _with_elapsed_time(answers, time.perf_counter() - started)


def _decoding(prompt: PromptRow, heads: Hydra, ending: Ending) -> HydraDecoding:
    return HydraDecoding(
        temperature=prompt.task.entrant.temperature,
        max_new_tokens=prompt.task.entrant.max_new_tokens,
        ending=ending,
        gamma=heads.gamma,
        beta=heads.beta,
        top_p=prompt.task.options.top_p,
    )


def _answer(loaded: LoadedHydra, ending: Ending, prompt: PromptRow, row: HydraRow) -> Answer:
    if row.is_broken:
        return not_finite(prompt, len(row.tokens))
    text = generated_text(prompt, row.tokens, loaded.tokenizer, ending, elapsed_s=0.0)
    return replace(text, diagnostics=row.diagnostics())


def _with_elapsed_time(answers: Sequence[Answer], elapsed_s: float) -> tuple[Answer, ...]:
    """Say how long the batch took, which is known when nothing is left to do for it."""
    return tuple(
        replace(answer, elapsed_s=elapsed_s) if isinstance(answer, GeneratedText) else answer
        for answer in answers
    )


def _with_p_correct(
    loaded: LoadedHydra,
    prompts: Sequence[PromptRow],
    rows: Sequence[HydraRow],
    answers: Sequence[Answer],
) -> tuple[Answer, ...]:
    """Let the uncertainty head say of each answer how probably it is correct."""
    testimonies = [
        ResponseState(prompt.task.prompt_text, answer.text, row.first_state)
        for prompt, row, answer in zip(prompts, rows, answers, strict=True)
        if isinstance(answer, GeneratedText) and row.first_state is not None
    ]
    rates = iter(p_correct(loaded, testimonies))
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
            f"the prompt, the answer and the question if it is right are more tokens than the"
            f" {loaded.n_positions} positions of the weights"
        )
        return GenerationFailure(answer.response_key, "prompt_too_long", detail)
    if math.isnan(p):
        detail = (
            f"the logits of the uncertainty head are not finite, in {prompt.task.entrant.dtype}"
        )
        return GenerationFailure(answer.response_key, "not_finite", detail)
    return replace(answer, p_correct=p)
