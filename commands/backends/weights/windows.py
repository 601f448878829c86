"""What weights with so many positions can read of a text: all of it, or window by window."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from transformers import PreTrainedTokenizerBase


class TokenPair(NamedTuple):
    """The tokens of a context and of the text behind it; every one that holds text is the text's.

    Whatever is weighed has a token before it: the context is empty only where there is no text.
    """

    context_ids: tuple[int, ...]
    text_ids: tuple[int, ...]
    is_marked: bool  # the first token marks the beginning of a text


def encode_pairs(
    tokenizer: PreTrainedTokenizerBase, pairs: Iterable[tuple[str, str]]
) -> list[TokenPair]:
    """Return the tokens of contexts and of the texts behind them.

    Both are cut as one text, as an entrant would read and write them, and spaces between the two
    go to the text, where most tokenizers join them to a word. The tokenizer adds nothing by itself:
    see `_with_start_token` for what stands at the beginning.
    """
    seams = [_move_spaces(*pair) for pair in pairs]
    texts = [*dict.fromkeys(each for context, text in seams for each in (context, context + text))]
    ids = dict(zip(texts, _encode(tokenizer, texts), strict=True))
    return [
        _with_start_token(
            tokenizer, ids[context + text], n_common(ids[context], ids[context + text])
        )
        for context, text in seams
    ]


def n_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens by which two texts begin alike."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _move_spaces(context: str, text: str) -> tuple[str, str]:
    bare = context.rstrip()
    return bare, context[len(bare) :] + text


def _encode(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[tuple[int, ...]]:
    return [*map(tuple, tokenizer(texts, add_special_tokens=False)["input_ids"])] if texts else []


def _with_start_token(
    tokenizer: PreTrainedTokenizerBase, whole: tuple[int, ...], n_context: int
) -> TokenPair:
    """Let a text begin with a mark, and cut it behind n_context tokens.

    The mark is the tokenizer's BOS; where it has none, and there is no context, its EOS, which
    stands between texts. It is not written twice. Without any, the first token is not weighed.

    Where the context's own tokens do not begin the whole, n_context is of those that do. The others
    are weighed too: one of them at least holds the text's beginning and the context's end.
    """
    mark = tokenizer.bos_token_id
    if mark is None and not n_context:
        mark = tokenizer.eos_token_id
    is_marked = mark is not None and whole[:1] == (mark,)
    if mark is None or is_marked:
        n_context = max(1, n_context)
        return TokenPair(whole[:n_context], whole[n_context:], is_marked)
    return TokenPair((mark, *whole[:n_context]), whole[n_context:], is_marked=True)


DEFAULT_WINDOW: Final = 2048  # tokens, to roll by where the weights set no limit


class Window(NamedTuple):
    """Tokens that are read in one go, and how many of them stand before those that are weighed."""

    ids: tuple[int, ...]
    n_context: int  # 1 at least

    @property
    def inputs(self) -> tuple[int, ...]:
        """What is read: the last token is only weighed."""
        return self.ids[:-1]

    @property
    def targets(self) -> tuple[int, ...]:
        """What is weighed."""
        return self.ids[self.n_context :]


class TextWindows(NamedTuple):
    """The windows of a text: each token of it is weighed in one."""

    windows: tuple[Window, ...]
    n_dropped: int  # tokens of the context that are not read


def split_windows(pair: TokenPair, n_positions: int | None, *, rolls: bool) -> TextWindows | None:
    """Cut a pair into what is read in one go, n_positions tokens at most; None if it is too long.

    Where context and text are too long together, the context's beginning is left out, but not the
    mark that a text begins with. A text that is too long by itself is read window by window if it
    rolls: see `_rolling_windows`.
    """
    limit = n_positions
    if limit is None:
        limit = DEFAULT_WINDOW if rolls else len(pair.context_ids) + len(pair.text_ids)
    if len(pair.text_ids) > limit and not rolls:
        return None
    n_kept = max(limit + 1 - len(pair.text_ids), limit if len(pair.text_ids) > limit else 1)
    context_ids = _truncate_context(pair, n_kept)
    ids = (*context_ids, *pair.text_ids)
    n_dropped = len(pair.context_ids) - len(context_ids)
    return TextWindows((*_rolling_windows(ids, len(context_ids), limit),), n_dropped)


def _truncate_context(pair: TokenPair, n_kept: int) -> tuple[int, ...]:
    if len(pair.context_ids) <= n_kept:
        return pair.context_ids
    n_marks = int(pair.is_marked)
    n_last = n_kept - n_marks
    return pair.context_ids[:n_marks] + pair.context_ids[len(pair.context_ids) - n_last :]


def _rolling_windows(ids: tuple[int, ...], n_context: int, limit: int) -> Iterator[Window]:
    """Yield windows of `limit` inputs that weigh each token behind the context once.

    Each begins with the token before its own, and the last reaches back as far as it may: so
    loglikelihood_rolling of EleutherAI's lm-evaluation-harness cuts documents.
    """
    end = min(limit + 1, len(ids))
    yield Window(ids[:end], n_context)
    while end < len(ids):
        done, end = end, min(end + limit, len(ids))
        begin = end - limit - 1
        yield Window(ids[begin:end], done - begin)
