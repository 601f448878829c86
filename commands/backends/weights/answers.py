"""Answers to prompts: what is asked for, where an answer ends, and what it is to be."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import transformers

from commands.backends.weights.chat import decode_text
from commands.backends.weights.sampling import BROKEN, SamplingSettings
from commands.ports import GeneratedText, GenerationFailure
from ledger.identity import Digest

_N_SILENT: Final = 8  # extra tokens beyond a stop text's bytes: special tokens decode to nothing


class Ending(NamedTuple):
    """What ends an answer, other than its length: an end token, or a text that is complete."""

    end_ids: frozenset[int]
    texts: tuple[str, ...] = ()
    read: Callable[[Sequence[int]], str] = str  # decodes tokens, if there are texts

    def is_at(self, tokens: Sequence[int]) -> bool:
        """Return whether the last of an answer's tokens ends it.

        This runs after every token, so it decodes only the tail, and everything only if the tail
        contains a text: a tail that starts inside a character can decode differently.
        """
        if tokens[-1] in self.end_ids:
            return True
        n_bytes = max((len(text.encode()) for text in self.texts), default=0)
        tail = tokens[-n_bytes - _N_SILENT :]
        return bool(self.texts) and self._is_in(tail) and self._is_in(tokens)

    def _is_in(self, tokens: Sequence[int]) -> bool:
        whole = self.read(tokens)
        return any(text in whole for text in self.texts)

    def cut(self, text: str) -> str:
        """Return the part of an answer's text before the first stop text."""
        places = [text.index(stop) for stop in self.texts if stop in text]
        return text[: min(places, default=len(text))]


def make_ending(
    tokenizer: transformers.PreTrainedTokenizerBase,
    end_ids: frozenset[int],
    texts: tuple[str, ...] = (),
) -> Ending:
    """Return what ends answers: end tokens and stop texts.

    A stop text that is a special token becomes an end token, since decoding drops it.
    """
    added = tokenizer.added_tokens_decoder.items() if texts else ()
    special = frozenset(token for token, shown in added if shown.content in texts)
    return Ending(end_ids | special, texts, partial(decode_text, tokenizer))


class DecodingRules(NamedTuple):
    """What the rows of a batch share."""

    ending: Ending
    how: SamplingSettings = SamplingSettings()


class PromptRow(NamedTuple):
    """The tokens of a prompt or of a judge's query, and what is asked for."""

    key: Digest
    prompt_ids: tuple[int, ...]  # one at least
    max_new_tokens: int
    seed: int = 0  # what its random numbers depend on
    text: str = ""  # the prompt, if it is asked afterwards whether the answer is correct
    n_afterwards: int = 0  # tokens of that question
    is_truncated: bool = False

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the prompt, of the longest answer, and of the question about it."""
        return len(self.prompt_ids) + self.max_new_tokens + self.n_afterwards

    @property
    def sizes(self) -> str:
        """Those numbers in words."""
        asked = f" and {self.n_afterwards} to ask if they are right" if self.n_afterwards else ""
        between = "," if asked else " and"
        return (
            f"{len(self.prompt_ids)} prompt tokens{between} {self.max_new_tokens} new ones{asked}"
        )


@dataclass
class Decoded:
    """A row, and the new tokens that it has so far."""

    row: PromptRow
    tokens: list[int] = field(default_factory=list)
    is_broken: bool = False  # the logits of the next token were not finite
    started_s: float = field(default_factory=time.perf_counter)
    elapsed_s: float = 0.0  # until it ended

    def extend(self, token: int, ending: Ending) -> bool:
        """Add a token, or BROKEN; return whether the row has ended."""
        if token == BROKEN:
            self.is_broken = True
        else:
            self.tokens.append(token)
        if (
            not self.is_broken
            and len(self.tokens) < self.row.max_new_tokens
            and not ending.is_at(self.tokens)
        ):
            return False
        self.elapsed_s = time.perf_counter() - self.started_s
        return True


def as_answer(
    decoded: Decoded,
    tokenizer: transformers.PreTrainedTokenizerBase,
    ending: Ending,
    *,
    dtype: str | None,
) -> GeneratedText | GenerationFailure:
    """Return what a row's new tokens say; a failure if its logits were not finite.

    The tokens include the end; the text does not, and may end inside the last token.
    """
    row, tokens = decoded.row, decoded.tokens
    if decoded.is_broken:
        detail = f"the logits of new token {len(tokens) + 1} are not finite, in {dtype}"
        return GenerationFailure(row.key, "not_finite", detail)
    has_ended = tokens[-1] in ending.end_ids
    whole = decode_text(tokenizer, tokens[:-1] if has_ended else tokens)
    text = ending.cut(whole)
    return GeneratedText(
        response_key=row.key,
        text=text,
        finish_reason="stop" if has_ended or text != whole else "length",
        n_prompt_tokens=len(row.prompt_ids),
        n_generated_tokens=len(tokens),
        elapsed_s=decoded.elapsed_s,
        is_truncated=row.is_truncated,
        prompt_ids=row.prompt_ids,
        generated_ids=tuple(tokens),
    )
