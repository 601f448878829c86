"""How firmly a jury of experts stands behind a token that it emits, or against a draft.

P is the product of experts, as logarithms over the last dimension; a vote is the favourite token of
one expert. Shapes: E experts, V tokens, ... any dimensions or none.
"""

from collections import Counter
from collections.abc import Iterable

import torch

from commands.backends.poe import of_token


def entropy(log_p: torch.Tensor) -> torch.Tensor:
    """Return -sum P ln P, in nats, where 0 ln 0 = 0: (..., V) to (...)."""
    terms: torch.Tensor = torch.special.entr(log_p.exp())  # (..., V)
    return terms.sum(-1)


def stability_margin(log_p: torch.Tensor) -> torch.Tensor:
    """Return the largest P less the second largest, 0 if there is but one: (..., V) to (...)."""
    if log_p.shape[-1] < 2:  # noqa: PLR2004  # the second largest of two
        return torch.zeros_like(log_p[..., 0])
    largest, second = log_p.topk(2).values.exp().unbind(-1)
    return largest - second


def stability_radius(votes: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Return how many votes may turn, whichever they are, before another token leads: (...) long.

    max(0, floor((n - n_rival) / 2)), of the token's own votes and those of its largest rival.

    Args:
        votes: (E, ...) long, each expert's favourite.
        token: (...) long, the token that is emitted.
    """
    n_agreeing = (votes.unsqueeze(0) == votes.unsqueeze(1)).sum(0)  # (E, ...), an expert and others
    is_for = votes == token  # (E, ...)
    n_rival = n_agreeing.masked_fill(is_for, 0).amax(0)  # (...)
    return (is_for.sum(0) - n_rival).clamp(min=0) // 2


def suppression(log_p: torch.Tensor, draft: torch.Tensor) -> torch.Tensor:
    """Return P of a rejected draft, (..., V) and (...) to (...): the lower, the more suppressed."""
    return of_token(log_p, draft).exp()


def validity_radius(votes: Iterable[int], draft: int) -> int:
    """Return how few votes must turn for the draft to have more than any other token.

    A vote of the largest rival at a time: no other lowers the lead by as much.
    """
    rivals = Counter(votes)
    n_votes = rivals.pop(draft, 0)
    n_turned = 0
    while rivals and max(rivals.values()) >= n_votes:
        [(largest, _)] = rivals.most_common(1)
        rivals[largest] -= 1
        n_votes += 1
        n_turned += 1
    return n_turned
