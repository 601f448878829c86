"""Sampling is exact, and each row's own."""

import math

import torch

from commands.backends.weights.sampling import GumbelNoise
from tests.commands.backends.chi_square import chi_square_p

NO_TOKENS = torch.empty(0, 0)
LOGITS = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0])


def sample(seeds: list[int], temperature: float, n_steps: int) -> torch.Tensor:
    """Draw (rows, steps) tokens, all from LOGITS."""
    noise = GumbelNoise(seeds, temperature)
    scores = LOGITS.repeat(len(seeds), 1)  # (B, V)
    return torch.stack([noise(NO_TOKENS, scores).argmax(-1) for _ in range(n_steps)], 1)  # (B, n)


def fit(tokens: torch.Tensor, temperature: float) -> float:
    """Return how probable tokens are that lie further from the softmax."""
    counts = torch.bincount(tokens.flatten(), minlength=len(LOGITS))
    return chi_square_p(counts, (LOGITS / temperature).softmax(-1) * tokens.numel())


def test_the_tokens_of_one_row_follow_the_softmax() -> None:
    """The trick must sample from the entrant's distribution, not from something like it."""
    for temperature in (0.7, 1.0, 1.6):
        tokens = sample([5], temperature, n_steps=4000)

        assert fit(tokens, temperature) > 0.001


def test_the_first_tokens_of_neighbouring_seeds_follow_the_softmax() -> None:
    """Seeds that count up must not give streams that resemble each other."""
    tokens = sample(list(range(4000)), 1.0, n_steps=1)

    assert fit(tokens, 1.0) > 0.001


def test_successive_tokens_of_a_row_are_independent() -> None:
    """A stream that started anew at each step would repeat one token for ever."""
    tokens = sample([9], 1.0, n_steps=4000)[0]

    repeats = (tokens[1:] == tokens[:-1]).float().mean()
    expected = LOGITS.softmax(-1).square().sum()
    assert math.isclose(repeats, expected, abs_tol=0.03)


def test_a_row_keeps_its_tokens_among_other_neighbours() -> None:
    """Batches change from run to run; what an entrant says must not."""
    alone = sample([7], 1.0, n_steps=20)[0]
    first = sample([7, 8, 9], 1.0, n_steps=20)[0]
    last = sample([1, 2, 3, 7], 1.0, n_steps=20)[3]

    assert torch.equal(alone, first)
    assert torch.equal(alone, last)


def test_different_seeds_give_different_tokens() -> None:
    """Several samples of one prompt are worth nothing if they are the same."""
    tokens = sample([1, 2], 1.0, n_steps=40)

    assert not torch.equal(tokens[0], tokens[1])


def test_a_low_temperature_is_nearly_greedy() -> None:
    """Scores are divided by the temperature, not multiplied."""
    assert torch.all(sample([1, 2, 3], 0.01, n_steps=20) == LOGITS.argmax())


def test_the_global_random_state_stays_as_it_was() -> None:
    """A caller's own random numbers must not depend on whether something was generated."""
    before = torch.get_rng_state()

    sample([1, 2], 1.0, n_steps=3)

    assert torch.equal(torch.get_rng_state(), before)
