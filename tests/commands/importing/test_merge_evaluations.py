"""Two ledgers that each evaluated the same entrant: what one may take of the other."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from commands.auditing.verify import verify
from commands.cli.imports import conflicts_table
from commands.decisions.recorder import EvaluationRecorder
from commands.evaluating.evaluate import EvaluationCounts, evaluate_all, plan_evaluation
from commands.importing.merge import MergeCounts, merge_ledger
from commands.ports import GenerationFailure, GenerationTask, no_progress
from commands.settings.sections import EvaluationOptions
from ledger.storage.writer import EventWriter
from ledger.store import Ledger
from tests.support.builders.commands import types_of
from tests.support.builders.evaluating import Capitals, answering
from tests.support.builders.events import STREAM

ATLAS = Capitals(*((f"{n}?", "yes") for n in range(6)))

Choices: TypeAlias = tuple[int, float, int | None, bool]
CHOICES = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from([0.0, 0.5]),
        st.sampled_from([None, 1, 2]),
        st.booleans(),
    ),
    max_size=4,
)


class Pair(NamedTuple):
    """Two ledgers that know nothing of each other."""

    ours: Ledger
    theirs: Ledger

    def take(self) -> MergeCounts:
        """Take theirs into ours."""
        return merge_ledger(self.ours, self.theirs.rows())


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Give two empty ledgers."""
    with ExitStack() as opened:
        yield Pair(*(opened.enter_context(Ledger.in_memory()) for _ in range(2)))


def too_long(task: GenerationTask) -> GenerationFailure:
    """Give a question up."""
    return GenerationFailure(task.response_key, "prompt_too_long", "9 tokens")


def evaluate(
    ledger: Ledger,
    *,
    length: int = 4,
    temperature: float = 0.0,
    limit: int | None = None,
    answers: bool = True,
) -> EvaluationCounts:
    """Evaluate an entrant on some questions, greedily if not said otherwise."""
    options = EvaluationOptions(length=length, temperature=temperature)
    inference, _ = answering(lambda task: "yes" if answers else too_long(task))
    ATLAS.chunk_size = 2
    planned = plan_evaluation(ATLAS, inference, options)
    recorder = EvaluationRecorder(ledger, STREAM)
    return evaluate_all(recorder, [planned], on_progress=no_progress, limit=limit)


def evaluate_each(ledger: Ledger, choices: Sequence[Choices]) -> None:
    """Evaluate under one choice of settings after another."""
    for length, temperature, limit, answers in choices:
        evaluate(ledger, length=length, temperature=temperature, limit=limit, answers=answers)


def faults_of(ledger: Ledger) -> Sequence[str]:
    """Return what is wrong with a ledger, in words."""
    return [fault.why for fault in verify(ledger, [], no_progress).faults]


def test_samples_of_other_settings_are_left_out_with_their_completion(pair: Pair) -> None:
    """Our plan has its number, so theirs is not here, and nothing here could follow from it."""
    evaluate(pair.ours)
    evaluate(pair.theirs, temperature=0.5)
    before = pair.ours.head

    taken = pair.take()

    assert [each.row.type for each in taken.conflicts] == ["EvaluationPlanned"]
    assert (taken.n_new, taken.n_unfounded) == (0, 4 + 1)
    assert pair.ours.head == before
    assert faults_of(pair.ours) == []


@pytest.mark.parametrize("says_ours", [True, False])
def test_a_plan_that_does_not_say_how_it_asks_is_no_conflict(pair: Pair, says_ours: bool) -> None:
    """It was made by an earlier version, and is the same otherwise."""
    inference, _ = answering(lambda _: "yes")
    said = plan_evaluation(ATLAS, inference, EvaluationOptions())
    silent = said._replace(plan=replace(said.plan, asking=UNSET))
    plans = (said, silent) if says_ours else (silent, said)
    for ledger, planned in zip((pair.ours, pair.theirs), plans, strict=True):
        evaluate_all(EvaluationRecorder(ledger, STREAM), [planned], on_progress=no_progress)

    taken = pair.take()

    assert (taken.n_new, taken.n_unfounded, taken.conflicts) == (0, 0, ())
    assert faults_of(pair.ours) == []


