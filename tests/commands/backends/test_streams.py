"""Every row draws from a stream that its seed alone decides."""

import torch

from commands.backends.weights.sampling import cut_to_float32, random_stream, uniforms


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
