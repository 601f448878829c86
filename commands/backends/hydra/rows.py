"""The state of one response while a Hydra decodes it, and the diagnostics of each token."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from commands.backends.hydra._context import HeadRoles
from commands.backends.hydra._poe import validity_radius
from commands.backends.weights.answers import Ending
from commands.backends.weights.sampling import random_stream
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
    """A prompt, its random stream, and the tokens emitted so far."""

    prompt_ids: Sequence[int]
    roles: HeadRoles
    stream: torch.Generator
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
        emitted: Iterable[EmittedToken | None],
        witness: torch.Tensor,
        ending: Ending,
        max_new_tokens: int,
    ) -> None:
        """Add a round's tokens, up to the end or max_new_tokens."""
        if self.first_state is None:
            self.first_state = witness
        for each in emitted:
            if each is None:
                self.is_broken = self.is_complete = True
                return
            self.emitted.append(each)
            if len(self.emitted) == max_new_tokens or ending.is_at(self.tokens):
                self.is_complete = True
                return

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
    """Start a response by drawing the head that drafts, the first use of its random stream.

    So entrants with the same number of heads draft a prompt with the same head.

    Args:
        prompt_ids: The prompt's tokens, one at least.
        seed: Of the response.
        n_heads: How many heads may draft.
        bypass_jury: Whether the head that drafts decides alone.
    """
    stream = random_stream(seed)
    draft = int(torch.randint(n_heads, (), generator=stream))
    jury = () if bypass_jury else tuple(head for head in range(n_heads) if head != draft)
    return HydraRow(prompt_ids, HeadRoles(draft, jury), stream)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


class EmittedBlock(NamedTuple):
    """The tokens that a round emitted for each row."""

    emitted: list[list[EmittedToken | None]]  # None: the logits were not finite, and the row ends
    first_state: torch.Tensor  # (B, D) states of the heads that decided the first tokens


class BlockMetrics(NamedTuple):
    """A block's results on the CPU; the rejection's values are meaningless if all were accepted."""

    n_accepted: list[int]  # by row, like the others
    is_finite: list[bool]  # False: the logits after the accepted drafts are not finite
    tokens: list[list[int]]  # by row and step, like the next three
    entropy: list[list[float]]
    stability_radius: list[list[int]]
    stability_margin: list[list[float]]
    draft: list[int]  # the first rejected one
    suppression: list[float]  # of that draft
    metrics: list[list[int]]  # of each row's jurors at that place

    def emitted(self, row: int) -> Iterator[EmittedToken | None]:
        """Yield a row's accepted drafts, and the replacement of the first rejected one."""
        n_accepted, tokens = self.n_accepted[row], self.tokens[row]
        for step in range(n_accepted):
            yield EmittedToken(tokens[step], self._votes(row, step))
        if n_accepted == len(tokens):
            return
        if self.is_finite[row]:
            draft = self.draft[row]
            radius = validity_radius(self.metrics[row], draft)
            rejection = RejectionMetrics(draft, radius, self.suppression[row])
            yield EmittedToken(tokens[n_accepted], self._votes(row, n_accepted), rejection)
        else:
            yield None

    def _votes(self, row: int, step: int) -> TokenMetrics:
        return TokenMetrics(
            self.entropy[row][step],
            self.stability_radius[row][step],
            self.stability_margin[row][step],
        )
