"""A row knows what was said, by which head, and when it is done."""

import torch

from commands.backends.hydra._context import HeadRoles
from commands.backends.hydra.rows import (
    EmittedToken,
    HydraRow,
    RejectionMetrics,
    TokenMetrics,
    start_row,
)
from commands.backends.weights.answers import Ending
from ledger.events.responses import Diagnostics
from tests.support.statistics import chi_square_p

FIRM = TokenMetrics(entropy=0.25, stability_radius=3, stability_margin=0.5)
TORN = TokenMetrics(entropy=1.123456789, stability_radius=0, stability_margin=1e-9 / 3)
HERE = torch.zeros(3)


def row(jury: tuple[int, ...] = (1, 2)) -> HydraRow:
    """Return a row that has said nothing."""
    return HydraRow([5, 6], HeadRoles(0, jury), 0)


def test_each_head_drafts_equally_often() -> None:
    """One head alone is an average over all: each must be drawn, whatever seeds look like."""
    drawn = [start_row([5], seed=seed, n_heads=9, bypass_jury=True) for seed in range(9_000)]

    counts = torch.bincount(torch.tensor([each.roles.draft for each in drawn]))

    assert chi_square_p(counts, torch.full((9,), 1_000.0)) > 0.001


def test_entrants_share_the_draft_head_of_a_prompt() -> None:
    """What sets them apart is then the jury or the shards, and not the luck of the draw."""
    for seed in range(50):
        alone = start_row([5], seed=seed, n_heads=9, bypass_jury=True)
        with_jury = start_row([6, 7], seed=seed, n_heads=9, bypass_jury=False)

        assert alone.roles == (with_jury.roles.draft, ())
        assert {with_jury.roles.draft, *with_jury.roles.jury} == set(range(9))
        assert len(with_jury.roles.jury) == 8


def test_decisions_are_told_token_by_token() -> None:
    """Rejections stand by the place of what was said instead; no digit is kept that is noise."""
    said = row()
    rejection = RejectionMetrics(draft=3, validity_radius=2, suppression=0.1234567)
    emitted = [EmittedToken(7, FIRM), EmittedToken(8, TORN, rejection)]

    for each in emitted:
        said.extend(each, HERE, Ending(frozenset()), max_new_tokens=4)

    assert said.diagnostics() == Diagnostics(
        draft_head_idx=0,
        bypass_jury=False,
        entropies=(0.25, 1.123),
        stability_radii=(3, 0),
        stability_margins=(0.5, 3.333e-10),
        resampled_at=(1,),
        rejected_tokens=(3,),
        validity_radii=(2,),
        suppressions=(0.1235,),
    )
