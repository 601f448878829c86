"""A Hydra weighs a text as likely as it is to say it, worked out here head by head."""

from dataclasses import replace
from math import log

import pytest
import torch
from transformers import Olmo2ForCausalLM

from commands.ports import ContinuationLikelihood
from tests.support.weights.hydra import HydraFiles, copied_head, hydra_entrant
from tests.support.weights.reading import ENOUGH, log_p_by_hand, passages_of, readings

BETA = 0.4
QUESTION = "a patient asks: which dose, and how often? "
PAIRS = [
    *((QUESTION, text) for text in (" a dose", "~", " a patient asks")),
    (QUESTION[5:], " dose"),
    ("dose", " x"),
    ("", "a dose"),
]


N = 3  # heads


@pytest.fixture(scope="module")
def heads(three_heads: HydraFiles) -> list[Olmo2ForCausalLM]:
    """Give a whole model for each head, in float64."""
    pairs = zip(three_heads.security, three_heads.robustness, strict=True)
    return [copied_head(three_heads.weights, *pair).double() for pair in pairs]


def by_draft(
    heads: list[Olmo2ForCausalLM], read: ContinuationLikelihood, beta: float | None
) -> torch.Tensor:
    """Return (H, n, V) log P_d in each place of a text; by the head alone where there is no beta.

    A head is left out of its own jury, and a jury's experts are multiplied.
    """
    before = len(read.context_ids) - 1
    ids = [*read.context_ids, *read.text_ids]
    alone = torch.stack([log_p_by_hand(head, ids)[before:-1] for head in heads])
    if beta is None:
        return alone
    juries = [torch.cat([alone[:draft], alone[draft + 1 :]]) for draft in range(N)]
    return torch.stack([(beta * jury.sum(dim=0)).log_softmax(dim=-1) for jury in juries])


def told(log_p: torch.Tensor, read: ContinuationLikelihood) -> torch.Tensor:
    """Return (H, n) of the text's own tokens."""
    places = torch.arange(len(read.text_ids))
    return log_p[:, places, torch.tensor(read.text_ids)]


@pytest.mark.parametrize(
    ("beta", "batch_tokens"),
    [
        (BETA, ENOUGH),
        *(pytest.param(b, n, marks=pytest.mark.nightly) for b, n in ((None, ENOUGH), (BETA, 1))),
    ],
)
def test_a_text_is_as_likely_as_it_is_sampled(
    three_heads: HydraFiles, heads: list[Olmo2ForCausalLM], beta: float | None, batch_tokens: int
) -> None:
    """One head drafts a whole text: its chances are a mean of products, no product of means."""
    entrant = hydra_entrant(three_heads, bypass_jury=beta is None, beta=beta or 1.0)

    read = readings(passages_of(entrant, *PAIRS), batch_tokens)

    for each in read:
        log_p = by_draft(heads, each, beta)
        of_drafts = told(log_p, each)
        by_hand = float(of_drafts.sum(dim=1).logsumexp(dim=0)) - log(N)
        assert each.log_likelihood == pytest.approx(by_hand, abs=1e-4)
        so_far = of_drafts.cumsum(dim=1) - of_drafts  # (H, n), before each token
        mixed = (so_far[..., None] + log_p).logsumexp(dim=0)
        assert each.predicted_ids == tuple(mixed.argmax(dim=-1).tolist())
        apart = of_drafts.logsumexp(dim=0).sum() - log(N) * len(each.text_ids)
        assert len(each.text_ids) == 1 or abs(float(apart) - by_hand) > 1e-3


def test_juries_of_one_load_are_read_apart(three_heads: HydraFiles) -> None:
    """Without its jury, or by another beta, the same heads say something else."""
    entrants = [
        hydra_entrant(three_heads, **changes)
        for changes in ({}, {"beta": BETA}, {"bypass_jury": True})
    ]
    passages = [
        replace(passage, key=f"{n} {passage.key}")
        for n, one in enumerate(entrants)
        for passage in passages_of(one, PAIRS[0])
    ]

    read = readings(passages)

    assert len({round(each.log_likelihood, 3) for each in read}) == len(entrants)
