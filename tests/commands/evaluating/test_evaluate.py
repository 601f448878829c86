"""Evaluating what is owed: resumed where it stopped, never twice, and no money is forgotten."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from commands.decisions.recorder import EvaluationRecorder
from commands.errors import EvaluationFault, NothingReadable
from commands.evaluating.evaluate import (
    EvaluationCounts,
    PlannedEvaluation,
    evaluate_all,
    is_done,
    missing_requests,
    missing_samples,
    plan_evaluation,
)
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.plan import EvaluationPlans, mixed_scorings
from commands.evaluating.rollout import ScoredEvaluation
from commands.evaluating.samples import Inference
from commands.ports import GenerationFailure, GenerationTask, no_progress
from commands.settings.sections import EvaluationOptions
from ledger.errors import TourneyError
from ledger.events.evaluations import EvaluationCompleted, EvaluationPlanned, WayOfAsking
from ledger.identity import EntrantId, StreamId
from ledger.store import Ledger
from projections.evaluations.state import Labels
from tests.support.builders.commands import PowerCut, types_of
from tests.support.builders.evaluating import (
    Capitals,
    Echoes,
    Endings,
    Letters,
    altered,
    answering,
    reading,
)
from tests.support.builders.events import STREAM, entrant

ITEMS = tuple((f"{n}?", "yes") for n in range(6))
ATLAS = Capitals(*ITEMS)


@pytest.fixture
def recorder(ledger: Ledger) -> EvaluationRecorder:
    """Give the evaluations of an empty ledger."""
    return EvaluationRecorder(ledger, STREAM)


def planned(
    inference: Inference, evaluation: Evaluation = ATLAS, options: EvaluationOptions | None = None
) -> PlannedEvaluation:
    """Plan an evaluation; in chunks of two, unless options are given."""
    if options is None:
        evaluation.chunk_size = 2
    return plan_evaluation(evaluation, inference, options or EvaluationOptions())


def evaluate(
    recorder: EvaluationRecorder, plan: PlannedEvaluation, limit: int | None = None
) -> EvaluationCounts:
    """Observe what is owed."""
    return evaluate_all(recorder, [plan], on_progress=no_progress, limit=limit)


def says_yes(task: GenerationTask) -> str | GenerationFailure:
    """Answer all but one."""
    if task.prompt_text == "3?":
        return GenerationFailure(task.response_key, "prompt_too_long", "9 tokens")
    return "yes"


def test_every_sample_is_observed_or_unscorable_and_then_all_is_complete(
    recorder: EvaluationRecorder, ledger: Ledger
) -> None:
    """Facts, one a sample, between the plan and its completion."""
    done = evaluate(recorder, planned(answering(says_yes)[0]))

    assert done == EvaluationCounts(n_missing=6, n_observed=5, n_unscorable=1)
    assert types_of(ledger) == [
        "EntrantRegistered",
        *["ItemRegistered"] * 6,
        "EvaluationPlanned",
        *["SampleObserved"] * 3,
        "SampleUnscorable",
        *["SampleObserved"] * 2,
        "EvaluationCompleted",
    ]
    [run] = recorder.state.runs
    assert not run.missing
    assert [each.reason for each in run.unscorable] == ["too_long"]
    assert recorder.state.completed["base", "capitals", 1] == EvaluationCompleted(
        entrant=EntrantId("base"), evaluation="capitals", number=1, n_observed=5, n_unscorable=1
    )


def test_repeating_asks_nothing_and_records_nothing(
    recorder: EvaluationRecorder, ledger: Ledger
) -> None:
    """Resuming is running the same command again."""
    evaluate(recorder, planned(answering(says_yes)[0]))
    before = ledger.head
    inference, generator = answering(says_yes)

    done = evaluate(recorder, planned(inference))

    assert (done, generator.asked, ledger.head) == (EvaluationCounts(0, 0, 0), [], before)


def test_what_was_observed_before_a_power_cut_is_not_observed_again(
    recorder: EvaluationRecorder,
) -> None:
    """A batch is kept as it is made."""

    def dies_at_4(task: GenerationTask) -> str:
        if task.prompt_text == "4?":
            raise PowerCut
        return "yes"

    with pytest.raises(PowerCut):
        evaluate(recorder, planned(answering(dies_at_4)[0]))
    inference, generator = answering(says_yes)

    assert evaluate(recorder, planned(inference)).n_missing == 2
    assert [task.prompt_text for task in generator.asked] == ["4?", "5?"]


def test_a_larger_subset_owes_only_what_the_smaller_lacks(recorder: EvaluationRecorder) -> None:
    """It holds the smaller; what was observed is observed, and the new plan is the one shown."""
    evaluate(recorder, planned(answering(says_yes)[0], options=EvaluationOptions(length=3)))
    inference, generator = answering(says_yes)

    evaluate(recorder, planned(inference, options=EvaluationOptions(length=5)))

    assert len(generator.asked) == 2
    [run] = recorder.state.runs  # the newest plan under the labels
    assert len(run.plan.items) == 5
    assert recorder.state.is_completed(run.plan)


def test_other_labels_owe_nothing(recorder: EvaluationRecorder) -> None:
    """A run is named by its content: whoever renames an entrant evaluates nothing again."""
    evaluate(recorder, planned(answering(says_yes)[0]))
    base = entrant("base")
    inference, generator = answering(says_yes, replace(base, entrant_id="renamed"))

    done = evaluate(recorder, planned(inference))

    assert (done.n_missing, generator.asked) == (0, [])
    assert [*sorted(recorder.state.plans)] == [
        Labels("base", "capitals"),
        Labels("renamed", "capitals"),
    ]


def test_an_earlier_plan_that_comes_back_holds_again(recorder: EvaluationRecorder) -> None:
    """The table shows what was asked for last, at no cost."""
    few, many = EvaluationOptions(length=2), EvaluationOptions()
    for options in (few, many, few):
        evaluate(recorder, planned(answering(says_yes)[0], options=options))

    [run] = recorder.state.runs
    assert (run.plan.number, len(run.plan.items), run.missing) == (3, 2, frozenset())


def test_another_tournament_of_the_ledger_owes_nothing(
    recorder: EvaluationRecorder, ledger: Ledger
) -> None:
    """Content is content; but plans are a tournament's own."""
    evaluate(recorder, planned(answering(says_yes)[0]))
    other = EvaluationRecorder(ledger, StreamId("other"))
    assert not other.state.plans

    assert evaluate(other, planned(answering(says_yes)[0])).n_missing == 0


