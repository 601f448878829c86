"""Perplexity: weighted by tokens, and never perfect for want of any."""

import math

import numpy as np
import pytest

from commands.ports import Continuation, LikelihoodFailure
from tests.commands.evaluations.examples import Letters, reading


def uniform(passage: Continuation) -> float | LikelihoodFailure:
    """Find each of four letters equally likely."""
    if not passage.text:
        return LikelihoodFailure(passage.key, "empty", "no tokens")
    return -math.log(4) * len(passage.text)


def test_a_uniform_entrant_has_as_much_perplexity_as_letters() -> None:
    """It is the number of equally likely letters."""
    inference, _ = reading(uniform)

    assert Letters("abba", "b")(inference) == pytest.approx(4.0)


def test_the_sum_is_in_nats() -> None:
    """Not the mean once more."""
    inference, _ = reading(uniform)

    assert Letters("abba", "b")(inference, "sum") == pytest.approx(5 * math.log(4))


def test_the_mean_is_weighted_by_tokens() -> None:
    """A short document says less than a long one."""
    inference, _ = reading(lambda passage: -1.0 if passage.text == "a" else -9.0)

    assert Letters("a", "bbb")(inference) == pytest.approx(math.exp(10 / 4))


def test_a_document_without_tokens_is_unscorable() -> None:
    """A perplexity of 1 would be the best there is."""
    inference, _ = reading(uniform)

    np.testing.assert_allclose(Letters("", "ab")(inference, "none"), [math.nan, 4.0])
    assert math.isnan(Letters("")(inference))


def test_documents_may_be_longer_than_the_window() -> None:
    """All of their tokens count."""
    inference, reader = reading(uniform)

    Letters("ab")(inference)

    assert [passage.rolls for passage in reader.asked] == [True]
