"""Rounds that were worked by hand: a drafting head, three verifiers, and what is told of them."""

import math

import pytest
import torch

from commands.backends.hydra._context import HeadRoles
from commands.backends.hydra.decoding import HydraDecoding, decode
from commands.backends.hydra.rows import HydraRow
from commands.backends.weights.decoding import Ending
from commands.backends.weights.sampling import random_stream
from tests.commands.backends.table_net import TableNet

GREEDY = HydraDecoding(
    temperature=None, max_new_tokens=2, ending=Ending(frozenset()), gamma=2, beta=1.0
)
DRAFTER = 0
JURY = (1, 2, 3)
FOUR_DIGITS = 1e-3


def weights(*of_tokens: float) -> torch.Tensor:
    """Return logits of probabilities in this proportion."""
    return torch.tensor(of_tokens).log()


@pytest.fixture
def table() -> torch.Tensor:
    """Give what four heads say after the tokens 0 and 1.

    After 0 each verifier is for token 1, and together they give it 8 in 11.
    After 1 the second is for 2, the others for 3: together 1, 1, 2 and 6 in 10.
    The drafting head would say 1, and after it 2.
    """
    table = torch.zeros(4, 4, 4)
    table[DRAFTER, 0] = weights(2, 3, 2, 2)
    table[JURY, 0] = weights(1, 2, 1, 1)
    table[DRAFTER, 1] = weights(1, 1, 5, 1)
    table[1, 1] = weights(1, 1, 1, 3)
    table[2, 1] = weights(1, 1, 2, 1)
    table[3, 1] = weights(1, 1, 1, 2)
    return table


def said(table: torch.Tensor, decoding: HydraDecoding = GREEDY) -> HydraRow:
    """Return what is said after token 0."""
    row = HydraRow([0], HeadRoles(DRAFTER, JURY), random_stream(0))
    decode(TableNet(table), [row], decoding)
    return row


def test_a_draft_that_passed_and_one_that_did_not(table: torch.Tensor) -> None:
    """The second verifier is alone with the draft's 2, of probability 0.2: 3 is said instead."""
    row = said(table)

    assert row.tokens == [1, 3]
    sure = 8 / 11 * math.log(11 / 8) + 3 / 11 * math.log(11)
    torn = 0.2 * math.log(10) + 0.2 * math.log(5) + 0.6 * math.log(10 / 6)
    told = row.diagnostics()
    assert told.entropies == pytest.approx((sure, torn), rel=FOUR_DIGITS)
    assert told.stability_margins == pytest.approx((8 / 11 - 1 / 11, 0.6 - 0.2), rel=FOUR_DIGITS)
    assert told.stability_radii == (1, 0)  # 3 votes to none, and 2 to 1, halved
    assert (told.resampled_at, told.rejected_tokens) == ((1,), (2,))
    assert told.suppressions == pytest.approx((0.2,), rel=FOUR_DIGITS)
    assert told.validity_radii == (1,)  # with one vote of 3's, 2 would have two to one


def test_a_first_draft_that_passed_has_its_own_head_for_a_witness(table: torch.Tensor) -> None:
    """The jury only agreed with what the drafting head had said already."""
    row = said(table)

    assert row.first_state is not None
    assert torch.equal(row.first_state, table[DRAFTER, 0])


def test_a_replaced_first_draft_has_the_loudest_verifier_for_a_witness(table: torch.Tensor) -> None:
    """By its raw logit: the second gives 1 the highest probability, the third the highest logit."""
    table[DRAFTER, 0] = weights(1, 1, 5, 1)
    table[2, 0] = weights(1, 4, 1, 1)
    table[3, 0] = weights(1, 2, 1, 1) + 7

    row = said(table)

    assert row.tokens[0] == 1
    assert row.diagnostics().resampled_at[0] == 0
    assert row.first_state is not None
    assert torch.equal(row.first_state, table[3, 0])


@pytest.mark.parametrize(
    ("temperature", "beta", "power"), [(0.5, 1.0, 2), (1.0, 0.5, 0.5), (2.0, 2.0, 1)]
)
def test_what_is_told_is_of_the_distribution_that_was_sampled(
    table: torch.Tensor, temperature: float, beta: float, power: float
) -> None:
    """The product at the temperature and with the exponent: 8 in 11 become 64 in 67, say."""
    row = said(table, GREEDY._replace(temperature=temperature, beta=beta))

    p = torch.tensor([1.0, 8, 1, 1]) ** power
    p /= p.sum()
    told = row.diagnostics()
    assert told.entropies[0] == pytest.approx(float(-(p * p.log()).sum()), rel=FOUR_DIGITS)
    assert told.stability_margins[0] == pytest.approx(float(p[1] - p[0]), rel=FOUR_DIGITS)


def test_rows_of_a_batch_are_each_told_of_their_own(table: torch.Tensor) -> None:
    """Who drafts for one row verifies for another, so the numbers are nowhere in the same place."""
    roles = [HeadRoles(DRAFTER, JURY), HeadRoles(2, (0, 1, 3)), HeadRoles(1, (3, 2, 0))]
    rows = [HydraRow([0], each, random_stream(0)) for each in roles]
    alone = [HydraRow([0], each, random_stream(0)) for each in roles]

    decode(TableNet(table), rows, GREEDY)
    for row in alone:
        decode(TableNet(table), [row], GREEDY)

    assert [row.diagnostics() for row in rows] == [row.diagnostics() for row in alone]
    assert len({row.diagnostics().entropies for row in rows}) == 3
