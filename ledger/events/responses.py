"""What entrants answered."""

from typing import Literal

from pydantic import Field

from ledger.events.fact import Fact
from ledger.identity import Digest, EntrantId, PromptId, digest_of

FinishReason = Literal["stop", "length"]


def response_key(
    entrant_digest: Digest, prompt_text: str, *, seed: int | None, sample: int
) -> Digest:
    """Name a response by exactly what determines it; a greedy one has no seed.

    The chat template is among the files of the entrant's digest, so the digest and the raw
    text together fix the text as rendered. The gold answer is no part: correcting one asks
    the judge again, never the entrant.
    """
    return digest_of([entrant_digest, prompt_text, seed, sample])


class ResponseGenerated(Fact):
    """An entrant answered a prompt."""

    type: Literal["ResponseGenerated"] = "ResponseGenerated"
    response_key: Digest
    entrant_id: EntrantId
    prompt_id: PromptId
    seed: int = Field(ge=0, lt=2**32)
    sample: int = Field(ge=0)
    text: str
    finish_reason: FinishReason
    n_prompt_tokens: int = Field(ge=0)
    n_generated_tokens: int = Field(ge=0)
    elapsed_s: float = Field(ge=0)  # wall time of the batch it was made in

    @property
    def natural_key(self) -> tuple[str, ...]:
        """One response per key: asking again would give the same text."""
        return (self.response_key,)


class ResponseFailed(Fact):
    """An entrant could not answer a prompt."""

    type: Literal["ResponseFailed"] = "ResponseFailed"
    response_key: Digest
    entrant_id: EntrantId
    prompt_id: PromptId
    reason: Literal["prompt_too_long", "out_of_memory", "not_finite"]
    detail: str

    @property
    def natural_key(self) -> tuple[str, ...]:
        """One failure per key and reason."""
        return (self.response_key, self.reason)
