"""Sampling is exact, each row draws from a stream of its own, and broken logits are seen."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TopPLogitsWarper

from commands.backends.weights.sampling import (
    NEVER,
    FiniteWatch,
    GumbelNoise,
    StopBrokenRows,
    cut_to_float32,
    nucleus,
    random_stream,
    uniforms,
)
from tests.support.statistics import chi_square_p

NO_TOKENS = torch.empty(0, 0)
SOUND = [0.5, -1.0, 2.0]


def watched(*steps: list[list[float]]) -> FiniteWatch:
    """Let a new watch see the logits of some steps."""
    watch = FiniteWatch(len(steps[0]), torch.device("cpu"))
    for rows in steps:
        watch(NO_TOKENS, torch.tensor(rows))
    return watch


@pytest.mark.parametrize(
    "broken", [[0.0, math.nan, 1.0], [0.0, math.inf, 1.0], [-math.inf, -math.inf, -math.inf]]
)
def test_only_the_broken_row_is_noted(broken: list[float]) -> None:
    """One prompt that overflows must not take its batch with it."""
    watch = watched([SOUND, broken])

    assert watch.broken_at.tolist() == [NEVER, 0]


def test_single_tokens_may_be_ruled_out() -> None:
    """Minus infinity on a few tokens is how some models mask unused ones."""
    watch = watched([[-math.inf, 1.0, 2.0]])

    assert watch.broken_at.tolist() == [NEVER]


def test_the_first_broken_step_is_kept() -> None:
    """What a row does after its end token does not count, so the step matters."""
    watch = watched([SOUND], [[math.nan, 0.0, 0.0]], [SOUND], [[math.nan, 0.0, 0.0]])

    assert watch.broken_at.tolist() == [1]


def test_broken_rows_end_and_sound_rows_go_on() -> None:
    """In float16 whole banks can overflow; generating them to the end would cost hours."""
    watch = watched([[math.nan, 0.0, 0.0], SOUND])

    assert StopBrokenRows(watch)(NO_TOKENS, None).tolist() == [True, False]


EIGHT_LOGITS = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0])


def sample(seeds: list[int], temperature: float, n_steps: int) -> torch.Tensor:
    """Draw (rows, steps) tokens, all from LOGITS."""
    noise = GumbelNoise(seeds, temperature)
    scores = EIGHT_LOGITS.repeat(len(seeds), 1)  # (B, V)
    return torch.stack([noise(NO_TOKENS, scores).argmax(-1) for _ in range(n_steps)], 1)  # (B, n)


def fit(tokens: torch.Tensor, temperature: float) -> float:
    """Return how probable tokens are that lie further from the softmax."""
    counts = torch.bincount(tokens.flatten(), minlength=len(EIGHT_LOGITS))
    return chi_square_p(counts, (EIGHT_LOGITS / temperature).softmax(-1) * tokens.numel())


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
    expected = EIGHT_LOGITS.softmax(-1).square().sum()
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
    assert torch.all(sample([1, 2, 3], 0.01, n_steps=20) == EIGHT_LOGITS.argmax())


def test_the_global_random_state_stays_as_it_was() -> None:
    """A caller's own random numbers must not depend on whether something was generated."""
    before = torch.get_rng_state()

    sample([1, 2], 1.0, n_steps=3)

    assert torch.equal(torch.get_rng_state(), before)


FOUR_LOGITS = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]]))
NO_TOKENS_OF_ONE_ROW = torch.zeros(1, 0, dtype=torch.long)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.05, [1]), (0.39, [1]), (0.45, [1, 3]), (0.69, [1, 3]), (0.75, [1, 2, 3])],
)
def test_the_token_that_crosses_p_is_kept(top_p: float, kept: list[int]) -> None:
    """Without it the tokens that are left would have less than p together, or there are none."""
    assert nucleus(FOUR_LOGITS, top_p).isfinite()[0].nonzero().flatten().tolist() == kept


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.999))
def test_the_rule_is_that_of_transformers(seed: int, top_p: float) -> None:
    """So that an entrant is sampled as its authors sample it."""
    scores = 3 * torch.randn(3, 50, generator=torch.Generator().manual_seed(seed))

    ours = nucleus(scores, top_p)

    theirs = TopPLogitsWarper(top_p)(NO_TOKENS_OF_ONE_ROW, scores)
    likelier = scores.softmax(-1).sort(descending=True).values.cumsum(-1)
    if (likelier - top_p).abs().min() > 1e-6:  # by rounding, either side of it is right
        assert torch.equal(ours, theirs)


def test_at_one_nothing_changes() -> None:
    """Texts that were sampled before there was a choice stay what they are."""
    assert nucleus(FOUR_LOGITS, 1.0) is FOUR_LOGITS


def test_of_equal_tokens_the_first_are_kept() -> None:
    """Whatever order a sort leaves them in on another device, the text must be the same."""
    assert nucleus(torch.zeros(1, 64), 0.1).isfinite()[0].nonzero().flatten().tolist() == [
        *range(7)
    ]


def test_a_row_is_filtered_by_itself() -> None:
    """What it may say must not depend on its neighbours."""
    scores = 3 * torch.randn(16, 200, generator=torch.Generator().manual_seed(0))

    alone = torch.cat([nucleus(row[None], 0.9) for row in scores])

    assert torch.equal(alone, nucleus(scores, 0.9))


def test_what_is_no_distribution_stays_none() -> None:
    """A broken row must be seen to be broken, not be repaired by leaving the NaN out."""
    broken = FOUR_LOGITS.clone()
    broken[0, 2] = math.nan

    assert not nucleus(broken, 0.5).amax(-1).isfinite()


def test_a_seed_gives_the_same_stream_for_ever() -> None:
    """Texts that ledgers hold were sampled from it; another stream would make them unrepeatable."""
    first = uniforms([random_stream(5)], 3)

    assert first.tolist() == [[0.07648087211745447, 0.5526124536500787, 0.3085486341907241]]


def test_a_row_draws_the_same_among_other_rows() -> None:
    """Batches change from run to run; what an entrant says must not."""
    alone = uniforms([random_stream(7)], 9)
    beside = uniforms([random_stream(seed) for seed in (1, 7, 2)], 9)

    assert torch.equal(beside[1], alone[0])
    assert not torch.equal(beside[0], beside[1])


def test_a_stream_goes_on_where_it_stopped() -> None:
    """Rounds that drew the same numbers again would repeat themselves."""
    stream = random_stream(3)
    in_rounds = torch.cat([uniforms([stream], n) for n in (4, 5, 20)], dim=1)

    assert torch.equal(in_rounds, uniforms([random_stream(3)], 29))


def test_uniforms_are_of_53_bits() -> None:
    """With 24, a token of a probability under 6e-8 would be drawn never, or far too often."""
    drawn = uniforms([random_stream(1)], 100)

    assert drawn.dtype == torch.float64
    assert not torch.equal(drawn, drawn.float().double())


def test_uniforms_cut_to_float32_stay_below_one() -> None:
    """Rounded to 1, a uniform would refuse a draft that is certain."""
    below_one = torch.tensor([0.0, 0.75, 1 - 2**-53], dtype=torch.float64)

    assert cut_to_float32(below_one).tolist() == [0.0, 0.75, 1 - 2**-24]
