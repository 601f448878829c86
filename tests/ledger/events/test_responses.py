"""What names a response."""

import pytest

from ledger.events.responses import ResponseFailed, ResponseGenerated, response_key
from ledger.identity import EntrantId, PromptId, digest_of
from tests.support.builders.events import key

BASE = EntrantId("base")
P1 = PromptId("p1")


def test_a_response_key_is_the_digest_of_what_determines_it() -> None:
    """Pinned: a resumed run finds its responses by keys that an older tourney made."""
    named = response_key(key("entrant"), "Why?", seed=7, sample=1)

    assert named == digest_of([key("entrant"), "Why?", 7, 1])


@pytest.mark.parametrize(
    "other",
    [
        response_key(key("other"), "Why?", seed=7, sample=1),
        response_key(key("entrant"), "Why? ", seed=7, sample=1),
        response_key(key("entrant"), "Why?", seed=8, sample=1),
        response_key(key("entrant"), "Why?", seed=7, sample=2),
    ],
)
def test_whatever_determines_a_response_is_in_its_key(other: str) -> None:
    """A key too coarse would hand an answer to a prompt that it does not answer."""
    named = response_key(key("entrant"), "Why?", seed=7, sample=1)

    assert other != named


def test_a_response_is_known_by_its_key_alone() -> None:
    """Generated again it is the same fact, and other text under its key is a conflict."""
    event = ResponseGenerated(
        response_key=key("response"),
        entrant_id=BASE,
        prompt_id=P1,
        seed=0,
        sample=0,
        text="Because.",
        finish_reason="stop",
        n_prompt_tokens=2,
        n_generated_tokens=2,
        elapsed_s=0.1,
    )

    assert event.natural_key == (key("response"),)


def test_a_failed_response_is_known_by_key_and_reason() -> None:
    """Out of memory today, too long tomorrow: both happened."""
    event = ResponseFailed(
        response_key=key("response"),
        entrant_id=BASE,
        prompt_id=P1,
        reason="out_of_memory",
        detail="",
    )

    assert event.natural_key == (key("response"), "out_of_memory")
