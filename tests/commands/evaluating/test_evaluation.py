"""What all evaluations share: names of items, subsets, chunks and steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from commands.errors import EvaluationFault
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.samples import subset
from commands.settings.sections import EvaluationOptions
from ledger.identity import Digest
from tests.support.builders.evaluating import Capitals, answering
from tests.support.builders.events import key

ITEMS = tuple(key(f"item {n}") for n in range(30))


@given(
    st.integers(min_value=0, max_value=200),
    st.integers(min_value=1, max_value=20),
    st.integers(min_value=1, max_value=4),
)
def test_batches_and_devices_cover_a_data_set(size: int, most: int, devices: int) -> None:
    """Nothing is chopped off, and no larger batch would do."""
    batch_size, n_steps = Evaluation.find_accumulation_steps(size, most, devices)

    fits = [each for each in range(1, most + 1) if size % (each * devices) == 0]
    assert batch_size == (fits[-1] if fits else None)
    assert n_steps is None or batch_size is None or batch_size * n_steps * devices == size


@given(st.permutations(ITEMS), st.integers(min_value=0, max_value=30))
def test_a_subset_does_not_depend_on_the_order_of_items(order: list[Digest], size: int) -> None:
    """So it is the same for all entrants, whatever was drawn before."""
    assert set(subset(order, size, seed=1)) == set(subset(ITEMS, size, seed=1))


@given(st.integers(min_value=0, max_value=29))
def test_a_larger_subset_holds_the_smaller(size: int) -> None:
    """What was observed on 50 items is not observed again on 100."""
    assert set(subset(ITEMS, size, seed=1)) < set(subset(ITEMS, size + 1, seed=1))


def test_another_seed_is_another_subset() -> None:
    """Half of thirty items: the same by chance once in 155 million."""
    assert set(subset(ITEMS, 15, seed=1)) != set(subset(ITEMS, 15, seed=2))


class Drawn(Capitals):
    """Capitals whose questions are other ones each time."""

    n_got = 0

    def get(self, index: int) -> tuple[str, str]:
        """Number the calls."""
        self.n_got += 1
        question, answer = super().get(index)
        return f"{self.n_got}: {question}", answer


def test_an_item_that_is_another_by_now_is_not_asked() -> None:
    """Its answer would be on record under the name of an item that nobody saw."""
    inference, generator = answering(lambda _: "Paris")

    with pytest.raises(EvaluationFault, match=r"Drawn\.get\(0\) gives another item") as caught:
        Drawn(("France?", "Paris"))(inference)

    assert caught.value.doing == "getting capitals[0]"
    assert generator.asked == []


def test_an_item_that_is_there_twice_is_asked_twice() -> None:
    """It has two names, and is what both were made of."""
    inference, generator = answering(lambda _: "Paris")

    assert Capitals(*[("France?", "Paris")] * 2)(inference, reduce="sum") == 2.0
    assert len(generator.asked) == 2


def test_samples_are_handed_over_in_chunks() -> None:
    """Rows that wait take memory."""
    inference, generator = answering(lambda _: "")
    evaluation = Capitals(*((f"{n}?", "") for n in range(5)))
    evaluation.chunk_size, options = 3, EvaluationOptions()

    batches = [*evaluation.observe_all(inference, evaluation.samples(options), options)]

    assert [len(batch) for batch in batches] == [2, 1, 2]
    assert len(generator.asked) == 5


def test_unknown_terms_are_refused() -> None:
    """A misspelt temperature would be greedy."""
    inference, _ = answering(lambda _: "")

    with pytest.raises(ValidationError, match="temprature"):
        Capitals(("?", ""))(inference, temprature=1.0)
