"""Encode contexts and texts as tokens, and split long ones into windows that fit the weights."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import starmap
from typing import Final, NamedTuple

from transformers import PreTrainedTokenizerBase


class TokenPair(NamedTuple):
    """The tokens of a context and of the text after it; a token across the border is the text's.

    Every text token has a token before it: the context is empty only if there is no text.
    """

    context_ids: tuple[int, ...]
    text_ids: tuple[int, ...]
    is_marked: bool  # the first token is a start token


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase, pairs: Iterable[tuple[str, str]]
) -> list[TokenPair]:
    """Return the tokens of contexts and of the texts after them.

    Context and text are tokenized together, as an entrant would read them. Spaces between the two
    belong to the text, since most tokenizers join them to the next word. `_with_start_token` adds
    the only special token.
    """
    encode = cache(partial(_encode, tokenizer))  # the choices of a question share its context
    encoded = []
    for context, text in starmap(_move_spaces, pairs):
        whole = encode(context + text)
        encoded.append(_with_start_token(tokenizer, whole, n_common(encode(context), whole)))
    return encoded


def encode_as_tokenizer(
    tokenizer: PreTrainedTokenizerBase,
    passages: Iterable[tuple[str, str, bool]],
    *,
    adds_special: bool = True,
) -> list[TokenPair]:
    """Return the tokens of contexts and of the texts after them, as the tokenizer begins a text.

    So does lm-evaluation-harness 0.4.13 unless it is told to add a BOS token: the special tokens
    are those that the tokenizer adds by itself, whether BOS or none. An empty context is the BOS
    or EOS token; a text that rolls, which the third value says, keeps its own BOS token behind it.
    If the tokenizer adds none, a context has those that are written in it, as by a chat template.
    """
    plain = cache(partial(_encode, tokenizer))
    own = cache(partial(own_tokens, tokenizer))
    encode = own if adds_special else plain
    prefix = tokenizer.bos_token_id
    prefix = tokenizer.eos_token_id if prefix is None else prefix
    pairs = []
    for passage, following, rolls in passages:
        context, text = _move_spaces(passage, following)
        n_context = 1
        if context or prefix is None:
            whole = encode(context + text)
            n_context = max(1, n_common(encode(context), whole))
        elif rolls:
            whole = (prefix, *own(text))
        else:
            whole = plain(text)
            whole = whole if whole[:1] == (prefix,) else (prefix, *whole)
        pairs.append(TokenPair(whole[:n_context], whole[n_context:], is_marked=False))
    return pairs


def own_tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Return a text's tokens with those that the tokenizer adds, unless the text begins so."""
    start = tokenizer.bos_token or tokenizer.eos_token
    return _encode(tokenizer, text, adds_special=not (start and text.startswith(str(start))))


def n_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens of the common prefix."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _move_spaces(context: str, text: str) -> tuple[str, str]:
    bare = context.rstrip()
    return bare, context[len(bare) :] + text


def _encode(
    tokenizer: PreTrainedTokenizerBase, text: str, *, adds_special: bool = False
) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=adds_special)["input_ids"])


def _with_start_token(
    tokenizer: PreTrainedTokenizerBase, whole: tuple[int, ...], n_context: int
) -> TokenPair:
    """Add a start token if necessary, and split after n_context tokens.

    The start token is the tokenizer's BOS or, if it has none and there is no context, its EOS,
    which separates texts. It is not added twice. Without one, the first token gets no likelihood.

    If the context's tokens change when the text follows, n_context counts the unchanged ones; the
    others belong to the text, since one of them spans the border.
    """
    start = tokenizer.bos_token_id
    if start is None and not n_context:
        start = tokenizer.eos_token_id
    is_marked = start is not None and whole[:1] == (start,)
    if start is None or is_marked:
        n_context = max(1, n_context)
        return TokenPair(whole[:n_context], whole[n_context:], is_marked)
    return TokenPair((start, *whole[:n_context]), whole[n_context:], is_marked=True)


DEFAULT_WINDOW: Final = 2048  # tokens per window if the weights set no limit


class Window(NamedTuple):
    """Tokens of one forward pass; the first n_context of them are context, the others targets."""

    ids: tuple[int, ...]
    n_context: int  # at least 1

    @property
    def inputs(self) -> tuple[int, ...]:
        """The input tokens: all but the last, which is only a target."""
        return self.ids[:-1]

    @property
    def targets(self) -> tuple[int, ...]:
        """The tokens whose likelihood is computed."""
        return self.ids[self.n_context :]


def split_windows(
    pair: TokenPair, n_positions: int | None, *, rolls: bool
) -> tuple[Window, ...] | None:
    """Split a pair into windows of at most n_positions inputs; None if the text is too long.

    Each token of the text is a target of exactly one window. If context and text are too long
    together, the beginning of the context is left out, except the start token. A text that is too
    long by itself is split if `rolls`: see `_rolling_windows`.
    """
    limit = n_positions
    if limit is None:
        limit = DEFAULT_WINDOW if rolls else len(pair.context_ids) + len(pair.text_ids)
    if len(pair.text_ids) > limit and not rolls:
        return None
    n_kept = max(limit + 1 - len(pair.text_ids), limit if len(pair.text_ids) > limit else 1)
    context_ids = _truncate_context(pair, n_kept)
    ids = (*context_ids, *pair.text_ids)
    return tuple(_rolling_windows(ids, len(context_ids), limit))


def _truncate_context(pair: TokenPair, n_kept: int) -> tuple[int, ...]:
    if len(pair.context_ids) <= n_kept:
        return pair.context_ids
    n_marks = int(pair.is_marked)
    n_last = n_kept - n_marks
    return pair.context_ids[:n_marks] + pair.context_ids[len(pair.context_ids) - n_last :]


def _rolling_windows(ids: tuple[int, ...], n_context: int, limit: int) -> Iterator[Window]:
    """Yield windows of `limit` inputs in which each token after the context is a target once.

    Each window starts with the token before its first target, and the last one reaches back as far
    as it can, as in loglikelihood_rolling of EleutherAI's lm-evaluation-harness.
    """
    end = min(limit + 1, len(ids))
    yield Window(ids[:end], n_context)
    while end < len(ids):
        done, end = end, min(end + limit, len(ids))
        begin = end - limit - 1
        yield Window(ids[begin:end], done - begin)