def test_of_a_longer_run_what_our_plan_asks_for_is_taken(pair: Pair) -> None:
    """It was observed under the same settings: asking again would pay twice."""
    evaluate(pair.ours, length=4, limit=2)
    evaluate(pair.theirs, length=6)

    taken = pair.take()

    # With two items that are new; four items and the entrant are known.
    assert (taken.n_new, taken.n_known, taken.n_unfounded) == (2 + 2, 2 + 5, 2 + 1)
    assert faults_of(pair.ours) == []
    assert evaluate(pair.ours, length=4).n_missing == 0


def test_samples_wait_for_the_plan_that_brings_their_run_back(pair: Pair) -> None:
    """Plans are numbered since an earlier one may come back; the number of the later is free."""
    evaluate(pair.ours)
    for temperature in (0.5, 0.7, 0.5):
        evaluate(pair.theirs, temperature=temperature)

    taken = pair.take()

    assert (len(taken.conflicts), taken.n_unfounded) == (1, 1)
    assert faults_of(pair.ours) == []
    assert evaluate(pair.ours, temperature=0.5).n_missing == 0


def test_a_completion_that_counts_as_given_up_what_we_observed_is_left_out(pair: Pair) -> None:
    """Their machine had less memory; here its counts would not be true."""
    evaluate(pair.ours, limit=2)
    evaluate(pair.theirs, answers=False)

    taken = pair.take()
    again = pair.take()

    assert (taken.n_unfounded, again.n_unfounded, again.n_new) == (1, 1, 0)
    assert evaluate(pair.ours).n_missing == 0
    assert types_of(pair.ours).count("EvaluationCompleted") == 1
    assert faults_of(pair.ours) == []


class Busy(Ledger):
    """A ledger on which an evaluation goes on until a merge has it to itself."""

    is_observed = False

    @contextmanager
    def writing(self) -> Iterator[EventWriter]:
        """Observe two samples more, then let the merge go on."""
        if not self.is_observed:
            self.is_observed = True
            evaluate(self, limit=2)
        with super().writing() as writer:
            yield writer


def test_what_is_observed_while_a_merge_waits_is_known_to_it(pair: Pair) -> None:
    """A completion that contradicts it would be a fault for ever: nothing is taken back."""
    evaluate(pair.theirs, answers=False)

    with Busy.in_memory() as ours:
        taken = merge_ledger(ours, pair.theirs.rows())

        assert taken.n_unfounded == 1
        assert faults_of(ours) == []


@given(ours=CHOICES, theirs=CHOICES, then=CHOICES)
def test_whatever_both_evaluated_a_merged_ledger_is_sound(
    ours: Sequence[Choices], theirs: Sequence[Choices], then: Sequence[Choices]
) -> None:
    """Merged again it stays as it is, and every later evaluation goes on from it."""
    with Ledger.in_memory() as one, Ledger.in_memory() as other:
        pair = Pair(one, other)
        evaluate_each(one, ours)
        evaluate_each(other, theirs)

        first = pair.take()

        assert faults_of(one) == []
        assert pair.take() == first._replace(n_new=0, n_known=first.n_known + first.n_new)
        evaluate_each(one, then)
        assert faults_of(one) == []


def test_what_does_not_follow_is_told(pair: Pair) -> None:
    """It was paid for, and may be wanted: once it is planned here, it can be taken."""
    evaluate(pair.ours)
    evaluate(pair.theirs, temperature=0.5)

    table = conflicts_table(pair.take())

    assert "5 samples and completions left out that do not match" in table.notes[0]
    assert table.facts["n_unfounded"] == 5
