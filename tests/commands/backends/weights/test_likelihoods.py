"""Logits are turned into numbers a few at a time, which changes none of them."""

from typing import cast

import pytest
import torch
from msgspec.structs import replace

from commands.backends.hydra.answers import HydraHeads
from commands.backends.hydra.weights import load_hydra
from commands.backends.weights.likelihoods import compute_rows, input_rows
from commands.backends.weights.windows import Window
from ledger.events.registration import Hydra
from tests.support.weights.hydra import HydraFiles, hydra_entrant

CPU = torch.device("cpu")
WINDOWS = (Window((0, *range(30, 60)), 1), Window((0, *range(40, 52)), 5), Window((0, 70, 71), 2))


def test_a_hydra_weighs_the_same_in_pieces(three_heads: HydraFiles) -> None:
    """By a token at a time, or a few: what was said so far goes on, with a jury and without."""
    entrant = hydra_entrant(three_heads)
    jury = cast("Hydra", entrant.hydra)
    model = load_hydra(entrant, jury, CPU).model

    for chosen in (jury, replace(jury, bypass_jury=True)):
        heads = HydraHeads(model, chosen)
        rows = input_rows(WINDOWS)
        whole = compute_rows(heads, rows)
        for n_logits in (1, 270 * 9 * 4):
            pieces = compute_rows(heads, rows, n_logits=n_logits)
            for window in WINDOWS:
                assert pieces[window].predicted == whole[window].predicted
                assert pieces[window].log_likelihood == pytest.approx(
                    whole[window].log_likelihood, rel=0, abs=1e-4
                )
