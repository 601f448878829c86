"""Generating what is owed: resumed where it stopped, never twice, and by the right loader."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Never

import pytest

from commands.decisions.commands import OpenTournament
from commands.decisions.recorder import Recorder
from commands.entrants.generate import (
    GenerationSummary,
    GeneratorByLoader,
    WantedResponses,
    generate_missing,
)
from commands.entrants.session import generate_with_consent
from commands.errors import MissingExtra, NothingReadable, WeightsError
from commands.ports import (
    Console,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Generator,
    no_progress,
)
from commands.spending.budget import SpendingOptions
from commands.spending.pricing import PriceBook
from ledger.events.conversations import transcript
from ledger.events.registration import EntrantOptions
from ledger.events.responses import ResponseFailureReason
from ledger.identity import PromptId, StreamId
from ledger.store import Ledger
from tests.support.builders.commands import (
    P1,
    P2,
    PowerCut,
    echo,
    echoing,
    open_tournament,
    record_answers,
    types_of,
)
from tests.support.builders.events import STREAM, entrant, key, opened, prompt
from tests.support.contracts import GeneratorContract
from tests.support.scripted import ScriptedBackends, ScriptedGenerator

TWO_BY_TWO: OpenTournament = open_tournament(opened(prompts=[prompt("p1"), prompt("p2")]))


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """Give a tournament of two entrants and two prompts."""
    recorder.record(TWO_BY_TWO)
    return recorder


def generate(
    recorder: Recorder,
    generator: Generator,
    prompts: Sequence[PromptId] = (P1, P2),
    *,
    limit: int | None = None,
    retry: Sequence[ResponseFailureReason] = (),
) -> GenerationSummary:
    """Generate what prompts are owed."""
    return generate_missing(
        recorder, lambda: generator, prompts, on_progress=no_progress, limit=limit, retry=retry
    )


def asked(generator: ScriptedGenerator) -> list[tuple[str, str]]:
    """Return who was asked what."""
    return [(task.entrant.entrant_id, task.prompt_text) for task in generator.asked]


def fails_on_p2(task: GenerationTask) -> str | GenerationFailure:
    """Answer the first prompt only."""
    if task.prompt_text == "Question p1?":
        return echo(task)
    return GenerationFailure(task.response_key, "prompt_too_long", "5000 tokens, at most 4096")


def test_every_entrant_answers_every_prompt(recorder: Recorder) -> None:
    """Matches need both sides of each pair."""
    done = generate(recorder, echoing())

    texts = [response.text for response in recorder.state.responses.values()]
    assert done == GenerationSummary(n_missing=4, n_generated=4, n_failed=0)
    assert sorted(texts) == [
        "base on Question p1?",
        "base on Question p2?",
        "tuned on Question p1?",
        "tuned on Question p2?",
    ]


def test_a_run_that_was_cut_off_goes_on_where_it_was(ledger: Ledger, recorder: Recorder) -> None:
    """What a batch cost is lost at most once: the second run asks for the rest only."""
    first, second = echoing(stops_after=3), echoing()
    with pytest.raises(PowerCut):
        generate(recorder, first)

    done = generate(Recorder(ledger, STREAM), second)

    assert done == GenerationSummary(n_missing=1, n_generated=1, n_failed=0)
    assert asked(second) == [("tuned", "Question p2?")]
    assert types_of(ledger).count("ResponseGenerated") == 4


TALK = (("system", "Be brief."), ("user", "One?"), ("user", "Two?"))


@pytest.fixture
def talk(ledger: Ledger) -> Recorder:
    """Give a tournament of two questions in a row, whose second entrant has a prompt of its own."""
    options = EntrantOptions(system="You are kind.", prompt_format="Q: {prompt}")
    recorder = Recorder(ledger, StreamId("talk"))
    asked = prompt("p1", text=transcript(TALK), messages=TALK)
    entrants = [entrant("base"), entrant("tuned", options=options)]
    recorder.record(open_tournament(opened(prompts=[asked], entrants=entrants)))
    return recorder


def one_word(task: GenerationTask) -> str:
    """Answer by the number of turns so far."""
    return f"{task.entrant.entrant_id} {len(task.messages)}"


def test_a_conversation_is_sent_turn_by_turn_with_the_entrants_own_answers(talk: Recorder) -> None:
    """An entrant's system prompt comes before the prompt's; its format is around the question."""
    generator = ScriptedGenerator(one_word)

    done = generate(talk, generator)

    assert done == GenerationSummary(n_missing=4, n_generated=4, n_failed=0)
    assert {task.entrant.entrant_id: task.messages for task in generator.asked[2:]} == {
        "base": (*TALK[:2], ("assistant", "base 2"), TALK[2]),
        "tuned": (
            ("system", "You are kind.\n\nBe brief."),
            ("user", "One?"),
            ("assistant", "tuned 2"),
            ("user", "Q: Two?"),
        ),
    }


def test_a_conversation_that_was_cut_off_goes_on_with_the_next_question(
    ledger: Ledger, talk: Recorder
) -> None:
    """Each answer is on the ledger before the question after it is sent."""
    first = ScriptedGenerator(one_word)
    generate(talk, first, limit=3)
    second = ScriptedGenerator(one_word)

    done = generate(Recorder(ledger, StreamId("talk")), second)

    assert done == GenerationSummary(n_missing=1, n_generated=1, n_failed=0)
    assert [task.messages[-1] for task in second.asked] == [("user", "Q: Two?")]
    keys = [task.response_key for task in (*first.asked, *second.asked)]
    assert len(set(keys)) == len(keys) == 4


def test_no_further_question_is_sent_to_who_failed_at_one(talk: Recorder) -> None:
    """It has no answer to go on from; the other goes on."""
    generator = ScriptedGenerator(
        lambda task: (
            GenerationFailure(task.response_key, "rejected", "too long")
            if task.entrant.entrant_id == "base"
            else one_word(task)
        )
    )

    done = generate(talk, generator)

    assert done == GenerationSummary(n_missing=4, n_generated=2, n_failed=1)


def test_without_anything_owed_no_generator_is_made(recorder: Recorder) -> None:
    """Making one loads gigabytes of weights."""

    def make_generator() -> Generator:
        raise AssertionError("nothing is owed")

    record_answers(recorder, opened(prompts=[prompt("p1"), prompt("p2")]))

    done = generate_missing(recorder, make_generator, [P1, P2], on_progress=no_progress)

    assert done == GenerationSummary(n_missing=0, n_generated=0, n_failed=0)


def test_only_the_prompts_of_the_run_are_answered(recorder: Recorder) -> None:
    """A pilot must not spend what a headline run costs."""
    generator = echoing()

    generate(recorder, generator, [P2])

    assert asked(generator) == [("base", "Question p2?"), ("tuned", "Question p2?")]


def test_a_limit_takes_the_first_that_are_owed(recorder: Recorder) -> None:
    """Work may be done in portions, each going on after the last."""
    first, second = echoing(), echoing()

    done = generate(recorder, first, limit=1)
    generate(recorder, second, limit=2)

    assert done == GenerationSummary(n_missing=4, n_generated=1, n_failed=0)
    assert asked(first) == [("base", "Question p1?")]
    assert asked(second) == [("tuned", "Question p1?"), ("base", "Question p2?")]


def test_a_failure_is_recorded_once_and_not_asked_again(ledger: Ledger, recorder: Recorder) -> None:
    """A prompt that is too long today is too long tomorrow."""
    first, second = ScriptedGenerator(fails_on_p2, batch=4), echoing()

    done = generate(recorder, first)
    again = generate(recorder, second)

    assert done == GenerationSummary(n_missing=4, n_generated=2, n_failed=2)
    assert again == GenerationSummary(n_missing=0, n_generated=0, n_failed=0)
    assert second.asked == []
    assert types_of(ledger).count("ResponseFailed") == 2


def test_entrants_alike_in_all_but_name_share_a_response(recorder: Recorder) -> None:
    """A renamed entrant costs nothing; the key names what determines the text."""
    twin = entrant("twin", weights="weights/base", weights_digest=entrant("base").weights_digest)
    generator = echoing()
    recorder.record(open_tournament(opened(entrants=[entrant("base"), twin])))

    done = generate(recorder, generator)

    assert done == GenerationSummary(n_missing=1, n_generated=1, n_failed=0)
    assert asked(generator) == [("base", "Question p1?")]


def test_progress_is_told_from_nothing_to_all(recorder: Recorder) -> None:
    """Somebody waits in front of it for hours."""
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    generate_missing(recorder, echoing, [P1, P2], on_progress=tell, limit=2)

    assert told == [("responses", 0, 2), ("responses", 1, 2), ("responses", 2, 2)]


def of_many(ledger: Ledger) -> tuple[Recorder, list[PromptId]]:
    """Open a tournament of two entrants and two rows of sixteen prompts."""
    prompts = [prompt(f"p{number}") for number in range(32)]
    recorder = Recorder(ledger, STREAM)
    recorder.record(open_tournament(opened(prompts=prompts)))
    return recorder, [each.prompt_id for each in prompts]


def empty_from_base(task: GenerationTask) -> str:
    """Answer as one entrant, and not at all as the other."""
    return " \n" if task.entrant.entrant_id == "base" else "Aspirin."


def test_an_entrant_that_gives_only_empty_texts_is_stopped(ledger: Ledger) -> None:
    """Nothing can be learnt from them, and judging them would be paid for; the other goes on."""
    recorder, prompts = of_many(ledger)
    port = ScriptedGenerator(empty_from_base)

    with pytest.raises(NothingReadable) as stop:
        generate(recorder, port, prompts)

    assert str(stop.value) == (
        "16 responses in a row of entrant 'base' are empty, so nothing more is generated of it;"
        " the last ended by 'stop': check its server and how it is prompted; run the same command"
        " again to go on"
    )
    given = Counter(each.text.strip() for each in recorder.state.responses.values())
    assert given == {"": 16, "Aspirin.": 32}


def test_who_wants_empty_texts_runs_the_same_command_again(ledger: Ledger) -> None:
    """The next sixteen are other prompts; with nothing left to generate nothing is stopped."""
    recorder, prompts = of_many(ledger)
    with pytest.raises(NothingReadable):
        generate(recorder, ScriptedGenerator(empty_from_base), prompts)
    port = ScriptedGenerator(empty_from_base)

    done = generate(recorder, port, prompts)

    assert done.n_generated == done.n_missing == len(port.asked) == 16
    assert len(recorder.state.responses) == 64


NOW_AND_THEN = {f"Question p{number}?" for number in range(0, 32, 8)}


def fails_now_and_then(task: GenerationTask) -> str | GenerationFailure:
    """Answer nothing, and fail at a few."""
    failure = GenerationFailure(task.response_key, "prompt_too_long", "too long")
    return failure if task.prompt_text in NOW_AND_THEN else ""


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: "", r"of entrant 'base' .* of entrant 'tuned' are empty"),
        (fails_now_and_then, "16 responses in a row"),
        (lambda task: "Yes." if task.prompt_text in NOW_AND_THEN else "", None),
    ],
    ids=["each is told", "a failure ends no row", "a text ends it"],
)
def test_only_rows_of_empty_texts_count(
    ledger: Ledger, answer: Callable[[GenerationTask], str | GenerationFailure], told: str | None
) -> None:
    """A failure says nothing of what the entrant would have answered."""
    recorder, prompts = of_many(ledger)

    with nullcontext() if told is None else pytest.raises(NothingReadable, match=told):
        assert generate(recorder, ScriptedGenerator(answer), prompts).n_generated == 64


@pytest.mark.parametrize(
    ("loader", "why"),
    [
        ("hf", "the last ended by 'stop': check its server and how it is prompted"),
        ("recorded", "its file has no others"),
    ],
)
def test_an_entrant_with_few_prompts_and_no_text_is_told(
    ledger: Ledger, loader: str, why: str
) -> None:
    """The bank ends before the row is long enough, and the next step costs money."""
    recorder, told = Recorder(ledger, STREAM), list[str]()
    empty = entrant("base", loader=loader)
    entrants = [empty, entrant("tuned")]
    recorder.record(
        open_tournament(opened(entrants=entrants, prompts=[prompt("p1"), prompt("p2")]))
    )

    generate_with_consent(
        recorder,
        WantedResponses([P1, P2]),
        ScriptedBackends(ScriptedGenerator(empty_from_base)),
        PriceBook(None, "off", 0),
        SpendingOptions(),
        Console(told.append, None, no_progress),
    )

    assert told == [f"entrant 'base': 2 new responses are empty; {why}"]


HERE = GenerationTask(key("here"), entrant("base"), "What?", seed=0)
THERE = GenerationTask(key("there"), entrant("hosted", loader="endpoint", dtype=None), "?", seed=0)


def saying(text: str) -> Callable[[], Generator]:
    """Return what makes a generator that says this, whatever it is asked."""
    return lambda: ScriptedGenerator(lambda _: text)


def missing() -> Generator:
    """Lack what the generator needs."""
    raise MissingExtra("torch", "models")


def said(generator: Generator, *tasks: GenerationTask) -> dict[str, str]:
    """Return what was answered, by task."""
    results = [result for batch in generator.generate(tasks) for result in batch]
    return {each.response_key: each.text for each in results if isinstance(each, GeneratedText)}


class TestByLoader(GeneratorContract):
    """Both kinds in one."""

    def make(self) -> Generator:
        """Return one of each."""
        return GeneratorByLoader(saying("here"), saying("there"), missing)


def test_a_task_is_answered_where_its_entrant_is() -> None:
    """A roster may have both; what no task needs is not made: endpoints alone take no torch."""
    both = GeneratorByLoader(saying("from here"), saying("from there"), missing)
    here = GeneratorByLoader(saying("here"), missing, missing)
    there = GeneratorByLoader(missing, saying("there"), missing)

    assert said(both, HERE, THERE) == {key("here"): "from here", key("there"): "from there"}
    assert said(here, HERE) == {key("here"): "here"}
    assert said(there, THERE) == {key("there"): "there"}


class Unfit:
    """A generator of weights that fail their check."""

    def generate(self, _: Sequence[GenerationTask]) -> Never:
        """Refuse the tasks at once."""
        raise WeightsError(Path("weights"), "unfit", "mend them")


@pytest.mark.parametrize(("local", "error"), [(missing, MissingExtra), (Unfit, WeightsError)])
def test_faults_of_local_weights_come_before_the_answers_of_servers(
    local: Callable[[], Generator], error: type[Exception]
) -> None:
    """Half a night of answers would be paid for before somebody reads what is missing."""
    server = ScriptedGenerator(echo)

    with pytest.raises(error):
        next(GeneratorByLoader(local, lambda: server, missing).generate([HERE, THERE]))
    assert not server.asked


def test_failed_responses_are_asked_again_for_the_reasons_that_are_named(
    recorder: Recorder,
) -> None:
    """A server was mended since, and a new revision would pay for all of them."""
    generate(recorder, ScriptedGenerator(fails_on_p2))
    others, again = echoing(), echoing()

    left = generate(recorder, others, retry=["rejected"])
    done = generate(recorder, again, retry=["prompt_too_long"])

    assert (left.n_missing, others.asked) == (0, [])
    assert done == GenerationSummary(n_missing=2, n_generated=2, n_failed=0)
    assert asked(again) == [("base", "Question p2?"), ("tuned", "Question p2?")]


def test_a_response_that_fails_for_the_same_reason_again_is_no_news(
    ledger: Ledger, recorder: Recorder
) -> None:
    """It can be asked for a third time."""
    for _ in range(3):
        done = generate(recorder, ScriptedGenerator(fails_on_p2), retry=["prompt_too_long"])

    assert done == GenerationSummary(n_missing=2, n_generated=0, n_failed=2)
    assert types_of(ledger).count("ResponseFailed") == 2
