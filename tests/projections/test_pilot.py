"""The pilot's prompts."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.registration import Prompt
from projections.tournament.matches import pilot_prompts, proportional_strata, recorded_pilot
from tests.builders import prompt

# Positions from 0 in a bank of 24, 69 and 50 prompts, for strata of 8, 24 and 18 and the default
# seed; checked against the digest of the pilot's ids that the customer published.
POSITIONS = [
    *(1, 2, 10, 11, 13, 14, 20, 23),
    *(25, 27, 28, 35, 36, 37, 38, 39, 40, 44, 49, 53),
    *(57, 59, 61, 62, 65, 66, 67, 74, 77, 82, 83, 88),
    *(94, 95, 99, 102, 104, 105, 106, 107, 116),
    *(117, 119, 129, 130, 131, 134, 136, 138, 141),
]
SHIPPED = {"recall": 24, "vignette": 69, "curated": 50}


def bank(sizes: dict[str, int]) -> list[Prompt]:
    """Return a bank of so many prompts per source, one source after the other."""
    sources = [source for source, size in sizes.items() for _ in range(size)]
    return [prompt(str(n), source=source) for n, source in enumerate(sources)]


def test_the_pilot_is_the_one_of_the_customer() -> None:
    """A pilot on other prompts could not be compared with the one that was published."""
    chosen = pilot_prompts(bank(SHIPPED), {"recall": 8, "vignette": 24, "curated": 18})

    assert [int(prompt_id) for prompt_id in chosen] == POSITIONS


def test_the_shipped_bank_shares_its_pilot_as_the_customer_does() -> None:
    """Strata are left out of most configurations, and then follow from the bank."""
    strata = proportional_strata(bank(SHIPPED), 50)

    assert strata == {"recall": 8, "vignette": 24, "curated": 18}


def test_another_seed_draws_another_pilot() -> None:
    """A user who changes the seed must not find the same prompts under another name."""
    strata = {"recall": 8}

    first = pilot_prompts(bank(SHIPPED), strata, seed=1)
    second = pilot_prompts(bank(SHIPPED), strata, seed=2)

    assert len(first) == len(second) == 8
    assert first != second


def test_strata_are_drawn_in_the_order_given() -> None:
    """One generator draws them all, so their order is a part of what was published."""
    prompts = bank({"recall": 20, "curated": 20})

    here = pilot_prompts(prompts, {"recall": 5, "curated": 5})
    there = pilot_prompts(prompts, {"curated": 5, "recall": 5})

    assert here != there


@pytest.mark.parametrize("source", ["recall", "unheard-of"])
def test_a_stratum_larger_than_its_source_is_refused(source: str) -> None:
    """A smaller pilot than the one asked for would pass for it without a word."""
    prompts = bank({"recall": 2})

    with pytest.raises(ValueError, match=f"3 prompts of source '{source}'") as caught:
        pilot_prompts(prompts, {source: 3})

    there = len([each for each in prompts if each.source == source])
    assert str(caught.value).endswith(f"the bank has {there}; lower [pilot] size or strata")


@given(data=st.data(), seed=st.integers(min_value=0, max_value=2**32))
def test_each_stratum_is_drawn_whole_and_in_bank_order(data: st.DataObject, seed: int) -> None:
    """No prompt twice, none of another source, and the same order as the headline run."""
    prompts = data.draw(st.permutations(bank({"recall": 4, "vignette": 6, "curated": 5})))
    strata = {"vignette": data.draw(st.integers(0, 6)), "recall": data.draw(st.integers(0, 4))}

    chosen = pilot_prompts(prompts, strata, seed=seed)

    drawn = [each for each in prompts if each.prompt_id in chosen]
    assert chosen == tuple(each.prompt_id for each in drawn)
    for source, size in strata.items():
        assert sum(each.source == source for each in drawn) == size


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=5), share=st.fractions(0, 1))
def test_shares_are_those_of_the_largest_remainder(counts: list[int], share: Fraction) -> None:
    """Every place is given, no source is more than one off, and no source is overdrawn."""
    sizes = {f"source {n}": count for n, count in enumerate(counts)}
    size = int(share * sum(counts))

    strata = proportional_strata(bank(sizes), size)

    exact = {source: Fraction(size * count, sum(counts)) for source, count in sizes.items()}
    assert sum(strata.values()) == size
    assert all(abs(strata[source] - exact[source]) < 1 for source in sizes)
    assert all(strata[source] <= sizes[source] for source in sizes)


def test_equal_remainders_go_to_the_first_in_bank_order() -> None:
    """4/3, 1/3 and 4/3 have equal remainders; rounded to floats, the second would win."""
    strata = proportional_strata(bank({"first": 4, "second": 1, "third": 4}), 3)

    assert strata == {"first": 2, "second": 0, "third": 1}


@pytest.mark.parametrize(
    ("pilot", "n_prompts"),
    [
        ({"size": 50, "seed": 20260427, "strata": None}, 50),
        ({"size": 50, "seed": 20260427, "strata": {"recall": 3}}, 3),
        ({"size": 144, "seed": 20260427, "strata": None}, 0),
        (None, 0),
    ],
)
def test_a_pilot_is_drawn_again_from_what_was_recorded(
    pilot: dict[str, object] | None, n_prompts: int
) -> None:
    """A bank that is too small for its pilot, and a record without one, have none to read."""
    configuration = json.dumps({} if pilot is None else {"pilot": pilot})

    assert len(recorded_pilot(bank(SHIPPED), configuration)) == n_prompts
