"""Encode continuations as tokens: plain contexts, and chats shown by the weights' template."""

from collections.abc import Hashable, Sequence
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from commands.backends.weights.chat import require_chat, require_options, show_chat
from commands.backends.weights.windows import TokenPair, encode_as_tokenizer, encode_pairs
from commands.ports import Continuation


def encoding_key(continuation: Continuation) -> Hashable:
    """Return what continuations that are encoded together have in common."""
    chosen = continuation.entrant.chosen
    chat = (chosen.system, chosen.template_arguments) if continuation.messages else None
    return continuation.bos, chat


def token_pairs(
    tokenizer: PreTrainedTokenizerBase, continuations: Sequence[Continuation]
) -> list[TokenPair]:
    """Return the tokens of continuations that have one `encoding_key`.

    Raises:
        WeightsError: There is no chat template for chats, or it fails.
    """
    first = continuations[0]
    if first.messages:
        contexts = _shown(tokenizer, continuations)
    else:
        contexts = [each.context for each in continuations]
    pairs = zip(contexts, continuations, strict=True)
    if first.bos and not first.messages:
        return encode_pairs(tokenizer, ((context, each.text) for context, each in pairs))
    passages = ((context, each.text, each.rolls) for context, each in pairs)
    return encode_as_tokenizer(tokenizer, passages, adds_special=not first.bos)


def _shown(tokenizer: PreTrainedTokenizerBase, continuations: Sequence[Continuation]) -> list[str]:
    """Return the chats of continuations as text; choices share theirs."""
    entrant = continuations[0].entrant
    folder = Path(entrant.weights)
    require_chat(tokenizer, folder)
    require_options(tokenizer, folder, entrant.chosen)
    chats = dict.fromkeys(each.messages for each in continuations)
    shown = {chat: show_chat(tokenizer, chat, entrant.chosen) for chat in chats}
    return [shown[each.messages] for each in continuations]
