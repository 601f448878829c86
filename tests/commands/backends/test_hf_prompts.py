"""A prompt is put as it is asked for, and shortened only where that is allowed."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from commands.backends.huggingface.generator import encode_text, prompt_row, truncate_prompt
from commands.backends.weights.chat import encode_prompt
from commands.backends.weights.decoding import PromptRow
from commands.backends.weights.loaded import LoadedWeights
from commands.ports import GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from ledger.identity import digest_of
from tests.builders import entrant as entrant_named

CPU = torch.device("cpu")
BEGIN, QUESTION = "<|endoftext|><|user|>\n", " Which dose?<|im_end|>\n<|assistant|>\n"
LONG = "A patient asks. " * 20 + "Which dose?"

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


@pytest.fixture
def row(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> Callable[..., PromptRow]:
    """Give a builder of rows for weights of so many positions; 12 new tokens are asked for."""

    def build(text: str, n_positions: int | None, **options: object) -> PromptRow:
        loaded = LoadedWeights(_NoModel(), tokenizer, CPU, frozenset(), n_positions)
        (task,) = tasks(entrant(), [text])
        return prompt_row(loaded, replace(task, options=GenerationOptions(**options)))  # type: ignore[arg-type]  # as wanted

    return build


class _NoModel:
    """No weights: nothing is generated here."""

    def generate(self, inputs: torch.Tensor, **settings: object) -> torch.Tensor:
        """Say nothing."""
        raise NotImplementedError(inputs, settings)


def test_a_plain_prompt_is_its_text_behind_the_token_that_begins_texts(
    row: Callable[..., PromptRow], tokenizer: PreTrainedTokenizerFast
) -> None:
    """Base weights know no turns; what they continue is the text alone."""
    plain = row("a dose", None, is_chat=False)

    assert tokenizer.decode(list(plain.prompt_ids)) == "<|endoftext|>a dose"
    assert not plain.is_truncated


def test_the_token_that_begins_texts_is_never_doubled(tokenizer: PreTrainedTokenizerFast) -> None:
    """A prompt that was written with it must not have it twice."""
    assert encode_text(tokenizer, "<|endoftext|>a dose") == encode_text(tokenizer, "a dose")


def test_where_no_token_begins_texts_none_is_made_up(tokenizer: PreTrainedTokenizerFast) -> None:
    """Only an empty text needs something to be followed; harnesses take the end token there."""
    without = copy.deepcopy(tokenizer)
    without.bos_token = None

    assert without.decode(list(encode_text(without, "a dose"))) == "a dose"
    assert encode_text(without, "") == (without.eos_token_id,)


def test_a_chat_loses_the_beginning_of_what_the_user_says(
    row: Callable[..., PromptRow], tokenizer: PreTrainedTokenizerFast
) -> None:
    """The question stands at the end, and the template says whose turn it is."""
    cut = row(LONG, 80, may_truncate=True)

    shown = str(tokenizer.decode(list(cut.prompt_ids)))
    assert shown.startswith(BEGIN)
    assert shown.endswith(QUESTION)
    assert cut.is_truncated
    assert cut.task.prompt_text == shown.removeprefix(BEGIN).partition("<|im_end|>")[0]
    assert LONG.endswith(cut.task.prompt_text)
    assert 80 - 4 < cut.n_tokens <= 80


def test_a_plain_prompt_loses_its_beginning(
    row: Callable[..., PromptRow], tokenizer: PreTrainedTokenizerFast
) -> None:
    """But not the token that begins texts: without it weights babble."""
    cut = row(LONG, 60, may_truncate=True, is_chat=False)

    assert tokenizer.decode(list(cut.prompt_ids)) == f"<|endoftext|>{cut.task.prompt_text}"
    assert LONG.endswith(cut.task.prompt_text)
    assert 60 - 4 < cut.n_tokens <= 60


@pytest.mark.parametrize("options", [{"may_truncate": False}, {"may_truncate": True}])
def test_a_prompt_that_fits_is_left_whole(
    row: Callable[..., PromptRow], tokenizer: PreTrainedTokenizerFast, options: dict[str, object]
) -> None:
    """To the last token."""
    n_tokens = len(encode_prompt(tokenizer, LONG)) + 12

    for n_positions in (n_tokens, None):
        kept = row(LONG, n_positions, **options)
        assert (kept.n_tokens, kept.is_truncated) == (n_tokens, False)


def test_where_not_even_an_empty_text_fits_nothing_is_left_out(
    row: Callable[..., PromptRow],
) -> None:
    """The failure then tells how long the prompt is that was asked."""
    whole = row(LONG, 16, may_truncate=True)

    assert (whole.task.prompt_text, whole.is_truncated) == (LONG, False)
    assert whole.prompt_ids == row(LONG, 16).prompt_ids


def test_a_prompt_is_not_shortened_unasked(row: Callable[..., PromptRow]) -> None:
    """A response to half a prompt would be judged as one to the whole."""
    assert row(LONG, 80).n_tokens > 80


@given(st.text("ab c", max_size=60), st.integers(12, 60))
def test_whatever_the_tokens_are_what_is_left_fits(text: str, limit: int) -> None:
    """Leaving a letter out can add a token, here where "ab" is one."""

    def encoded(rest: str) -> tuple[int, ...]:
        return tuple(range(len(rest.replace("ab", "x")) + 1))

    whole = PromptRow(_task(text), encoded(text))

    left = truncate_prompt(whole, encoded, limit)

    if limit < 12 + 1:
        assert left == whole
    else:
        assert left.n_tokens <= limit
        assert text.endswith(left.task.prompt_text)
        assert left.is_truncated == (left.task.prompt_text != text)


def _task(text: str) -> GenerationTask:
    return GenerationTask(digest_of(text), entrant_named("base", max_new_tokens=12), text, 0)
