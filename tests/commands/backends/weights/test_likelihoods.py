"""Logits are turned into numbers a few at a time, which changes none of them."""

from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
import torch

from commands.backends.huggingface.reader import BatchLikelihoods, compute_groups, group_by_prefix
from commands.backends.hydra.likelihoods import HydraBatchLikelihoods
from commands.backends.hydra.weights import load_hydra
from commands.backends.weights.likelihoods import (
    HfBatchLikelihoods,
    WindowLikelihood,
    following_positions,
)
from commands.backends.weights.loaded import load_weights
from commands.backends.weights.windows import Window
from ledger.events.registration import Entrant, Hydra
from tests.support.weights.hydra import HydraFiles, hydra_entrant

CPU = torch.device("cpu")
WINDOWS = (
    Window((0, *range(30, 60)), 1),
    Window((0, *range(40, 52)), 5),
    Window((0, 70, 71), 2),
)


def weighed(begin_reading: Callable[[], BatchLikelihoods]) -> list[WindowLikelihood]:
    """Return what windows weigh, in their order."""
    found = compute_groups(begin_reading, group_by_prefix(dict.fromkeys(WINDOWS), may_share=False))
    return [found[window] for window in WINDOWS]


def require_equal(begin_reading: Callable[..., BatchLikelihoods]) -> None:
    """Require the same of a token at a time, of a few, and of all together."""
    whole = weighed(begin_reading)
    for n_logits in (1, 270 * 9 * 4):
        pieces = weighed(partial(begin_reading, n_logits=n_logits))
        assert [each.predicted for each in pieces] == [each.predicted for each in whole]
        assert [each.log_likelihood for each in pieces] == pytest.approx(
            [each.log_likelihood for each in whole], rel=0, abs=1e-4
        )


def test_weights_weigh_the_same_in_pieces(entrant: Callable[..., Entrant]) -> None:
    """A whole batch's in float32 may be larger than the weights."""
    require_equal(partial(HfBatchLikelihoods, load_weights(entrant(), CPU)))


@pytest.mark.parametrize("bypass_jury", [True, False])
def test_a_hydra_weighs_the_same_in_pieces(hydra_files: HydraFiles, *, bypass_jury: bool) -> None:
    """What the heads have said so far goes on from piece to piece."""
    entrant = hydra_entrant(hydra_files, bypass_jury=bypass_jury)
    heads = cast("Hydra", entrant.hydra)

    require_equal(partial(HydraBatchLikelihoods, load_hydra(entrant, heads, CPU), heads))


def test_positions_go_on_behind_what_was_read() -> None:
    """And padding takes that of the last token."""
    positions = following_positions(torch.tensor([3, 5]), [4, 1])

    assert positions.tolist() == [[3, 4, 5, 6], [5, 5, 5, 5]]
