"""The product of experts, and speculative decoding that samples from it exactly.

P(x) is proportional to the product over the experts of p_e(x)^beta (Hinton 2002, "Training
Products of Experts by Minimizing Contrastive Divergence", with an exponent). A draft x that was
drawn from q is accepted with probability min(1, P(x) / q(x)); in place of one that is not, a token
is drawn from max(P - q, 0), normalised. What is emitted then follows P, whatever q is: Leviathan,
Kalman and Matias 2023, "Fast Inference from Transformers via Speculative Decoding", algorithm 1
and appendix A.1; Chen et al. 2023, "Accelerating Large Language Model Decoding with Speculative
Sampling".

Greedy decoding needs no rule of its own. It is the same with `point_mass(log_p)` for P and for q:
the draft is q's first choice, it is accepted if it is P's, and else P's takes its place.

Distributions are natural logarithms over the last dimension, -inf for probability 0. Shapes:
E experts, B rows, V tokens, ... any dimensions or none.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import torch

from commands.backends.weights.sampling import sample


class VerifiedDrafts(NamedTuple):
    """Which drafts of B rows were accepted, and what replaces the others."""

    is_accepted: torch.Tensor  # (B,) bool
    replacement: torch.Tensor  # (B,) long; meaningless where the draft is accepted
    is_finite: torch.Tensor  # (B,) bool, False where the P or q that decided is not finite


def product_of_experts(
    logits: torch.Tensor, *, temperature: float, beta: float = 1.0
) -> torch.Tensor:
    """Return log P of the experts: of one alone, with beta 1, its softmax at the temperature.

    log P(x) = beta * sum_e log p_e(x) - log Z, where log p_e(x) = z_e(x) / temperature - log Z_e.
    No Z_e depends on x, so log Z takes them in, and only the sum of the logits matters. Nothing is
    exponentiated before the maximum is taken off, so no number of experts underflows. A token that
    one expert gives probability 0 has probability 0.

    Logits (E, ..., V) of any float type become (..., V), in float32 at least. Where a logit is NaN
    or infinite, or all tokens are ruled out together, the greatest of them is not finite.
    """
    at_least_float32 = torch.promote_types(logits.dtype, torch.float32)
    joint = logits.sum(0, dtype=at_least_float32)  # (..., V)
    return (joint * (beta / temperature)).log_softmax(-1)


def point_mass(log_p: torch.Tensor) -> torch.Tensor:
    """Put all probability on the most probable token, the first of equals: (..., V) to (..., V)."""
    top, token = log_p.max(-1, keepdim=True)  # (..., 1)
    certain = top - top  # log 1, or NaN if there is no distribution
    return (certain - math.inf).expand_as(log_p).scatter(-1, token, certain)


def verify(
    log_p: torch.Tensor,
    log_q: torch.Tensor,
    draft: torch.Tensor,
    *,
    uniform: torch.Tensor,
    replacement_uniforms: torch.Tensor,
) -> VerifiedDrafts:
    """Accept each row's draft or not, and draw a replacement.

    Args:
        log_p: (B, V).
        log_q: (B, V), which the drafts were drawn from.
        draft: (B,) long.
        uniform: (B,) in (0, 1).
        replacement_uniforms: (B, n) as `sample` takes them.
    """
    is_accepted = uniform < acceptance(log_p, log_q, draft)  # (B,); not where it is NaN
    left_over = residual(log_p, log_q)
    replacement, is_possible = sample(left_over, replacement_uniforms)
    return VerifiedDrafts(is_accepted, replacement, is_accepted | is_possible)


def acceptance(log_p: torch.Tensor, log_q: torch.Tensor, drafts: torch.Tensor) -> torch.Tensor:
    """Return the probability min(1, P/q) to accept each draft: (..., V), (..., V), (...) to (...).

    It is NaN for a draft that neither P nor q allows.
    """
    return (log_prob_of(log_p, drafts) - log_prob_of(log_q, drafts)).clamp(max=0).exp()


def residual(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """Return log of max(P - q, 0), normalised: (..., V) and (..., V) to (..., V).

    Where P and q differ by less than rounding shows, nothing is left over, and it is P itself.
    """
    excess = (log_p.exp() - log_q.exp()).clamp(min=0)
    is_empty = (excess == 0).all(-1, keepdim=True)
    return torch.where(is_empty, log_p, excess.log()).log_softmax(-1)


def log_prob_of(log_p: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Return the log probability of one token each: (..., V) and (...) to (...)."""
    return log_p.gather(-1, token.unsqueeze(-1)).squeeze(-1)


def entropy(log_p: torch.Tensor) -> torch.Tensor:
    """Return -sum P ln P, in nats, where 0 ln 0 = 0: (..., V) to (...)."""
    terms: torch.Tensor = torch.special.entr(log_p.exp())  # (..., V)
    return terms.sum(-1)


def stability_margin(log_p: torch.Tensor) -> torch.Tensor:
    """Return the largest P less the second largest: (..., V) to (...)."""
    largest, second = log_p.topk(2).values.exp().unbind(-1)
    return largest - second


def stability_radius(votes: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Return how many votes can change, whichever they are, before another token leads: (...) long.

    max(0, floor((n - n_rival) / 2)), of the token's own votes and those of its largest rival, for
    votes (E, ...) long, each expert's favourite.
    """
    n_agreeing = (votes.unsqueeze(0) == votes.unsqueeze(1)).sum(
        0
    )  # (E, ...), counting the expert itself
    is_for = votes == token  # (E, ...)
    n_rival = n_agreeing.masked_fill(is_for, 0).amax(0)  # (...)
    return (is_for.sum(0) - n_rival).clamp(min=0) // 2


def validity_radius(votes: Iterable[int], draft: int) -> int:
    """Return how many votes must move to the draft, each from the largest rival, until it leads."""
    rivals = Counter(votes)
    n_votes = rivals.pop(draft, 0)
    n_turned = 0
    while rivals and max(rivals.values()) >= n_votes:
        [(largest, _)] = rivals.most_common(1)
        rivals[largest] -= 1
        n_votes += 1
        n_turned += 1
    return n_turned
