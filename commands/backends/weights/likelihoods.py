"""Compute log-likelihoods of windows in batches.

What the heads of a Hydra make of a text is a mixture: a response is drafted by one head d, drawn
uniformly, and sampled from P_d. So the likelihood of a text is the mean over d of the product of
P_d over its tokens, and the distribution of its next token is the mixture of the P_d, each weighted
by the likelihood that it gives to the text so far. Plain weights are one head.
"""

from collections.abc import Iterable, Sequence
from math import fsum, log
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import torch

from commands.backends.loads import group_by
from commands.backends.weights.decoding import read_tokens
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights, padded
from commands.backends.weights.windows import Window

N_LOGITS: Final = 1 << 24  # at once in float32: 64 MiB, whatever the batch
N_LOGITS_ON_CPU: Final = 1 << 18  # 1 MiB: no more than a core's cache holds


class WindowLikelihood(NamedTuple):
    """The log-likelihood of a window's targets, and the likeliest token at each place."""

    log_likelihood: float  # nats; not finite if the logits are not
    predicted: tuple[int, ...]


def input_rows(windows: Iterable[Window]) -> list[list[Window]]:
    """Group windows with the same inputs, such as a question's one-token choices: read at once.

    Each window may be given several times.
    """
    return group_by(dict.fromkeys(windows), attrgetter("inputs"))


class Heads(Protocol):
    """A model as H heads, whose states it keeps until they are asked for as distributions."""

    @property
    def n_logits(self) -> int:
        """How many logits all heads have for one token."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""

    def states(self, ids: torch.Tensor, n_last: int) -> torch.Tensor:
        """Return (H, R, n_last, D) of (R, S) tokens, which may be padded on the right."""

    def log_p(self, states: torch.Tensor) -> torch.Tensor:
        """Return (H, m, V) log P_d of each head's states (H, m, D)."""


class PlainHead:
    """Plain weights, whose states are their logits."""

    def __init__(self, loaded: LoadedWeights) -> None:
        """Take loaded weights."""
        self._loaded, self.device = loaded, loaded.device
        self.n_logits = loaded.model.config.get_text_config().vocab_size

    def states(self, ids: torch.Tensor, n_last: int) -> torch.Tensor:
        """Return (1, R, n_last, V) logits."""
        with quiet_transformers():
            return read_tokens(self._loaded, ids, n_last)[None]

    def log_p(self, states: torch.Tensor) -> torch.Tensor:
        """Return the softmax of logits."""
        return states.float().log_softmax(dim=-1)


@torch.inference_mode()
def compute_rows(
    heads: Heads, rows: Sequence[Sequence[Window]], *, n_logits: int | None = None
) -> dict[Window, WindowLikelihood]:
    """Return the likelihood of each window; at most n_logits are converted to float32 at once.

    The windows of a row have the same inputs.

    Raises:
        torch.OutOfMemoryError: The rows are too many for the device.
    """
    ids, _ = padded([row[0].inputs for row in rows], heads.device, side="right")  # (R, S)
    windows = [window for row in rows for window in row]
    rows_of = torch.tensor([n for n, row in enumerate(rows) for _ in row])
    before = torch.tensor([window.n_context - 1 for window in windows])  # the first target
    first_column = int(before.min())
    states = heads.states(ids, ids.shape[1] - first_column)  # (H, R, C, D)
    n_targets = torch.tensor([len(window.targets) for window in windows])
    ends = n_targets.cumsum(0)
    starts = (ends - n_targets).repeat_interleave(n_targets)  # (N,) of each target's window
    columns = (
        before.repeat_interleave(n_targets) - first_column + torch.arange(len(starts)) - starts
    )
    targets = torch.tensor([token for window in windows for token in window.targets])
    n_logits = n_logits or (N_LOGITS_ON_CPU if heads.device.type == "cpu" else N_LOGITS)
    wanted = torch.stack([rows_of.repeat_interleave(n_targets), columns, targets, starts])
    log_p, predicted = _at(heads, states, wanted, max(1, n_logits // heads.n_logits))
    spans = [slice(end - n, end) for n, end in zip(n_targets.tolist(), ends.tolist(), strict=True)]
    return {
        window: WindowLikelihood(_mean([fsum(each[span]) for each in log_p]), (*predicted[span],))
        for window, span in zip(windows, spans, strict=True)
    }


def _at(
    heads: Heads, states: torch.Tensor, wanted: torch.Tensor, n_at_once: int
) -> tuple[list[list[float]], list[int]]:
    """Return what each head makes of targets, (H, N), and the likeliest token at each place.

    Args:
        heads: The model.
        states: (H, R, C, D).
        wanted: (4, N) long: row, column, target, and the first place of the target's window.
        n_at_once: How many targets are looked at together.
    """
    told = torch.zeros(len(states), 0, dtype=torch.float64)  # (H, n)
    best: list[int] = []
    for row, column, target, start in torch.split(wanted, n_at_once, dim=1):
        here, place, token = (each.to(states.device) for each in (row, column, target))
        log_p = heads.log_p(states[:, here, place])  # (H, m, V)
        own = log_p.gather(2, token.expand(len(log_p), -1)[..., None])[..., 0]  # (H, m)
        n_before = told.shape[1]
        told = torch.cat([told, own.cpu().double()], dim=1)
        if len(log_p) > 1:
            so_far = torch.nn.functional.pad(told.nan_to_num(0.0, neginf=_NEVER).cumsum(1), (1, 0))
            reached = so_far[:, n_before:-1] - so_far[:, start]  # (H, m), within the window
            weights = (reached - reached.amax(dim=0)).to(log_p)
            log_p = (weights[..., None] + log_p).logsumexp(dim=0, keepdim=True)
        best += log_p[0].max(dim=1).indices.tolist()  # on a CPU quicker than argmax
    return told.tolist(), best


_NEVER: Final = -1e6  # nats, in the place of an infinity: differences of it are numbers


def _mean(of_heads: Sequence[float]) -> float:
    """Return the log of the mean of the heads' likelihoods."""
    return float(torch.tensor(of_heads, dtype=torch.float64).logsumexp(0)) - log(len(of_heads))
