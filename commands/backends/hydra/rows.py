"""The state of one response while a Hydra decodes it, and the diagnostics of each token."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from commands.backends.hydra._context import HeadRoles
from commands.backends.hydra._poe import validity_radius
from commands.backends.weights.answers import Ending
from commands.backends.weights.sampling import row_key
from ledger.events.responses import Diagnostics


class TokenMetrics(NamedTuple):
    """A jury's metrics of one emitted token."""

    entropy: float
    stability_radius: int
    stability_margin: float


class RejectionMetrics(NamedTuple):
    """A jury's metrics of one rejected draft."""

    draft: int
    validity_radius: int
    suppression: float


class EmittedToken(NamedTuple):
    """One emitted token with its metrics; None if one head decided alone."""

    token: int
    metrics: TokenMetrics | None = None
    instead_of: RejectionMetrics | None = None


@dataclass
class HydraRow:
    """A prompt, the seed of its random numbers, and the tokens emitted so far."""

    prompt_ids: Sequence[int]
    roles: HeadRoles
    seed: int
    emitted: list[EmittedToken] = field(default_factory=list)
    first_state: torch.Tensor | None = None  # (D,) of the head that decided the first token
    is_broken: bool = False  # the logits of the next token were not finite
    is_complete: bool = False

    @property
    def tokens(self) -> list[int]:
        """The emitted tokens."""
        return [each.token for each in self.emitted]

    @property
    def next_to_read(self) -> int:
        """The token that no head has read yet."""
        return self.emitted[-1].token if self.emitted else self.prompt_ids[-1]

    def extend(
        self,
        emitted: EmittedToken | None,
        witness: torch.Tensor,
        ending: Ending,
        max_new_tokens: int,
    ) -> None:
        """Add a token, or end the row if there is none."""
        if self.first_state is None:
            self.first_state = witness
        if emitted is None:
            self.is_broken = self.is_complete = True
            return
        self.emitted.append(emitted)
        self.is_complete = len(self.emitted) == max_new_tokens or ending.is_at(self.tokens)

    def diagnostics(self) -> Diagnostics:
        """Return the decisions as the ledger keeps them, to four digits.

        float32 has about seven, but the last ones depend on the batch's shape, so they would make
        the same response look different.
        """
        votes = [each.metrics for each in self.emitted if each.metrics]
        rejected = [
            (at, each.instead_of) for at, each in enumerate(self.emitted) if each.instead_of
        ]
        return Diagnostics(
            draft_head_idx=self.roles.draft,
            bypass_jury=not self.roles.jury,
            entropies=tuple(_four_digits(vote.entropy) for vote in votes),
            stability_radii=tuple(vote.stability_radius for vote in votes),
            stability_margins=tuple(_four_digits(vote.stability_margin) for vote in votes),
            resampled_at=tuple(at for at, _ in rejected),
            rejected_tokens=tuple(each.draft for _, each in rejected),
            validity_radii=tuple(each.validity_radius for _, each in rejected),
            suppressions=tuple(_four_digits(each.suppression) for _, each in rejected),
        )


def start_row(prompt_ids: Sequence[int], *, seed: int, n_heads: int, bypass_jury: bool) -> HydraRow:
    """Start a response by drawing the head that drafts.

    So entrants with the same number of heads draft a prompt with the same head.

    Args:
        prompt_ids: The prompt's tokens, one at least.
        seed: Of the response.
        n_heads: How many heads may draft.
        bypass_jury: Whether the head that drafts decides alone.
    """
    draft = row_key(seed) % n_heads
    jury = () if bypass_jury else tuple(head for head in range(n_heads) if head != draft)
    return HydraRow(prompt_ids, HeadRoles(draft, jury), seed)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


class EmittedTokens(NamedTuple):
    """The next token of each row."""

    emitted: list[EmittedToken | None]  # None: the logits were not finite, and the row ends
    states: torch.Tensor  # (B, D) of the heads that decided


class JuryMetrics(NamedTuple):
    """What a jury made of each row's draft, on the CPU."""

    is_accepted: list[int]  # 0 or 1, by row, like all others
    is_finite: list[int]  # 0 or 1
    token: list[int]
    draft: list[int]
    stability_radius: list[int]
    votes: list[list[int]]  # each juror's favourite
    entropy: list[float]
    stability_margin: list[float]
    suppression: list[float]  # of the draft

    @classmethod
    def read(
        cls,
        decided: Sequence[torch.Tensor],
        votes: torch.Tensor,
        measured: Sequence[torch.Tensor],
    ) -> "JuryMetrics":
        """Read a jury's tensors together: a GPU stands still whenever one is read.

        Args:
            decided: (B,) long or bool each, the fields before `votes`.
            votes: (E, B) long.
            measured: (B,) float each, the fields behind `votes`.
        """
        whole = torch.stack([each.long() for each in (*decided, *votes)]).tolist()
        accepted, finite, token, draft, radius, *by_juror = whole
        by_row = [list(row) for row in zip(*by_juror, strict=True)]
        return cls(
            accepted, finite, token, draft, radius, by_row, *torch.stack([*measured]).tolist()
        )

    def emitted(self, row: int) -> EmittedToken | None:
        """Return a row's draft or its replacement; None if there is neither."""
        if not self.is_finite[row]:
            return None
        metrics = TokenMetrics(
            self.entropy[row], self.stability_radius[row], self.stability_margin[row]
        )
        rejection = None if self.is_accepted[row] else self._rejection(row)
        return EmittedToken(self.token[row], metrics, rejection)

    def _rejection(self, row: int) -> RejectionMetrics:
        radius = validity_radius(self.votes[row], self.draft[row])
        return RejectionMetrics(self.draft[row], radius, self.suppression[row])
