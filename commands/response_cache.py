"""The caches that tap's scripts keep of responses: a file for each entrant, a response a line."""

import msgspec

from commands.validation import place_and_fault
from ledger.events.values import Count, Probability
from ledger.identity import EntrantId, PromptId


class CachedDiagnostics(msgspec.Struct, frozen=True):
    """How a cached response was made; of plain weights no head drafted, and no jury sat."""

    n_tokens_generated: Count  # the end of the text included
    seed: int | None = None
    draft_head_idx: Count | None = None
    bypass_jury: bool | None = None


class CachedResponse(msgspec.Struct, frozen=True):
    """A line of a cache; what else it says is not read."""

    entrant_id: EntrantId
    prompt_id: PromptId
    response_text: str
    p_correct: Probability | None
    diagnostics: CachedDiagnostics


class Unusable(Exception):
    """A line cannot be used; the message says why."""


def decoded(line: bytes) -> CachedResponse:
    """Return what a line says.

    Raises:
        Unusable: It is no JSON, or a field is missing or wrong.
    """
    try:
        return msgspec.json.decode(line, type=CachedResponse)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise Unusable(f"{place}: {why}" if place else why) from error
    except ValueError as error:  # a line that was cut off, above all
        raise Unusable(f"it is no JSON: {error}") from error
