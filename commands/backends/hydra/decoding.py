"""Decode with a Hydra, round by round: with a jury that verifies drafts, or one head alone."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from commands.backends.hydra import _poe as poe
from commands.backends.hydra._context import HydraContext
from commands.backends.hydra._net import HydraNet
from commands.backends.hydra.rows import BlockMetrics, EmittedBlock, EmittedToken, HydraRow
from commands.backends.weights.answers import Ending
from commands.backends.weights.sampling import nucleus, uniforms


class HydraDecoding(NamedTuple):
    """The decoding settings that rows of a batch share."""

    temperature: float | None  # None: greedy
    max_new_tokens: int
    ending: Ending
    gamma: int
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


class Proposal(NamedTuple):
    """G drafted tokens per row."""

    tokens: torch.Tensor  # (B, G) long
    log_q: torch.Tensor  # (B, G, V) distribution that they were drawn from
    trunk_states: torch.Tensor  # (B, G, D) of the trunk
    first_state: torch.Tensor  # (B, D) of the draft head


def single_head_round(
    net: HydraNet, context: HydraContext, rows: Sequence[HydraRow], decoding: HydraDecoding
) -> EmittedBlock:
    """Emit one token per row, from its draft head alone."""
    (luck,) = uniforms([row.stream for row in rows], 1, net.device).unbind(dim=1)  # (B,)
    _, states = context.draft(_next_to_read(net, rows), 0)
    log_q = decoding.head_distribution(net.logits(states))
    tokens = poe.draw(log_q, luck).tolist()
    context.keep_accepted(torch.ones(len(rows), dtype=torch.long, device=net.device), 1)
    sound = poe.is_distribution(log_q).tolist()
    return EmittedBlock(
        [[EmittedToken(token) if ok else None] for token, ok in zip(tokens, sound, strict=True)],
        states,
    )


def jury_round(
    net: HydraNet, context: HydraContext, rows: Sequence[HydraRow], decoding: HydraDecoding
) -> EmittedBlock:
    """Emit up to gamma tokens per row: accepted drafts, and a replacement of the first rejected."""
    gamma = decoding.gamma
    luck = uniforms([row.stream for row in rows], 2 * gamma + 1, net.device)
    proposal = propose(net, context, rows, decoding, luck[:, :gamma])
    states = context.verify(proposal.trunk_states)  # (E, B, G, D)
    logits = net.logits(states)  # (E, B, G, V)
    log_p = poe.product_of_experts(
        logits, temperature=decoding.product_temperature, beta=decoding.beta
    )  # (B, G, V)
    verified = poe.verify(
        decoding.decision_distribution(log_p),
        proposal.log_q,
        proposal.tokens,
        uniforms=luck[:, gamma:-1],
        replacement_uniforms=luck[:, -1],
    )
    context.keep_accepted((verified.n_accepted + 1).clamp(max=gamma), gamma)
    witness = _first_states(proposal, verified, states[:, :, 0], logits[:, :, 0])
    return EmittedBlock(_emitted(proposal, verified, log_p, logits.argmax(dim=-1)), witness)


def propose(
    net: HydraNet,
    context: HydraContext,
    rows: Sequence[HydraRow],
    decoding: HydraDecoding,
    luck: torch.Tensor,
) -> Proposal:
    """Draft gamma tokens per row, with (B, gamma) uniforms."""
    tokens, log_q, trunk_states, head_states = [_next_to_read(net, rows)], [], [], []
    for step, each in enumerate(luck.unbind(dim=1)):
        on_trunk, states = context.draft(tokens[-1], step)
        trunk_states.append(on_trunk)
        head_states.append(states)
        log_q.append(decoding.head_distribution(net.logits(states)))
        tokens.append(poe.draw(log_q[-1], each))
    return Proposal(
        torch.stack(tokens[1:], dim=1),
        torch.stack(log_q, dim=1),
        torch.stack(trunk_states, dim=1),
        head_states[0],
    )


def _next_to_read(net: HydraNet, rows: Sequence[HydraRow]) -> torch.Tensor:
    return torch.tensor([row.next_to_read for row in rows], device=net.device)  # (B,)


def _first_states(
    proposal: Proposal, verified: poe.VerifiedDrafts, states: torch.Tensor, logits: torch.Tensor
) -> torch.Tensor:
    """Return the (B, D) state that decided each row's first token of the block.

    It is the draft head's if the first draft was accepted, else that of the juror with the highest
    logit for the replacement; states are (E, B, D) and logits (E, B, V) of the first token.
    """
    juror = poe.log_prob_of(logits, verified.replacement.expand(len(logits), -1)).argmax(
        dim=0
    )  # (B,)
    of_juror = states[juror, torch.arange(len(juror), device=juror.device)]  # (B, D)
    return torch.where(verified.n_accepted[:, None] > 0, proposal.first_state, of_juror)


def _emitted(
    proposal: Proposal, verified: poe.VerifiedDrafts, log_p: torch.Tensor, votes: torch.Tensor
) -> list[list[EmittedToken | None]]:
    """Return the emitted tokens: log_p is (B, G, V), votes (E, B, G) each juror's favourite."""
    n_rows, n_steps = proposal.tokens.shape
    rows, steps = (torch.arange(n, device=log_p.device) for n in (n_rows, n_steps))
    tokens = torch.where(
        steps == verified.n_accepted[:, None], verified.replacement[:, None], proposal.tokens
    )  # (B, G)
    place = verified.n_accepted.clamp(max=n_steps - 1)  # (B,)
    draft = proposal.tokens[rows, place]  # (B,)
    block = BlockMetrics(
        n_accepted=verified.n_accepted.tolist(),
        is_finite=verified.is_finite.tolist(),
        tokens=tokens.tolist(),
        entropy=poe.entropy(log_p).tolist(),
        stability_radius=poe.stability_radius(votes, tokens).tolist(),
        stability_margin=poe.stability_margin(log_p).tolist(),
        draft=draft.tolist(),
        suppression=poe.suppression(log_p[rows, place], draft).tolist(),
        metrics=votes[:, rows, place].T.tolist(),
    )
    return [list(block.emitted(row)) for row in range(n_rows)]


@torch.inference_mode()
def decode(net: HydraNet, rows: Sequence[HydraRow], decoding: HydraDecoding) -> None:
    """Emit tokens until each row has ended, or has max_new_tokens, or logits that are not finite.

    Either all rows have a jury, or none.

    Raises:
        torch.OutOfMemoryError: The rows are too many for the device.
    """
    context = HydraContext(net, [row.roles for row in rows])
    context.read_prompts([row.prompt_ids[:-1] for row in rows])
    a_round = jury_round if rows[0].roles.jury else single_head_round
    while rows:
        block = a_round(net, context, rows, decoding)
        for row, emitted, witness in zip(rows, block.emitted, block.first_state, strict=True):
            row.extend(emitted, witness, decoding.ending, decoding.max_new_tokens)
        still_open = [n for n, row in enumerate(rows) if not row.is_complete]
        if 0 < len(still_open) < len(rows):
            context.keep_rows(still_open)
        rows = [rows[n] for n in still_open]
