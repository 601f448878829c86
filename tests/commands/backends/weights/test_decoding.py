"""Rows that leave their batch are decoded as they would be alone, as by transformers' own loop."""

from collections.abc import Iterator
from typing import NamedTuple, cast

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from commands.backends.weights.answers import Decoded, DecodingRules, Ending
from commands.backends.weights.batching import BatchQueue
from commands.backends.weights.decoding import decode
from commands.backends.weights.loaded import LoadedWeights, TextModel
from commands.backends.weights.sampling import SamplingSettings
from tests.support.weights.families import family_model
from tests.support.weights.tiny import tiny

N_NEW = 14
END_IDS = frozenset({3, *range(50, 150, 10)})
WIDEST = 37


class Prompt(NamedTuple):
    """A prompt to decode."""

    prompt_ids: tuple[int, ...]
    seed: int
    n_new: int = N_NEW

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the prompt, and of the longest answer."""
        return len(self.prompt_ids) + self.n_new


PROMPTS = [
    Prompt(tuple((7 * n * (m + 3) + 5 * m + 5) % 260 for m in range(1 + 5 * n % 23)), n)
    for n in range(8)
]


class Passes(NamedTuple):
    """The sizes of what a model read, (rows, tokens) each."""

    sizes: list[tuple[int, ...]]

    def watch(self, model: PreTrainedModel) -> PreTrainedModel:
        """Note the sizes of what a model will read."""
        model.register_forward_pre_hook(
            lambda _, args, given: self.sizes.append(
                tuple((args[0] if args else given["input_ids"]).shape)
            ),
            with_kwargs=True,
        )
        return model


def decoded(
    model: PreTrainedModel, n_rows: int, how: SamplingSettings, *, may_leave: bool = True
) -> list[list[int]]:
    """Return the tokens of each prompt."""
    placed = cast("TextModel", model)
    tokenizer = cast("PreTrainedTokenizerBase", None)
    loaded = LoadedWeights(placed, tokenizer, model.device, END_IDS, None, may_leave=may_leave)
    queue = BatchQueue(PROMPTS, lambda prompt: prompt.n_tokens, n_rows * WIDEST)
    rules = DecodingRules(Ending(END_IDS), N_NEW, how)
    ended = [each for group in decode(loaded, queue, rules) for each in group]
    assert all(isinstance(each, Decoded) for each in ended)
    tokens = {each.row.seed: each.tokens for each in ended if isinstance(each, Decoded)}
    return [tokens[n] for n in range(len(PROMPTS))]


@pytest.fixture(scope="module")
def llama() -> PreTrainedModel:
    """Give random Llama weights."""
    return tiny(LlamaForCausalLM, seed=4)


HOWS = [
    SamplingSettings(),
    SamplingSettings(1.0),
    SamplingSettings(repetition_penalty=1.3),
    SamplingSettings(0.9, top_k=40, top_p=0.9, min_p=0.01, repetition_penalty=1.1),
]


@pytest.fixture(scope="module", params=HOWS, ids=str)
def how(request: pytest.FixtureRequest) -> SamplingSettings:
    """Give each way to sample."""
    settings: SamplingSettings = request.param
    return settings


@pytest.fixture(scope="module")
def expected(llama: PreTrainedModel, how: SamplingSettings) -> list[list[int]]:
    """Give what transformers' own loop says, row by row."""
    return decoded(llama, 1, how, may_leave=False)


@pytest.mark.parametrize(
    "n_rows", [3, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 8))]
)
def test_rows_that_leave_are_decoded_as_by_generate(
    llama: PreTrainedModel, how: SamplingSettings, expected: list[list[int]], n_rows: int
) -> None:
    """The same text at every size of a batch, and by transformers' own loop, row by row."""
    assert decoded(llama, n_rows, how) == expected
    assert decoded(llama, n_rows, how, may_leave=False) == expected
    assert len({*map(len, expected)}) > 3  # rows end at different steps


@pytest.mark.parametrize("family", ["gemma3_text", "bloom", "mamba"])
def test_rows_with_windows_and_without_positions_may_leave(family: str) -> None:
    """What a layer may see is a matter of columns, which rows share; or of `generate`."""
    model = family_model(family)

    assert decoded(model, 4, SamplingSettings(1.0)) == decoded(model, 1, SamplingSettings(1.0))


def test_no_row_waits_for_the_longest_of_its_batch() -> None:
    """That is what makes it fast: each step reads the rows that are not over."""
    passes, whole = Passes([]), Passes([])

    tokens = decoded(passes.watch(tiny(LlamaForCausalLM, seed=4)), 4, SamplingSettings())
    decoded(whole.watch(tiny(LlamaForCausalLM, seed=4)), 4, SamplingSettings(), may_leave=False)

    steps = [[rows for rows, n_tokens in each.sizes if n_tokens == 1] for each in (passes, whole)]
    n_first = len(tokens)  # is chosen where the prompt is read
    assert sum(steps[0]) <= sum(map(len, tokens)) - n_first + 1 < sum(steps[1])


def test_a_long_answer_outlasts_many_short_ones(llama: PreTrainedModel) -> None:
    """It is decoded alone at last, as if it had always been."""
    prompts = [Prompt((5, 6, 7), n, 150) for n in range(12)]
    queue = BatchQueue(prompts, lambda _: 153, 4 * 153)
    loaded = LoadedWeights(
        cast("TextModel", llama),
        cast("PreTrainedTokenizerBase", None),
        llama.device,
        END_IDS,
        None,
    )
    rules = DecodingRules(Ending(frozenset(range(0, 270, 30))), 150, SamplingSettings(1.5))

    found = dict(_said(loaded, queue, rules))

    alone = BatchQueue(prompts, lambda _: 153, 1)
    assert found == dict(_said(loaded, alone, rules))
    assert max(map(len, found.values())) > 60


def _said(
    loaded: LoadedWeights, queue: BatchQueue[Prompt], rules: DecodingRules
) -> Iterator[tuple[int, list[int]]]:
    for group in decode(loaded, queue, rules):
        for each in group:
            assert isinstance(each, Decoded)
            yield each.row.seed, each.tokens


def test_a_broken_row_breaks_no_other() -> None:
    """Each row reads its own columns."""
    sound = decoded(tiny(LlamaForCausalLM, seed=4), 4, SamplingSettings())
    model = tiny(LlamaForCausalLM, seed=4)
    poison = PROMPTS[4].prompt_ids[-1]
    model.get_input_embeddings().get_parameter("weight").data[poison] = torch.nan

    found = decoded(model, 4, SamplingSettings())

    is_hit = [
        poison in (*prompt.prompt_ids, *said) for prompt, said in zip(PROMPTS, sound, strict=True)
    ]
    assert found[4] == []
    assert [f for f, hit in zip(found, is_hit, strict=True) if not hit] == [
        s for s, hit in zip(sound, is_hit, strict=True) if not hit
    ]
    assert 0 < sum(is_hit) < len(PROMPTS) - 4
