"""Decode with a Hydra, token by token: with a jury that verifies a draft, or one head alone.

A seed draws the head that drafts, so entrants with the same number of heads draft a prompt with
the same one. All other heads that answer are its jury, unless the head decides alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch.nn.functional import pad
from transformers import DynamicCache

from commands.backends.hydra import poe
from commands.backends.hydra.net import HydraNet, Route, TokenBlock
from commands.backends.weights.answers import Decoded, PromptRow
from commands.backends.weights.loaded import padded
from commands.backends.weights.sampling import (
    BROKEN,
    RowNoise,
    SamplingSettings,
    n_draws,
    nucleus,
    row_key,
    sample,
)
from ledger.events.responses import Diagnostics


class JuryDecision(NamedTuple):
    """What a jury made of one draft."""

    is_accepted: bool
    draft: int
    entropy: float
    stability_radius: int
    stability_margin: float
    validity_radius: int  # of the draft
    suppression: float  # likewise


@dataclass
class HydraRow(Decoded):
    """A prompt, the tokens emitted so far, and how they were decided."""

    draft: int = 0  # the head that drafts
    jury: tuple[int, ...] = ()  # empty if one head decides alone; in all rows of a batch, or none
    decisions: list[JuryDecision] = field(default_factory=list)
    first_state: torch.Tensor | None = None  # (D,) of the head that decided the first token

    @classmethod
    def start(cls, prompt: PromptRow, n_heads: int, *, bypass_jury: bool) -> "HydraRow":
        """Start a response by drawing the head that drafts."""
        draft = row_key(prompt.seed) % n_heads
        jury = () if bypass_jury else tuple(head for head in range(n_heads) if head != draft)
        return cls(prompt, draft=draft, jury=jury)

    def diagnostics(self) -> Diagnostics:
        """Return the decisions as the ledger keeps them, to four digits.

        float32 has about seven, but the last ones depend on the batch's shape, so they would make
        the same response look different.
        """
        rejected = [(at, each) for at, each in enumerate(self.decisions) if not each.is_accepted]
        return Diagnostics(
            draft_head_idx=self.draft,
            bypass_jury=not self.jury,
            entropies=tuple(_four_digits(decision.entropy) for decision in self.decisions),
            stability_radii=tuple(decision.stability_radius for decision in self.decisions),
            stability_margins=tuple(
                _four_digits(decision.stability_margin) for decision in self.decisions
            ),
            resampled_at=tuple(at for at, _ in rejected),
            rejected_tokens=tuple(each.draft for _, each in rejected),
            validity_radii=tuple(each.validity_radius for _, each in rejected),
            suppressions=tuple(_four_digits(each.suppression) for _, each in rejected),
        )


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


class HydraSteps:
    """Chooses the next tokens of rows that are decoded together; all have a jury, or none."""

    def __init__(
        self, net: HydraNet, rows: Sequence[HydraRow], how: SamplingSettings, beta: float
    ) -> None:
        """Start with nothing read."""
        self._net, self._how, self._beta = net, how, beta
        self._temperature = 1.0 if how.temperature is None else how.temperature  # of P
        self._unread, mask = padded([row.row.prompt_ids for row in rows], net.device)
        self._is_own = mask.bool()  # (B, K), false on padding
        self.cache = DynamicCache()
        self._noise = RowNoise([row.row.seed for row in rows], net.device)
        self._assign(rows)

    def _assign(self, rows: Sequence[HydraRow]) -> None:
        self._rows = rows
        drafting, jury = [row.draft for row in rows], [row.jury for row in rows]
        self._drafting = torch.tensor(drafting, device=self._net.device)  # (B,)
        self._jury = torch.tensor(jury, dtype=torch.long, device=self._net.device).T  # (E - 1, B)
        self._route = (
            Route.every_head(1 + len(self._jury), len(rows), self._net.device)
            if jury[0]
            else Route(drafting, self._net.device)
        )

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these."""
        kept = torch.tensor(rows, device=self._net.device)
        self._net.select_rows(self.cache, kept)
        self._is_own, self._unread = self._is_own[kept], self._unread[kept]
        self._noise.keep(kept)
        self._assign([self._rows[row] for row in rows])

    def next_tokens(self) -> list[int]:
        """Return the next token of each row, BROKEN where there is none."""
        states = self._read()  # (E, B, D)
        tokens = self._by_jury(states) if len(self._jury) else self._by_one_head(states)
        self._unread = torch.tensor(tokens, device=self._net.device)[:, None].clamp(min=0)
        self._is_own = pad(self._is_own, (0, 1), value=True)
        return tokens

    def _read(self) -> torch.Tensor:
        """Return the heads' states (E, B, D) at the last token; one head's, where it is alone."""
        block = TokenBlock.behind(self._is_own, self._unread.shape[1])
        states = self._net.trunk_states(self._unread, block, self.cache)
        states = self._net.head_states(states, self._route, block, self.cache)
        return states[:, -1].view(-1, len(self._rows), states.shape[-1])

    def _by_one_head(self, states: torch.Tensor) -> list[int]:
        log_q = self._head_distribution(self._net.logits(states[0]))
        choice = sample(log_q, self._noise.step(n_draws(log_q.shape[-1])))
        self._witness(states[0])
        return torch.where(choice.is_finite, choice.tokens, BROKEN).tolist()

    def _by_jury(self, states: torch.Tensor) -> list[int]:
        """Return the accepted drafts, or what takes their places."""
        logits = self._net.logits(states)  # (E, B, V)
        n_drawn = n_draws(logits.shape[-1])
        drawn = self._noise.step(2 * n_drawn + 1)
        for_draft, uniform, for_other = torch.split(drawn, [n_drawn, 1, n_drawn], dim=1)
        rows = torch.arange(logits.shape[1], device=logits.device)
        votes = logits.argmax(dim=-1)[self._jury, rows]  # (E - 1, B)
        log_q = self._head_distribution(logits[self._drafting, rows])  # (B, V)
        logits[self._drafting, rows] = 0  # the draft head is no expert of the product
        log_p = poe.product_of_experts(logits, temperature=self._temperature, beta=self._beta)
        draft = sample(log_q, for_draft).tokens
        verified = poe.verify(
            self._decision_distribution(log_p),
            log_q,
            draft,
            uniform=uniform[:, 0],
            replacement_uniforms=for_other,
        )
        tokens = torch.where(verified.is_accepted, draft, verified.replacement)
        said = poe.log_prob_of(logits, tokens.expand(len(logits), -1))[self._jury, rows]
        loudest = self._jury[said.argmax(0), rows]
        deciding = torch.where(verified.is_accepted, self._drafting, loudest)
        self._witness(states[deciding, rows])
        radius = poe.stability_radius(votes, tokens)
        tokens = torch.where(verified.is_finite, tokens, BROKEN)
        decided = torch.stack([verified.is_accepted.long(), tokens, draft, radius, *votes])
        suppressions = poe.log_prob_of(log_p, draft).exp()  # the lower, the more suppressed
        measured = [poe.entropy(log_p), poe.stability_margin(log_p), suppressions]
        return self._note(decided.T.tolist(), torch.stack(measured).T.tolist())

    def _note(self, decided: list[list[int]], measured: list[list[float]]) -> list[int]:
        """Note each row's decision; the tensors come together: a GPU waits whenever one is read."""
        for row, (accepted, token, draft, radius, *votes), (entropy, margin, suppression) in zip(
            self._rows, decided, measured, strict=True
        ):
            if token != BROKEN:
                validity = poe.validity_radius(votes, draft)
                row.decisions.append(
                    JuryDecision(
                        bool(accepted), draft, entropy, radius, margin, validity, suppression
                    )
                )
        return [token for _, token, *_ in decided]

    def _witness(self, states: torch.Tensor) -> None:
        """Keep the states (B, D) of the heads that decided the first tokens."""
        for row, state in zip(self._rows, states, strict=True):
            if row.first_state is None:
                row.first_state = state

    def _head_distribution(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log q of one head's logits: (..., V) to (..., V)."""
        return self._decision_distribution(
            poe.product_of_experts(logits[None], temperature=self._temperature)
        )

    def _decision_distribution(self, log_p: torch.Tensor) -> torch.Tensor:
        """Return the distribution to draw from: P, its nucleus, or its most probable token."""
        if self._how.temperature is None:
            return poe.point_mass(log_p)
        top_p = self._how.top_p
        return log_p if top_p >= 1 else nucleus(log_p, top_p).log_softmax(-1)
