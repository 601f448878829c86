"""Seeds that follow from what a response is for, so that they need no drawing."""

import hashlib

from ledger.identity import PromptId


def prompt_seed(prompt_id: PromptId, *, base: int = 0, sample: int = 0) -> int:
    """Return the seed of a prompt's response, in [0, 2^32): the same for every entrant.

    Equals the customer's harness for base 0 and sample 0: SHA-256 of the id, modulo 2^32.
    """
    digest = hashlib.sha256(prompt_id.encode()).digest()
    return (int.from_bytes(digest, "big") + base + sample) % 2**32
