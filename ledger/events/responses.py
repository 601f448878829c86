"""Events of generation: entrants' responses and failures."""

from typing import Literal

from msgspec import UNSET, UnsetType

from ledger.events.conversations import Messages
from ledger.events.money import Usage
from ledger.events.values import Count, Dollars, Duration, Fact, Probability, Seed32, Value
from ledger.identity import Digest, EntrantId, PromptId, digest_of

FinishReason = str | None
"""`stop`, or `length` if it was cut off; of servers whatever they say, None if they say nothing."""

ResponseFailureReason = Literal[
    "prompt_too_long",
    "out_of_memory",
    "not_finite",
    "rejected",  # a server does not take the request
    "refused",  # a server's filter kept the answer back
    "not_recorded",  # a file of recorded answers has none to the prompt
]


def response_key(
    entrant_digest: Digest, asked: str | Messages, *, seed: int | None, sample: int
) -> Digest:
    """Identify a response by everything that determines it; without sampling there is no seed.

    What is asked is a text, or a conversation up to here, with the entrant's own answers in it. The
    entrant's digest covers the chat template, so it and the raw text fix the rendered text. The
    gold answer is not included: correcting one asks the judge again, never the entrant.
    """
    return digest_of([entrant_digest, asked, seed, sample])


class Diagnostics(Value, frozen=True, kw_only=True):
    """How a Hydra's heads decided on a response.

    The lists are empty where one head decided alone, and for imported responses.

    All are measured on the product of experts P and on each verifier's most likely token.
    """

    draft_head_idx: Count
    bypass_jury: bool
    # of each generated token, in order
    entropies: tuple[float, ...] = ()  # of P, in nats
    stability_radii: tuple[Count, ...] = ()  # votes that may turn before another token leads
    stability_margins: tuple[float, ...] = ()  # the largest P less the second largest
    # of each draft that was rejected, in order
    resampled_at: tuple[Count, ...] = ()  # index of the generated token that is in its place
    rejected_tokens: tuple[Count, ...] = ()  # the draft's token id
    validity_radii: tuple[Count, ...] = ()  # votes that must turn for the draft to lead
    suppressions: tuple[float, ...] = ()  # P of the draft: the lower, the more suppressed


class Followed(Value, frozen=True):
    """What came before an answer in a conversation: found by it where its text was redacted."""

    answer: Digest  # the key of the answer to the question before
    asked: (
        Digest  # of the prompt's own turns, up to the question; other prompts may share the answer
    )


class ResponseGenerated(Fact, frozen=True):
    """An entrant answered a prompt."""

    # one response per key: generating again would give the same text
    key_fields = ("response_key",)
    response_key: Digest
    entrant_id: EntrantId
    prompt_id: PromptId
    seed: Seed32
    sample: Count
    text: str
    finish_reason: FinishReason
    n_prompt_tokens: Count | None  # None: not known, as of what was imported
    n_generated_tokens: Count | None  # None: a server does not say it, or says what cannot be
    elapsed_s: Duration | None  # wall time of the batch it was made in; None: as above
    p_correct: Probability | None = None  # by a Hydra's uncertainty head, where it is asked
    diagnostics: Diagnostics | None = None  # of a Hydra
    imported_from: Digest | None = None  # SHA-256 of the file; None: generated here
    # not stored where there is none:
    follows: Followed | UnsetType = UNSET  # in a conversation: none where it is the first answer
    reasoning: str | UnsetType = UNSET  # what a server gives beside the answer; no judge sees it
    attention: str | UnsetType = UNSET  # its implementation in weights on this machine, as "sdpa"
    usd: Dollars | UnsetType = UNSET  # what a recorded answer cost elsewhere; on no bill here


class ResponseFailed(Fact, frozen=True):
    """An entrant could not answer a prompt."""

    key_fields = ("response_key", "reason")  # one failure per key and reason
    response_key: Digest
    entrant_id: EntrantId
    prompt_id: PromptId
    reason: ResponseFailureReason
    detail: str
    usage: Usage | None = None  # None: not told, or nothing was generated
