"""A row knows what was said, by which head, and when it is done."""

import pytest
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
HERE, ELSEWHERE = torch.zeros(3), torch.ones(3)


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


def test_what_was_said_is_read_on_from() -> None:
    """At first it is the prompt's last token, which no head has read yet."""
    said = row()
    assert said.next_to_read == 6

    said.extend(EmittedToken(7), HERE, Ending(frozenset({9})), max_new_tokens=4)

    assert (said.tokens, said.next_to_read, said.is_complete) == ([7], 7, False)


@pytest.mark.parametrize(
    ("emitted", "tokens", "is_broken"),
    [
        ([EmittedToken(7), EmittedToken(9)], [7, 9], False),
        ([EmittedToken(7), EmittedToken(8), EmittedToken(7)], [7, 8, 7], False),
        ([EmittedToken(7), None], [7], True),
        ([None], [], True),
    ],
)
def test_a_row_is_complete_at_its_end(
    emitted: list[EmittedToken | None], tokens: list[int], *, is_broken: bool
) -> None:
    """Be it an end token, 9 here, the limit of three tokens, or logits that were no numbers."""
    said = row()
    was_complete = []

    for each in emitted:
        was_complete.append(said.is_complete)
        said.extend(each, HERE, Ending(frozenset({9})), max_new_tokens=3)

    assert not any(was_complete)
    assert (said.tokens, said.is_broken, said.is_complete) == (tokens, is_broken, True)


def test_the_witness_is_that_of_the_first_token() -> None:
    """It is the state at the prompt's end; what decided on later tokens is no witness of it."""
    said = row()

    said.extend(EmittedToken(7), HERE, Ending(frozenset()), max_new_tokens=4)
    said.extend(EmittedToken(8), ELSEWHERE, Ending(frozenset()), max_new_tokens=4)

    assert said.first_state is HERE


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


def test_one_head_alone_has_no_decisions_to_tell() -> None:
    """There was no jury, so nothing was measured on one."""
    said = row(jury=())

    said.extend(EmittedToken(7), HERE, Ending(frozenset()), max_new_tokens=4)

    assert said.diagnostics() == Diagnostics(draft_head_idx=0, bypass_jury=True)
