"""Ways to read that are compared with each other weigh the same windows alike."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch
from transformers import Olmo2ForCausalLM

from tests.benchmarks.heads.random_hydra import Shape, random_model
from tests.benchmarks.texts.ways import (
    arriving,
    by_length,
    documents,
    one_by_one,
    questions,
    together,
    weigh,
)

pytestmark = pytest.mark.nightly  # what it tests is measured with, not used


@pytest.fixture
def model() -> Iterator[Olmo2ForCausalLM]:
    """Yield random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield random_model(Shape(2, 2, 16, 48, 256))


def test_each_way_weighs_every_window(model: Olmo2ForCausalLM) -> None:
    """A way that left some out would be the quickest of all."""
    rng = np.random.default_rng(0)
    labelled = {**questions(rng, 3, n_context=40), **documents(rng, 9, 64)}

    alone = weigh(model, labelled, one_by_one)

    assert alone.keys() == labelled.keys()
    for way in (together, by_length, arriving):
        found = weigh(model, labelled, partial(way, 200))
        assert [found[each].log_likelihood for each in labelled] == pytest.approx(
            [alone[each].log_likelihood for each in labelled], rel=0, abs=1e-3
        )


def test_batches_of_either_order_keep_to_the_same_budget() -> None:
    """Or the larger would be the quicker."""
    labelled = documents(np.random.default_rng(0), 40, 64)

    for way in (by_length, arriving):
        batches = [*way(200, labelled)]
        assert all(len(each) * max(b.n_tokens for b in each) <= 200 for each in batches)
        assert sum(map(len, batches)) == len(labelled)
