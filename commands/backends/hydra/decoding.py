"""Decode with a Hydra, token by token: with a jury that verifies a draft, or one head alone."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from commands.backends.hydra import _poe as poe
from commands.backends.hydra._context import HydraContext
from commands.backends.hydra._net import HydraNet
from commands.backends.hydra.rows import EmittedToken, EmittedTokens, HydraRow, JuryMetrics
from commands.backends.weights.answers import Ending
from commands.backends.weights.sampling import BROKEN, RowNoise, n_draws, nucleus, sample


class HydraDecoding(NamedTuple):
    """The decoding settings that rows of a batch share."""

    temperature: float | None  # None: greedy
    max_new_tokens: int
    ending: Ending
    beta: float
    top_p: float = 1.0  # sample from the likeliest tokens with this total probability

    @property
    def product_temperature(self) -> float:
        """The temperature of P; 1 for greedy decoding."""
        return 1.0 if self.temperature is None else self.temperature

    def head_distribution(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log q of one head's logits: (..., V) to (..., V)."""
        return self.decision_distribution(
            poe.product_of_experts(logits[None], temperature=self.product_temperature)
        )

    def decision_distribution(self, log_p: torch.Tensor) -> torch.Tensor:
        """Return the distribution to draw from: P, its nucleus, or its most probable token."""
        if self.temperature is None:
            return poe.point_mass(log_p)
        return log_p if self.top_p >= 1 else nucleus(log_p, self.top_p).log_softmax(-1)


def single_head_step(
    net: HydraNet, states: torch.Tensor, noise: RowNoise, decoding: HydraDecoding
) -> EmittedTokens:
    """Emit a token per row from its head's states (1, B, D) alone."""
    log_q = decoding.head_distribution(net.logits(states[0]))
    choice = sample(log_q, noise.step(n_draws(log_q.shape[-1])))
    tokens = torch.where(choice.is_finite, choice.tokens, BROKEN).tolist()
    emitted = [None if token == BROKEN else EmittedToken(token) for token in tokens]
    return EmittedTokens(emitted, states[0])


def jury_step(
    net: HydraNet,
    context: HydraContext,
    states: torch.Tensor,
    noise: RowNoise,
    decoding: HydraDecoding,
) -> EmittedTokens:
    """Emit a token per row from all heads' states (E, B, D): the accepted draft, or another."""
    logits = net.logits(states)  # (E, B, V)
    n_drawn = n_draws(logits.shape[-1])
    drawn = noise.step(2 * n_drawn + 1)
    for_draft, uniform, for_other = torch.split(drawn, [n_drawn, 1, n_drawn], dim=1)
    rows = torch.arange(logits.shape[1], device=net.device)
    votes = logits.argmax(dim=-1)[context.jury, rows]  # (E - 1, B)
    log_q = decoding.head_distribution(logits[context.drafting, rows])  # (B, V)
    logits[context.drafting, rows] = 0  # the draft head is no expert of the product
    log_p = poe.product_of_experts(
        logits, temperature=decoding.product_temperature, beta=decoding.beta
    )  # (B, V)
    draft = sample(log_q, for_draft).tokens
    verified = poe.verify(
        decoding.decision_distribution(log_p),
        log_q,
        draft,
        uniform=uniform[:, 0],
        replacement_uniforms=for_other,
    )
    tokens = torch.where(verified.is_accepted, draft, verified.replacement)
    radius = poe.stability_radius(votes, tokens)
    decided = verified.is_accepted, verified.is_finite, tokens, draft, radius
    measured = poe.entropy(log_p), poe.stability_margin(log_p), poe.suppression(log_p, draft)
    loudest = poe.log_prob_of(logits, tokens.expand(len(logits), -1))[context.jury, rows].argmax(0)
    deciding = torch.where(verified.is_accepted, context.drafting, context.jury[loudest, rows])
    metrics = JuryMetrics.read(decided, votes, measured)
    return EmittedTokens([*map(metrics.emitted, range(len(rows)))], states[deciding, rows])


@torch.inference_mode()
def decode(net: HydraNet, rows: Sequence[HydraRow], decoding: HydraDecoding) -> None:
    """Emit tokens until each row has ended, or has max_new_tokens, or logits that are not finite.

    Rows that have ended leave. Either all rows have a jury, or none.

    Raises:
        torch.OutOfMemoryError: The rows are too many for the device.
    """
    context = HydraContext(net, [row.roles for row in rows])
    context.read_prompts([row.prompt_ids[:-1] for row in rows])
    noise = RowNoise([row.seed for row in rows], net.device)
    while rows:
        _step(net, rows, context, noise, decoding)
        still_open = [n for n, row in enumerate(rows) if not row.is_complete]
        if 0 < len(still_open) < len(rows):
            context.keep_rows(still_open)
            noise.keep(torch.tensor(still_open, device=net.device))
        rows = [rows[n] for n in still_open]


def _step(
    net: HydraNet,
    rows: Sequence[HydraRow],
    context: HydraContext,
    noise: RowNoise,
    decoding: HydraDecoding,
) -> None:
    """Emit a token of each row."""
    states = context.step(torch.tensor([row.next_to_read for row in rows], device=net.device))
    new = (
        jury_step(net, context, states, noise, decoding)
        if rows[0].roles.jury
        else single_head_step(net, states, noise, decoding)
    )
    for row, emitted, witness in zip(rows, new.emitted, new.states, strict=True):
        row.extend(emitted, witness, decoding.ending, decoding.max_new_tokens)
