"""Answers to prompts: where they end, how they are decoded, and what they are to be."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import transformers

from commands.backends.weights.chat import decode_text
from commands.backends.weights.sampling import BROKEN, SamplingSettings
from commands.ports import GeneratedText, GenerationFailure, GenerationTask

_N_SILENT: Final = 8  # extra tokens beyond a stop text's bytes: special tokens decode to nothing


class StopTexts(NamedTuple):
    """Texts that end an answer as soon as one is complete."""

    texts: tuple[str, ...]
    read: Callable[[Sequence[int]], str]  # decodes tokens

    def is_complete(self, tokens: Sequence[int]) -> bool:
        """Return whether the last of these tokens completes one of the texts.

        This runs after every token, so it decodes only the tail, and everything only if the tail
        contains a text: a tail that starts inside a character can decode differently.
        """
        n_bytes = max(len(text.encode()) for text in self.texts)
        return self._is_in(tokens[-n_bytes - _N_SILENT :]) and self._is_in(tokens)

    def _is_in(self, tokens: Sequence[int]) -> bool:
        whole = self.read(tokens)
        return any(text in whole for text in self.texts)

    def cut(self, whole: str) -> str:
        """Return the part of a text before the first of the texts."""
        places = [whole.index(text) for text in self.texts if text in whole]
        return whole[: min(places, default=len(whole))]


class Ending(NamedTuple):
    """What ends an answer, other than its length."""

    end_ids: frozenset[int]
    stop: StopTexts | None = None

    def is_at(self, tokens: Sequence[int]) -> bool:
        """Return whether the last of an answer's tokens ends it."""
        return tokens[-1] in self.end_ids or bool(self.stop and self.stop.is_complete(tokens))

    def cut(self, text: str) -> str:
        """Return the part of an answer's text before a stop text."""
        return self.stop.cut(text) if self.stop else text


class DecodingRules(NamedTuple):
    """What the rows of a batch share."""

    ending: Ending
    max_new_tokens: int
    how: SamplingSettings = SamplingSettings()


class PromptTokens(Protocol):
    """A prompt to decode, of which there may be several kinds."""

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """Its tokens, one at least."""

    @property
    def n_tokens(self) -> int:
        """The tokens of the prompt, of the longest answer, and of what follows it."""

    @property
    def seed(self) -> int:
        """What its random numbers depend on."""


Row = TypeVar("Row", bound=PromptTokens)


@dataclass
class Decoded(Generic[Row]):
    """A row, and the new tokens that it has so far."""

    row: Row
    tokens: list[int] = field(default_factory=list)
    is_broken: bool = False  # the logits of the next token were not finite
    started_s: float = field(default_factory=time.perf_counter)
    elapsed_s: float = 0.0  # until it ended

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the prompt and of the answer so far."""
        return len(self.row.prompt_ids) + len(self.tokens)

    def extend(self, token: int, rules: DecodingRules) -> bool:
        """Add a token, or BROKEN; return whether the row has ended."""
        if token == BROKEN:
            self.is_broken = True
        else:
            self.tokens.append(token)
        if (
            not self.is_broken
            and len(self.tokens) < rules.max_new_tokens
            and not rules.ending.is_at(self.tokens)
        ):
            return False
        self.elapsed_s = time.perf_counter() - self.started_s
        return True


class PromptRow(NamedTuple):
    """A task and its prompt's tokens, both truncated alike."""

    task: GenerationTask
    prompt_ids: tuple[int, ...]
    n_afterwards: int = 0  # tokens of the question whether the answer is correct
    is_truncated: bool = False

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the prompt, of the longest answer, and of the question about it."""
        return len(self.prompt_ids) + self.task.entrant.max_new_tokens + self.n_afterwards

    @property
    def seed(self) -> int:
        """What its random numbers depend on."""
        return self.task.seed


def make_ending(
    tokenizer: transformers.PreTrainedTokenizerBase, end_ids: frozenset[int], row: PromptRow
) -> Ending:
    """Return what ends the answers of a row's batch.

    A stop text that is a special token becomes an end token, since decoding drops it.
    """
    texts = row.task.options.stop
    if not texts:
        return Ending(end_ids)
    added = tokenizer.added_tokens_decoder.items()
    special = frozenset(token for token, shown in added if shown.content in texts)
    return Ending(end_ids | special, StopTexts(texts, partial(decode_text, tokenizer)))


def generated_text(
    row: PromptRow,
    tokens: list[int],
    tokenizer: transformers.PreTrainedTokenizerBase,
    ending: Ending,
    *,
    elapsed_s: float,
) -> GeneratedText:
    """Return a row's answer from its new tokens, one at least.

    The tokens include the end; the text does not, and may end inside the last token.
    """
    has_ended = tokens[-1] in ending.end_ids
    whole = decode_text(tokenizer, tokens[:-1] if has_ended else tokens)
    text = ending.cut(whole)
    return GeneratedText(
        response_key=row.task.response_key,
        text=text,
        finish_reason="stop" if has_ended or text != whole else "length",
        n_prompt_tokens=len(row.prompt_ids),
        n_generated_tokens=len(tokens),
        elapsed_s=elapsed_s,
        is_truncated=row.is_truncated,
        prompt_ids=row.prompt_ids,
        generated_ids=tuple(tokens),
    )


def not_finite(row: PromptRow, n_tokens: int) -> GenerationFailure:
    """Return the failure of a row whose logits were not finite after n_tokens."""
    detail = f"the logits of new token {n_tokens + 1} are not finite, in {row.task.entrant.dtype}"
    return GenerationFailure(row.task.response_key, "not_finite", detail)
