"""Rows that leave their batch are decoded as they would be alone, as by transformers' own loop."""

from collections.abc import Iterator
from typing import cast

import pytest
from transformers import LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from commands.backends.loads import BatchQueue
from commands.backends.weights.answers import DecodingRules, Ending, PromptRow
from commands.backends.weights.decoding import decode
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import SamplingSettings
from ledger.identity import digest_of
from tests.support.weights.families import family_model
from tests.support.weights.tiny import tiny

N_NEW = 14
END_IDS = frozenset({3, *range(50, 150, 10)})
WIDEST = 37


PROMPTS = [
    PromptRow(
        digest_of(n),
        tuple((7 * n * (m + 3) + 5 * m + 5) % 260 for m in range(1 + 5 * n % 23)),
        N_NEW,
        seed=n,
    )
    for n in range(8)
]


def decoded(
    model: PreTrainedModel,
    n_rows: int,
    how: SamplingSettings,
    *,
    may_leave: bool = True,
    n_prompts: int = len(PROMPTS),
) -> list[list[int]]:
    """Return the tokens of each prompt."""
    tokenizer = cast("PreTrainedTokenizerBase", None)
    loaded = LoadedWeights(model, tokenizer, model.device, END_IDS, None, may_leave=may_leave)
    queue = BatchQueue(PROMPTS[:n_prompts], lambda prompt: prompt.n_tokens, n_rows * WIDEST)
    return [
        tokens for _, tokens in sorted(said(loaded, queue, DecodingRules(Ending(END_IDS), how)))
    ]


def said(
    loaded: LoadedWeights, queue: BatchQueue[PromptRow], rules: DecodingRules
) -> Iterator[tuple[int, list[int]]]:
    """Yield each prompt's seed and tokens."""
    while batch := queue.take():
        for each in decode(loaded, rules, batch):
            yield each.row.seed, each.tokens


@pytest.fixture(scope="module")
def llama() -> PreTrainedModel:
    """Give random Llama weights."""
    return tiny(LlamaForCausalLM, seed=4)


HOWS = [
    *(
        pytest.param(each, marks=pytest.mark.nightly)
        for each in (
            SamplingSettings(),
            SamplingSettings(1.0),
            SamplingSettings(repetition_penalty=1.3),
        )
    ),
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


@pytest.mark.parametrize("family", ["gemma3_text", "mamba"])
def test_rows_with_windows_and_without_positions_may_leave(family: str) -> None:
    """What a layer may see is a matter of columns, which rows share; or of `generate`."""
    model, how = family_model(family), SamplingSettings(1.0)

    together, alone = (decoded(model, n_rows, how, n_prompts=4) for n_rows in (4, 1))
    assert together == alone
