"""Seeds of responses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.identity import PromptId
from projections.tournament.matches import prompt_seed


@pytest.mark.parametrize(
    ("prompt_id", "seed"),
    [
        ("srcA_00008", 3661902417),
        ("srcB_00001", 1037086922),
        ("srcC_001", 1428314754),
        ("p1", 2053764746),
    ],
)
def test_seeds_equal_those_of_the_customers_harness(prompt_id: str, seed: int) -> None:
    """Sampled entrants draw as they did before, so old and new responses can be compared."""
    assert prompt_seed(PromptId(prompt_id)) == seed


@given(prompt_id=st.text(), base=st.integers(min_value=0), sample=st.integers(min_value=0))
def test_every_seed_fits_a_random_generator(prompt_id: str, base: int, sample: int) -> None:
    """Generators refuse seeds outside 32 bits, and events refuse to hold them."""
    seed = prompt_seed(PromptId(prompt_id), base=base, sample=sample)

    assert 0 <= seed < 2**32


def test_the_base_and_the_sample_move_the_seed() -> None:
    """A user who asks for other draws, or for a second response, gets other random numbers."""
    prompt_id = PromptId("p1")

    seeds = [
        prompt_seed(prompt_id),
        prompt_seed(prompt_id, base=10),
        prompt_seed(prompt_id, sample=1),
    ]

    assert seeds == [2053764746, 2053764756, 2053764747]