def test_what_an_evaluation_asks_is_on_record(recorder: EvaluationRecorder, ledger: Ledger) -> None:
    """A result says how it came about."""
    evaluate(
        recorder,
        planned(answering(says_yes)[0], options=EvaluationOptions(temperature=0.5, seed=7)),
    )

    [plan] = [each.event for each in ledger.read() if isinstance(each.event, EvaluationPlanned)]
    assert plan.settings == (
        '{"is_chat":true,"kind":"rollout","scored_by":"capitals","seed":7,"stop":[],"top_p":1.0}'
    )
    assert (plan.n_available, plan.n_samples, plan.kind) == (6, 1, "rollout")


def test_decoding_does_not_matter_to_what_is_read(tmp_path: Path) -> None:
    """Two entrants of the same weights have the same likelihoods."""
    evaluation = Endings(("A", (" b", " c"), 0))
    cold, _ = reading(lambda _: -1.0, entrant("one"))
    hot, _ = reading(lambda _: -1.0, replace(entrant("one"), temperature=1.0, max_new_tokens=7))
    moved, _ = reading(lambda _: -1.0, replace(entrant("one"), weights=str(tmp_path)))

    keys = {planned(each, evaluation).plan.run_key for each in (cold, hot, moved)}
    assert len(keys) == 1


ONE = ("1?", "yes")


FAULTS: Mapping[str, Evaluation] = {
    "failed at reading item 0: KeyError: 0": altered(Capitals, ONE, get=lambda _, n: {}[n]),
    "failed at reading its settings: ZeroDivisionError": altered(
        Capitals, ONE, max_new_tokens=lambda *_: 1 // 0
    ),
    r"Capitals\.get\(0\) gives the expected answer 2, which is not a": altered(Capitals, ("1?", 2)),
    r"the prompt .* at 0, half of a surrogate pair": altered(Capitals, ("\ud83d", "yes")),
    r"Endings\.get\(0\) gives the index of the correct continuation: True, ": altered(
        Endings, ("A", (" b", " c"), True)
    ),
    r"Echoes\.get\(0\) gives b'abc', which is not a text": altered(Echoes, b"abc"),
    r"\.label\(0\) gives 0, which is not a": altered(Capitals, ONE, label=lambda _, n: n),
    "max_new_tokens gives 0; it must be at least 1": altered(
        Capitals, ONE, max_new_tokens=lambda *_: 0
    ),
    r"Capitals\.stop is 'Answer:'; write a tuple of texts, with its comma": altered(
        Capitals, ONE, stop="Answer:"
    ),
    r"Capitals\.stop is \('Q:', ''\); remove the empty text": altered(
        Capitals, ONE, stop=("Q:", "")
    ),
    r"Capitals\.higher_is_better is None, which is neither True nor ": altered(
        Capitals, ONE, higher_is_better=None
    ),
}


