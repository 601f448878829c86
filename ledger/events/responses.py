"""What entrants answered."""

from typing import Literal

from ledger.events.fact import Fact
from ledger.events.limits import Count, Duration, Seed32
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


class ResponseGenerated(Fact, frozen=True):
    """An entrant answered a prompt."""

    response_key: Digest
    entrant_id: EntrantId
    prompt_id: PromptId
    seed: Seed32
    sample: Count
    text: str
    finish_reason: FinishReason
    n_prompt_tokens: Count
    n_generated_tokens: Count
    elapsed_s: Duration  # wall time of the batch it was made in

    @property
    def natural_key(self) -> tuple[str, ...]:
        """One response per key: asking again would give the same text."""
        return (self.response_key,)


class ResponseFailed(Fact, frozen=True):
    """An entrant could not answer a prompt."""

    response_key: Digest
    entrant_id: EntrantId
    prompt_id: PromptId
    reason: Literal["prompt_too_long", "out_of_memory", "not_finite"]
    detail: str

    @property
    def natural_key(self) -> tuple[str, ...]:
        """One failure per key and reason."""
        return (self.response_key, self.reason)
