"""How likely tokens are behind others, in a batch of rows that are padded on the right.

Padding stands behind everything, and attention is causal, so no real token ever sees it. Prefixes
that rows share are padded on the left and masked there, so that rows go on right behind them: also
attention that reaches only so far back reaches what it would without padding.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import torch

from commands.backends.batching import PAD_ID
from commands.backends.windows import Window

N_LOGITS: Final = 1 << 24  # at once in float32: 64 MiB, whatever the batch


class Row(NamedTuple):
    """What is read in one go, and the windows that ask about it: they differ in the last token."""

    inputs: tuple[int, ...]
    windows: tuple[Window, ...]


class Weighed(NamedTuple):
    """How likely a window's targets are together, and which token is likeliest in each place."""

    log_likelihood: float  # nats; no finite number where the logits are none
    predicted: tuple[int, ...]


class Reading(Protocol):
    """Reads one batch: first, maybe, prefixes that rows share, then the rows."""

    def begin(self, prefixes: Sequence[Sequence[int]]) -> None:
        """Read prefixes, none of them empty, and keep them in mind."""
        ...

    def weigh(self, rows: Sequence[Row], prefix_of: Sequence[int]) -> dict[Window, Weighed]:
        """Weigh rows; the tokens of prefix prefix_of[r], if any was read, begin rows[r]."""
        ...


class Place(NamedTuple):
    """Where a window is in a batch."""

    window: Window
    row: int
    column: int  # of the token behind which the first target stands


def placed(rows: Iterable[Row], n_read: Iterable[int]) -> list[Place]:
    """Return where windows are in rows of which so many tokens were read before."""
    return [
        Place(window, row, window.n_context - 1 - n_before)
        for row, (each, n_before) in enumerate(zip(rows, n_read, strict=True))
        for window in each.windows
    ]


def pad_right(rows: Iterable[Sequence[int]], device: torch.device) -> torch.Tensor:
    """Return (R, S) tokens, padded on the right."""
    tensors = [torch.tensor(row) for row in rows]
    padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD_ID)
    return padded.to(device)


def positions_behind(n_read: torch.Tensor, n_new: Sequence[int]) -> torch.Tensor:
    """Return (R, S) positions of n_new[r] tokens behind the n_read[r] that row r has read.

    Padding takes the position of the token before it: there may be none beyond.
    """
    last = torch.tensor(n_new, device=n_read.device)[:, None] - 1  # (R, 1)
    steps = torch.arange(max(n_new), device=n_read.device)
    return n_read[:, None] + torch.minimum(steps, last)
