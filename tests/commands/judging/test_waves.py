"""A wave is judged, then looked at; whatever cannot be judged does not hold up the looks."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from commands.decisions.recorder import Recorder
from commands.judging.judge import JudgeTask, JudgingSummary, judge_open
from commands.judging.waves import in_waves
from commands.ports import Answer, no_progress
from ledger.events.registration import JudgeSettings, Rubric, TournamentOpened
from ledger.events.registry import Event
from ledger.store import Ledger
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.commands import open_tournament, record_answers
from tests.support.builders.events import STREAM, judge, prompt, rubric
from tests.support.builders.waves import FOUR, bank, opening
from tests.support.scripted import ScriptedJudge


@pytest.fixture(autouse=True, scope="module")
def small_waves() -> Iterator[None]:
    """Let a wave have one prompt, so that banks here can be small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("projections.tournament.waves.FEWEST_IN_A_WAVE", 1)
        yield


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Give the recorder of an empty ledger."""
    with Ledger.in_memory() as ledger:
        yield Recorder(ledger, STREAM)


def zoe_wins(query: JudgeQuery) -> str:
    """Prefer zoe, but for every fifth prompt; of others, each on every second one."""
    assert isinstance(query, PairQuery)
    number = int("".join(filter(str.isdigit, query.shown_a)))
    a, b = (shown.split()[0] for shown in (query.shown_a, query.shown_b))
    better, worse = sorted((a, b), key=["zoe", "amy", "kim", "bob"].index)
    wins = number % 5 if better == "zoe" else number % 2
    return "VERDICT: A" if (better if wins else worse) == a else "VERDICT: B"


def judged(
    recorder: Recorder,
    reply: Callable[[JudgeQuery], Answer | str | None] = zoe_wins,
    *,
    by: JudgeSettings | None = None,
    limit: int | None = None,
) -> tuple[JudgingSummary, list[str]]:
    """Judge in waves, and return what came of it and what was told."""
    prompts = [each.prompt_id for each in recorder.state.bank]
    task = JudgeTask(by or recorder.state.panel[0], prompts, retries=0, limit=limit)
    told = list[str]()
    judge_wave = partial(
        judge_open, recorder, judge_of=lambda *_: ScriptedJudge(reply), on_progress=no_progress
    )
    return in_waves(recorder, task, judge_wave, told.append), told


def tournament(
    n_prompts: int = 40,
    *,
    rubrics: Sequence[Rubric] | None = None,
    judges: Sequence[JudgeSettings] | None = None,
) -> Sequence[Event]:
    """Return the opening of three entrants."""
    return opening(bank(n_prompts), n_looks=2, entrants=FOUR[:3], rubrics=rubrics, judges=judges)


def test_a_limit_holds_for_all_waves_and_open_queries_hold_up_the_look(recorder: Recorder) -> None:
    """Each wave has 24 queries; a limit may end inside one."""
    record_answers(recorder, tournament(8))

    (first, told), (second, open_one), (third, ended) = (
        judged(recorder, limit=limit) for limit in (20, 3, 5)
    )

    assert [each.n_asked for each in (first, second, third)] == [20, 3, 5]
    assert told == ["no look is taken yet: 4 queries have no verdict"]
    assert open_one == ["no look is taken yet: 1 query has no verdict"]
    assert len(recorder.state.looks) == 1
    assert ended[1:] == ["no look is taken yet: 20 queries have no verdict"]


def test_replies_without_a_verdict_do_not_hold_up_the_look(recorder: Recorder) -> None:
    """They are given up, and their pairs are no evidence; another command may ask again."""
    record_answers(recorder, tournament(8))

    def say(query: JudgeQuery) -> str:
        assert isinstance(query, PairQuery)
        is_of_bob_or_kim = "kim" in query.shown_a + query.shown_b
        return "Both are fine." if is_of_bob_or_kim else zoe_wins(query)

    done, _ = judged(recorder, say)

    assert done.n_failed
    assert len(recorder.state.looks) == 2


@pytest.mark.parametrize("n_without_gold", [3, 7])
def test_a_wave_on_which_nothing_can_be_judged_is_passed(
    recorder: Recorder, n_without_gold: int
) -> None:
    """Here prompts lack the gold answer; the prompts after them are judged nevertheless."""
    prompts = [prompt(f"p{n}", gold="aspirin" if n >= n_without_gold else None) for n in range(8)]
    record_answers(recorder, opening(prompts, n_looks=8, entrants=FOUR[:2]))

    done, told = judged(recorder)

    assert done.n_verdicts == 2 * (8 - n_without_gold)
    assert len(recorder.state.looks) == 8 - _n_after_last(recorder)
    assert any("no verdict yet" in line for line in told) or told[0].startswith("look 1 of 8")


def _n_after_last(recorder: Recorder) -> int:
    """Count the prompts without a gold answer behind the last that has one."""
    seen = {prompt.label for look in recorder.state.looks for prompt in look.prompts}
    return sum(each.prompt_id not in seen for each in recorder.state.bank)


def test_another_judge_is_asked_about_the_waves_so_far(recorder: Recorder) -> None:
    """And takes no look."""
    judges = [judge(), judge("second", model="other")]
    record_answers(recorder, tournament(8, judges=judges))

    done, told = judged(recorder, by=judges[1])

    assert (done.n_verdicts, told, recorder.state.looks) == (4 * 3 * 2, [], ())


def test_another_first_judge_begins_anew(recorder: Recorder) -> None:
    """Its looks are counted from one."""
    record_answers(recorder, tournament(8))
    judged(recorder)
    changed, *others = tournament(8, judges=[judge("second", model="other")])
    assert isinstance(changed, TournamentOpened)
    recorder.record(open_tournament((changed, *others)))

    _, told = judged(recorder)

    assert told[0].startswith("look 1 of 2: ")
    assert len(recorder.state.looks) == 4


def test_nothing_is_looked_at_once_all_is_decided(recorder: Recorder) -> None:
    """What is left of the bank is asked about nobody."""
    record_answers(recorder, opening(bank(80), n_looks=4, entrants=FOUR[:2]))

    judged(recorder)

    assert len(recorder.state.looks) < 4
    assert len(recorder.state.verdicts) == 2 * sum(
        len(each.prompts) for each in recorder.state.looks
    )


def test_dimensions_are_looked_at_together(recorder: Recorder) -> None:
    """One line says what became of each."""
    rubrics = [rubric(), rubric("style", needs_gold=False)]
    record_answers(recorder, tournament(8, rubrics=rubrics))

    _, told = judged(recorder)

    assert "factuality: 0 pairs decided, 0 futile; style: 0 pairs decided" in told[0]
