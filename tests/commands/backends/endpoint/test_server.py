"""A server that rejects whatever it is asked is found out before a rejection counts."""

from collections.abc import Callable
from itertools import chain
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.endpoint.server import N_PROBES, Endpoint, ServerProbe
from commands.errors import ProviderError
from commands.ports import Answer, NoReply
from ledger.identity import Digest
from tests.support.builders.commands import reply
from tests.support.builders.events import key

SERVER = Endpoint("http://localhost:1/v1", "judge 'steady'", api_key=None)
Words = Callable[[int], str | None]
BROKEN = "HTTP 503: warming up"  # told of a question, it is no rejection


def asked_of(words: Words, *calls: range, n_at_a_time: int = 1) -> list[Answer]:
    """Return what comes of questions to a server that rejects some, in these words."""

    def ask(number: int) -> Answer:
        said = words(number)
        return no_reply(number, said) if said else reply(key_of(number))

    trial = ServerProbe(SERVER)
    return [each for call in calls for each in trial.ask_all(call, ask, n_at_a_time=n_at_a_time)]


def key_of(number: int) -> Digest:
    """Return the key of a question."""
    return key(str(number))


def no_reply(number: int, words: str) -> NoReply:
    """Return a question's rejection, or that the server broke on it."""
    return NoReply(key_of(number), "errored" if words == BROKEN else "rejected", words)


def rejected(answers: list[Answer]) -> int:
    """Count the rejections."""
    return sum(isinstance(each, NoReply) and each.reason == "rejected" for each in answers)


@given(n=st.integers(0, 40), n_at_a_time=st.integers(1, 12), bad=st.sets(st.integers(1, 40)))
def test_each_question_is_answered_once(n: int, n_at_a_time: int, bad: set[int]) -> None:
    """Some are asked before others, and rejections come later; none may be lost by that."""
    answers = asked_of(
        lambda each: "too long" if each in bad else None, range(n), n_at_a_time=n_at_a_time
    )

    assert sorted(each.query_key for each in answers) == sorted(map(key_of, range(n)))


def test_a_server_that_rejects_everything_is_told_in_its_words() -> None:
    """They are all that a user can put it right by."""
    with pytest.raises(ProviderError) as caught:
        asked_of(lambda _: "HTTP 400: no chat template", range(200))

    said = str(caught.value)
    assert said.startswith("judge 'steady' at http://localhost:1/v1 answered none of the first 8 ")
    assert "rejected 8 with the same message, 'HTTP 400: no chat template' (none recorded)" in said
    assert "`tourney apply ... --limit 7` records 7 rejections at a time" in said


def test_a_server_that_rejects_everything_is_asked_no_more() -> None:
    """A thousand rejections say no more than a few."""
    numbers: list[int] = []

    def words(number: int) -> str:
        numbers.append(number)
        return "no"

    with pytest.raises(ProviderError):
        asked_of(words, range(200), n_at_a_time=32)

    assert len(numbers) == N_PROBES


def test_a_server_that_says_of_each_what_is_wrong_with_it_is_believed() -> None:
    """A bank of prompts that are all too long is no fault of the server."""
    answers = asked_of(lambda number: f"{5000 + number} tokens, at most 4096", range(20))

    assert rejected(answers) == 20


def test_one_answer_clears_a_server() -> None:
    """Servers that do not count say of each prompt that is too long the same."""
    answers = asked_of(lambda number: None if number == 0 else "too long", range(40))

    assert rejected(answers) == 39


def test_neighbours_do_not_condemn_a_server() -> None:
    """A long prompt stands in every query about it, and those follow one another."""
    answers = asked_of(lambda number: "too long" if number < 12 else None, range(24))

    assert rejected(answers) == 12


def test_a_server_is_tried_once() -> None:
    """The last chunk of a run may be of one prompt alone, and that be too long."""
    answers = asked_of(lambda n: "too long" if n >= 20 else None, range(20), range(20, 40))

    assert rejected(answers) == 20


@pytest.mark.parametrize("n", [1, N_PROBES - 1])
def test_a_few_rejections_are_believed(n: int) -> None:
    """So few prompts may well be at fault themselves; how else would they be let go of?"""
    assert rejected(asked_of(lambda _: "no", range(n))) == n


@pytest.mark.parametrize("chunk", [1, 3, 5, 7])
def test_rejections_are_counted_over_every_chunk(chunk: int) -> None:
    """A cap on dollars cuts a run into chunks of any size, and what is recorded is final."""
    trial, kept = ServerProbe(SERVER), list[Answer]()
    rounds = (
        trial.ask_all(range(n, n + chunk), lambda n: no_reply(n, "no"), n_at_a_time=2)
        for n in range(0, 100, chunk)
    )

    with pytest.raises(ProviderError, match="with the same message, 'no'") as caught:
        kept.extend(chain.from_iterable(rounds))

    assert 1 <= len(kept) < N_PROBES
    assert f"({len(kept)} recorded)" in str(caught.value)


def test_chunks_that_are_rejected_in_different_words_are_believed() -> None:
    """What was said of the last chunk is not forgotten."""
    answers = asked_of(lambda n: f"{n // 5}", *[range(n, n + 5) for n in range(0, 100, 5)])

    assert rejected(answers) == 100


@pytest.mark.parametrize("n_broken", [1, N_PROBES - 1, N_PROBES, 2 * N_PROBES])
def test_a_server_that_breaks_is_not_cleared_by_that(n_broken: int) -> None:
    """It is warming up, say; whether it takes anything is still to be seen."""
    seen: list[int] = []

    def words(_: int) -> str:
        seen.append(1)
        return BROKEN if len(seen) <= n_broken else "no chat template"

    with pytest.raises(ProviderError, match="with the same message, 'no chat template'"):
        asked_of(words, range(200))

    assert len(seen) < n_broken + 2 * N_PROBES


def test_a_server_that_only_breaks_is_asked_everything() -> None:
    """It rejected nothing, and others count what is left unanswered."""
    answers = asked_of(lambda _: BROKEN, range(50))

    assert len(answers) == 50


def test_what_breaks_again_and_again_condemns_no_server() -> None:
    """It is asked anew as often as retries allow, after a prompt that is too long."""
    answers = asked_of(lambda n: BROKEN if n else "too long", range(5), *[range(1, 5)] * 5)

    assert rejected(answers) == 1


def test_a_reader_who_has_heard_enough_is_told_no_more() -> None:
    """A server that breaks on each prompt would be tried to the last."""
    stops, heard = Event(), 0

    for _ in ServerProbe(SERVER).ask_all(
        range(200), lambda n: no_reply(n, BROKEN), n_at_a_time=1, stops=stops
    ):
        heard += 1
        if heard == N_PROBES:
            stops.set()

    assert heard == N_PROBES
