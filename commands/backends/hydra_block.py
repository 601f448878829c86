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
    """A block off the device; what is said of drafts means nothing where all were accepted."""

    n_accepted: list[int]  # by row, as the others
    is_sound: list[bool]  # False: the logits behind the accepted drafts are no numbers
    tokens: list[list[int]]  # by row and step, as the next three
    entropy: list[list[float]]
    stability_radius: list[list[int]]
    stability_margin: list[list[float]]
    draft: list[int]  # the first that was not accepted
    suppression: list[float]  # of that draft
    votes: list[list[int]]  # of each row's jurors, where it was

    def emitted(self, row: int) -> Iterator[Emitted | None]:
        """Yield a row's accepted drafts and what replaced the first that was not."""
        n_accepted, tokens = self.n_accepted[row], self.tokens[row]
        for step in range(n_accepted):
            yield Emitted(tokens[step], self._votes(row, step))
        if n_accepted == len(tokens):
            return
        if self.is_sound[row]:
            yield Emitted(tokens[n_accepted], self._votes(row, n_accepted), self._rejection(row))
        else:
            yield None

    def _votes(self, row: int, step: int) -> Votes:
        return Votes(
            self.entropy[row][step],
            self.stability_radius[row][step],
            self.stability_margin[row][step],
        )

    def _rejection(self, row: int) -> Rejection:
        draft = self.draft[row]
        return Rejection(draft, validity_radius(self.votes[row], draft), self.suppression[row])
