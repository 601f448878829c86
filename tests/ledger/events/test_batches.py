"""What names a batch, and what names each step of it."""

import pytest

from ledger.events.judging import batch_key
from ledger.identity import StreamId, digest_of
from tests.batches import ended, not_created, planned, sent
from tests.builders import STREAM, key

QUERIES = (key("one"), key("two"))


def test_a_batch_key_is_the_digest_of_its_tournament_number_and_queries() -> None:
    """Pinned: a rerun looks for the batch that was planned, by this name."""
    named = batch_key(STREAM, 3, QUERIES)

    assert named == digest_of(["main", 3, [*QUERIES]])


@pytest.mark.parametrize(
    "other",
    [
        batch_key(StreamId("other"), 1, QUERIES),
        batch_key(STREAM, 2, QUERIES),
        batch_key(STREAM, 1, QUERIES[::-1]),
        batch_key(STREAM, 1, QUERIES[:1]),
    ],
)
def test_no_two_plans_share_a_batch_key(other: str) -> None:
    """What failed as a whole is sent again as another batch, with its own fate."""
    named = batch_key(STREAM, 1, QUERIES)

    assert other != named


def test_every_step_of_a_batch_is_one_fact() -> None:
    """A rerun that takes a step again must find that it was taken."""
    plan = planned(*QUERIES)
    steps = [sent(plan.batch_key), not_created(plan.batch_key), ended(plan.batch_key)]

    keys = {step.natural_key for step in steps}

    assert keys == {plan.natural_key} == {(batch_key(STREAM, 1, QUERIES),)}
