"""The letters by which an uncertainty head says whether a response is correct."""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from commands.backends.hf_chat import encode
from commands.errors import WeightsError

CORRECT, WRONG = "A", "B"


def require_letters(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Require that each letter is one token, and not that of the other.

    Were both of them unknown, say, their logits would be one, and every response as good as any.

    Raises:
        WeightsError: They are not.
    """
    correct, wrong = (encode(tokenizer, letter) for letter in (CORRECT, WRONG))
    if len(correct) == len(wrong) == 1 and correct != wrong:
        return
    why = (
        f"the tokenizer makes {[*correct]} of {CORRECT} and {[*wrong]} of {WRONG}: an uncertainty"
        " head answers by a single token each, and they must differ"
    )
    raise WeightsError(
        folder, why, "leave uncertainty out, or put the tokenizer there that it was trained with"
    )
