"""What a round of decoding made of each row, taken off the device."""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from commands.backends.hydra_row import Emitted, Rejection, Votes
from commands.backends.poe_metrics import validity_radius


class Block(NamedTuple):
    """What a round made of each row."""

    emitted: list[list[Emitted | None]]  # None: the logits were not finite; nothing follows
    witness: torch.Tensor  # (B, D) states of the heads that decided on the first tokens


class BlockTold(NamedTuple):
    """A block off the device: n_accepted and is_sound by row, all else by row and step."""

    n_accepted: list[int]
    is_sound: list[bool]  # False: the logits behind the accepted drafts are no numbers
    tokens: list[list[int]]
    drafts: list[list[int]]
    entropy: list[list[float]]
    stability_radius: list[list[int]]
    stability_margin: list[list[float]]
    suppression: list[list[float]]
    votes: list[list[list[int]]]

    def emitted(self, row: int) -> Iterator[Emitted | None]:
        """Yield a row's accepted drafts and what replaced the first that was not."""
        n_accepted, n_steps = self.n_accepted[row], len(self.tokens[row])
        for step in range(min(n_accepted + 1, n_steps)):
            if step == n_accepted and not self.is_sound[row]:
                yield None
                return
            votes = Votes(
                self.entropy[row][step],
                self.stability_radius[row][step],
                self.stability_margin[row][step],
            )
            rejection = self._rejection(row, step) if step == n_accepted else None
            yield Emitted(self.tokens[row][step], votes, rejection)

    def _rejection(self, row: int, step: int) -> Rejection:
        draft = self.drafts[row][step]
        radius = validity_radius(self.votes[row][step], draft)
        return Rejection(draft, radius, self.suppression[row][step])
