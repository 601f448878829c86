"""Generate answers to prompts with a Hydra, and the probability that each is correct."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, cast

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.hydra._context import pad_prompts
from commands.backends.hydra._net import BlockInputs, Route
from commands.backends.hydra.decoding import HydraDecoding, decode_in_turn
from commands.backends.hydra.rows import HydraRow, start_row
from commands.backends.hydra.weights import CORRECT, WRONG, LoadedHydra
from commands.backends.weights.answers import (
    Ending,
    PromptRow,
    generated_text,
    make_ending,
    not_finite,
)
from commands.backends.weights.batching import BatchQueue
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


class _Open(NamedTuple):
    """A prompt that is being answered."""

    prompt: PromptRow
    row: HydraRow
    started_s: float


class HydraSlots:
    """Answers prompts that share their decoding, as `RefilledSlots`."""

    def __init__(self, loaded: LoadedHydra, alike: PromptRow) -> None:
        """Take the decoding settings of any of the prompts."""
        task = alike.task
        self._loaded, self._heads = loaded, cast("Hydra", task.entrant.hydra)  # a Hydra was loaded
        self._decoding = HydraDecoding(
            temperature=task.entrant.temperature,
            max_new_tokens=task.entrant.max_new_tokens,
            ending=make_ending(loaded.tokenizer, loaded.end_ids, alike),
            beta=self._heads.beta,
            top_p=task.options.top_p,
        )
        self._open: dict[int, _Open] = {}  # by the identity of a row

    @property
    def unfinished(self) -> Sequence[PromptRow]:
        """The prompts without an answer."""
        return [each.prompt for each in self._open.values()]

    def decode(
        self, first: Sequence[PromptRow], queue: BatchQueue[PromptRow]
    ) -> Iterator[tuple[Answer, ...]]:
        """Answer the first prompts, and then those that wait.

        Raises:
            torch.OutOfMemoryError: The prompts are too many for the device.
        """

        def take(left: Sequence[HydraRow]) -> list[HydraRow]:
            return self._start(queue.take_beside([self._open[id(row)].prompt for row in left]))

        rows = self._start(first)
        for ended in decode_in_turn(self._loaded.net, rows, self._decoding, take):
            yield self._answers([self._open[id(row)] for row in ended])
            for row in ended:
                del self._open[id(row)]

    def _start(self, prompts: Sequence[PromptRow]) -> list[HydraRow]:
        now_s = time.perf_counter()
        rows = [
            start_row(
                prompt.prompt_ids,
                seed=prompt.task.seed,
                n_heads=self._loaded.n_heads,
                bypass_jury=self._heads.bypass_jury,
            )
            for prompt in prompts
        ]
        started = zip(prompts, rows, strict=True)
        self._open |= {id(row): _Open(prompt, row, now_s) for prompt, row in started}
        return rows

    def _answers(self, ended: Sequence[_Open]) -> tuple[Answer, ...]:
        loaded, ending = self._loaded, self._decoding.ending
        answers = tuple(_answer(loaded, ending, each.prompt, each.row) for each in ended)
        if self._heads.uncertainty:
            answers = _with_p_correct(loaded, ended, answers)
        now_s = time.perf_counter()
        return tuple(
            replace(answer, elapsed_s=now_s - each.started_s)
            if isinstance(answer, GeneratedText)
            else answer
            for answer, each in zip(answers, ended, strict=True)
        )


def _answer(loaded: LoadedHydra, ending: Ending, prompt: PromptRow, row: HydraRow) -> Answer:
    if row.is_broken:
        return not_finite(prompt, len(row.tokens))
    text = generated_text(prompt, row.tokens, loaded.tokenizer, ending, elapsed_s=0.0)
    return replace(text, diagnostics=row.diagnostics())


def _with_p_correct(
    loaded: LoadedHydra, ended: Sequence[_Open], answers: Sequence[Answer]
) -> tuple[Answer, ...]:
    """Return the answers with the uncertainty head's probability that each is correct."""
    responses = [
        ResponseState(each.prompt.task.prompt_text, answer.text, each.row.first_state)
        for each, answer in zip(ended, answers, strict=True)
        if isinstance(answer, GeneratedText) and each.row.first_state is not None
    ]
    rates = iter(p_correct(loaded, responses))
    return tuple(
        _with_probability(loaded, each.prompt, answer, next(rates))
        if isinstance(answer, GeneratedText)
        else answer
        for each, answer in zip(ended, answers, strict=True)
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