@pytest.mark.parametrize("why", FAULTS)
def test_what_is_wrong_with_an_evaluation_is_told_at_planning(why: str) -> None:
    """Free, before hours of others, and as its own fault: with its line, if its code fails.

    What the ledger would not take is no matter for when the answers to a batch are there.
    """
    with pytest.raises(EvaluationFault, match=why) as caught:
        planned(reading(lambda _: -1.0)[0], FAULTS[why])

    assert (".py:" in str(caught.value)) == ("failed at" in why)


def test_texts_and_numbers_of_numpy_are_taken(recorder: EvaluationRecorder) -> None:
    """Data sets are full of them; the ledger takes Python's alone."""
    inference, _ = reading(lambda _: -1.0)
    atlas = altered(Capitals, (np.str_("1?"), np.str_("yes")), higher_is_better=np.bool_(True))
    endings = altered(Endings, ("B", (" b", " c"), np.int64(1)))

    assert evaluate(recorder, planned(answering(says_yes)[0], atlas)).n_observed == 1
    assert evaluate(recorder, planned(inference, endings)).n_observed == 1


SCORES_NOTHING = "evaluation 'capitals': Capitals defines neither check nor score"


@pytest.mark.parametrize(
    ("evaluation", "why"),
    [
        (Capitals(), "evaluation 'capitals' has no items"),
        (altered(Capitals, ONE, check=ScoredEvaluation.check), SCORES_NOTHING),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_the_first_token(
    evaluation: Capitals, why: str
) -> None:
    """By its name, whether it is planned or called."""
    inference, generator = answering(says_yes)

    for evaluate_it in (partial(planned, inference, evaluation), partial(evaluation, inference)):
        with pytest.raises(TourneyError, match=why):
            evaluate_it()
    assert not generator.asked


class Strict(Capitals):
    """Capitals, with a check that no answer passes."""

    def check(self, y: str, y_hat: str) -> bool:
        """Say no."""
        return y == y_hat == ""


@pytest.mark.parametrize(
    ("kind", "length", "said"),
    [
        (
            Strict,
            5,
            [
                (
                    "base on capitals: 3 recorded samples were scored by other code;"
                    " they are scored again when all samples are there"
                )
            ],
        ),
        (Strict, 3, []),  # nothing is to come
        (Capitals, 5, []),  # the check is the same
    ],
)
def test_whoever_would_mix_two_scorings_is_told(
    recorder: EvaluationRecorder, kind: type[Capitals], length: int, said: list[str]
) -> None:
    """One metric of both is the accuracy of neither."""
    inference, _ = answering(lambda _: "yes")
    evaluate(recorder, planned(inference, options=EvaluationOptions(length=3)))

    plan = planned(inference, kind(*ITEMS), EvaluationOptions(length=length))

    found = [*mixed_scorings(recorder.state, EvaluationPlans((plan,), ()))]
    assert found == said


def test_what_is_answered_beside_a_fault_is_kept(recorder: EvaluationRecorder) -> None:
    """An evaluation's own code fails on one answer; the others may have cost hours."""

    class Strict(Capitals):
        def check(self, y: str, y_hat: str) -> bool:
            if y_hat == "no":
                raise ValueError(y_hat)
            return super().check(y, y_hat)

    atlas = Strict(*((f"{n}?", "yes") for n in range(6)))
    inference, _ = answering(lambda task: "no" if task.prompt_text == "2?" else "yes")

    with pytest.raises(EvaluationFault, match=re.escape("capitals[2]: ValueError: no")):
        evaluate(recorder, planned(inference, atlas, EvaluationOptions()))

    [run] = recorder.state.runs
    assert [each.label for each in run.observed] == ["capitals[0]", "capitals[1]", "capitals[3]"]


def test_what_two_entrants_share_is_owed_once(recorder: EvaluationRecorder) -> None:
    """One run under two labels: a plan that counts it twice asks for twice the time."""
    both = [
        planned(answering(says_yes, replace(entrant("base"), entrant_id=label))[0])
        for label in ("one", "two")
    ]

    assert [each.n_owed for each in missing_samples(recorder.state, both)] == [6, 0]


@pytest.mark.parametrize(("limit", "n_asked"), [(None, 6), (8, 6), (5, 3), (2, 0)])
def test_a_limit_counts_samples_that_cost_nothing(
    recorder: EvaluationRecorder, limit: int | None, n_asked: int
) -> None:
    """As the run does that is agreed to: what lies behind it is not asked, nor paid."""
    served = entrant("base", loader="endpoint", weights="org/large", dtype=None)
    letters = planned(reading(lambda _: -1.0)[0], Letters("a", "b"))
    answers = planned(answering(lambda _: "yes", served)[0])

    assert len(missing_requests(recorder.state, [letters, answers], limit=limit)) == n_asked


class Lengths(Capitals):
    """Capitals, each worth its answer's length beside the longest."""

    def score(self, ys: Sequence[str], y_hats: Sequence[str]) -> Sequence[float]:
        """Divide by the longest."""
        longest = max(map(len, y_hats))
        return [len(y_hat) / longest for _, y_hat in zip(ys, y_hats, strict=True)]


def counting_up(task: GenerationTask) -> str:
    """Answer the longer, the later the item."""
    return "x" * (1 + int(task.prompt_text[0]))


def scores(recorder: EvaluationRecorder) -> list[float | None]:
    """Return what the newest plan's samples are worth, in the order of its items."""
    [run] = recorder.state.runs
    return [each.scored.score if each.scored else None for each in run.observed]


def test_a_score_that_needs_all_answers_is_of_all_and_known_at_the_end(
    recorder: EvaluationRecorder,
) -> None:
    """Of however many commands; a score of half the answers is another score."""
    plan = planned(answering(counting_up)[0], Lengths(*ITEMS))
    for _ in range(2):
        evaluate(recorder, plan, limit=2)
        assert set(scores(recorder)) == {None}

    assert evaluate(recorder, plan).n_rescored == 0

    assert scores(recorder) == [n / 6 for n in range(1, 7)]


def test_an_endpoint_that_answers_nothing_is_stopped(recorder: EvaluationRecorder) -> None:
    """Each empty answer may have been paid for; weights of one's own cost nothing."""
    many = Capitals(*((f"{n}?", "yes") for n in range(40)))
    served, generator = answering(lambda _: " ", entrant("served", loader="endpoint", dtype=None))
    own, _ = answering(lambda _: " ", entrant("own"))
    halted: list[str] = []
    stopped = dataclasses.replace(served, stop=lambda: halted.append("served"))
    plans = [planned(own, many), planned(stopped, many)]

    with pytest.raises(NothingReadable, match="responses in a row of entrant 'served' are empty"):
        evaluate_all(recorder, plans, on_progress=no_progress, limit=60)

    assert {*halted} == {"served"}
    assert len(generator.asked) == 20

    sixteen = planned(stopped, Capitals(*((f"{n}!", "yes") for n in range(16))))
    assert evaluate(recorder, sixteen).n_observed == 16  # nothing more would be paid


@pytest.mark.parametrize("asking", [UNSET, WayOfAsking(chat="one-turn", max_new_tokens=4)])
def test_a_finished_plan_that_does_not_say_how_it_asks_is_not_planned_again(
    recorder: EvaluationRecorder, ledger: Ledger, asking: WayOfAsking | UnsetType
) -> None:
    """Earlier versions did not say; nothing is asked and nothing recorded."""
    plan = planned(answering(says_yes)[0])
    earlier = plan._replace(plan=replace(plan.plan, asking=asking))
    evaluate(recorder, earlier)
    before = ledger.head

    assert is_done(recorder.state, plan)
    assert evaluate(recorder, plan) == EvaluationCounts(0, 0, 0)
    assert ledger.head == before


class Lenient(Capitals):
    """Capitals, with a check that every answer passes."""

    def check(self, y: str, y_hat: str) -> bool:
        """Say yes."""
        return bool(y) or y_hat == ""


def test_a_corrected_check_reaches_the_results_and_asks_nothing(
    recorder: EvaluationRecorder,
) -> None:
    """By a plan that names the new code; coming back to the old one is a correction, too."""
    n_items, worth = 3, {Strict: 0.0, Lenient: 1.0}
    inference, generator = answering(lambda _: "yes")
    for n_before, kind in enumerate((Strict, Lenient, Strict)):
        plan = planned(inference, kind(*ITEMS[:n_items]))
        assert not is_done(recorder.state, plan)
        done = evaluate(recorder, plan)

        assert scores(recorder) == [worth[kind]] * n_items
        assert done.n_rescored == (n_items if n_before else 0)
        assert is_done(recorder.state, plan)
        assert evaluate(recorder, plan) == EvaluationCounts(0, 0, 0)
    assert len(generator.asked) == n_items


def test_a_corrected_check_records_only_the_scores_that_changed(
    recorder: EvaluationRecorder, ledger: Ledger
) -> None:
    """Of thousands of answers a correction may touch one."""
    inference, _ = answering(lambda _: "yes")
    plans = [planned(inference, kind(("1?", "yes"), ("2?", "no"))) for kind in (Capitals, Lenient)]

    assert [evaluate(recorder, plan).n_rescored for plan in plans] == [0, 1]
    completed = [each.event for each in ledger.read() if type(each.event) is EvaluationCompleted]
    assert [len(each.scores) for each in completed] == [0, 1]
    assert scores(recorder) == [1.0, 1.0]
