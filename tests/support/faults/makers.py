"""What the batches of every maker promise, also when calls fail: one table of faults for all."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import islice, product
from typing import Final, Literal, TypeAlias

import httpx2
import pytest

from commands.errors import (
    BatchBusy,
    BatchGone,
    BatchRefused,
    BatchTooLarge,
    BatchUncertain,
    NoCredentials,
    NotAnswering,
    ResultsLost,
    SpendLimitReached,
)
from commands.ports import Answer, BatchJudge, BatchState, NoReply, Reply
from tests.providers.anthropic.exchange import USAGE_LIMIT, Kind
from tests.support.builders.anthropic import CANARY, queries, told_of
from tests.support.builders.clock import Clock
from tests.support.contracts import BatchJudgeContract

Call: TypeAlias = Literal["create", "retrieve", "list", "cancel", "results"]
N: Final = 20  # queries of a batch
KEYS: Final = sorted(query.query_key for query in queries(N))
FREE_CALLS: Final[tuple[Call, ...]] = ("retrieve", "list", "cancel")


class BatchFaults(BatchJudgeContract):
    """The table; a subclass says which maker is meant, and how its fake is made to fail."""

    def make_at(self, url: str) -> BatchJudge:
        """Return a judge that asks another address."""
        raise NotImplementedError

    def locked(self) -> AbstractContextManager[BatchJudge]:
        """Return a judge whose key, the canary, its server does not take."""
        raise NotImplementedError

    def inject(self, call: Call, kind: Kind, n: int = 1) -> None:
        """Let something go wrong with the next n calls."""
        raise NotImplementedError

    def rejection(self, custom_id: str, why: str) -> bytes:
        """Return the line of a result: the query was invalid, in these words."""
        raise NotImplementedError

    def n_calls(self, call: Call) -> int:
        """Return how often a call came in."""
        raise NotImplementedError

    def list_at_most(self, n_batches: int) -> None:
        """Let a page of batches hold no more."""
        raise NotImplementedError

    def n_created(self) -> int:
        """Return how many batches exist."""
        raise NotImplementedError

    def retell(self, provider_batch_id: str, edit: Callable[[list[bytes]], list[bytes]]) -> None:
        """Change the lines of a batch's results."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _hasty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let an SDK's own attempts follow each other at once."""
        monkeypatch.setattr(time, "sleep", lambda _: None)

    @pytest.fixture
    def judge(self) -> BatchJudge:
        """Give a judge that asks the fake."""
        return self.make()

    @pytest.mark.parametrize("kind", ["rate_limited", "overloaded"])
    def test_a_busy_provider_says_so_and_is_asked_once(self, judge: BatchJudge, kind: Kind) -> None:
        """Something between may say it in its place: it is looked for before it is sent again."""
        self.inject("create", kind)

        with pytest.raises(BatchBusy) as caught:
            judge.create(queries(2))

        assert caught.value.was_sent
        assert (self.n_calls("create"), self.n_created()) == (1, 0)

    @pytest.mark.parametrize(
        ("kind", "n_created"),
        [
            *(("server_error", 0), ("cut_before", 0), ("cut_after", 1)),
            *(("cut_half", 1), ("error_after", 1), ("too_late", 1), ("page", None)),
        ],
    )
    @pytest.mark.usefixtures("impatient")
    def test_a_batch_that_may_exist_is_not_sent_again(
        self, judge: BatchJudge, kind: Kind, n_created: int | None
    ) -> None:
        """It would be paid for twice; what sent a page may have passed the batch on."""
        self.inject("create", kind)

        with pytest.raises(BatchUncertain, match="may still exist") as caught:
            judge.create(queries(2))

        assert self.n_calls("create") == 1
        assert n_created in {None, self.n_created()}
        assert CANARY not in told_of(caught.value)

    def test_a_batch_that_is_too_large_is_told_apart(self, judge: BatchJudge) -> None:
        """The limit is one of bytes as well as of queries."""
        self.inject("create", "too_large")

        with pytest.raises(BatchTooLarge, match="HTTP 413"):
            judge.create(queries(2))

        assert self.n_created() == 0

    @pytest.mark.parametrize("kind", ["no_credit", "usage_limit"])
    def test_used_up_credit_stops_before_a_batch(self, judge: BatchJudge, kind: Kind) -> None:
        """It looks like a rate limit or an invalid request, and waiting does not help."""
        self.inject("create", kind, n=9)

        with pytest.raises(SpendLimitReached):
            judge.create(queries(2))

        assert (self.n_calls("create"), self.n_created()) == (1, 0)

    def test_a_server_that_is_not_there_took_no_batch_and_may_come_back(self) -> None:
        """Without a network nothing is sent, and who looks for a batch can look again."""
        judge = self.make_at("http://127.0.0.1:9")

        with pytest.raises(BatchRefused, match="Connect") as caught:
            judge.create(queries(1))
        assert not caught.value.was_sent
        assert judge.now() is None
        for ask in asking(judge, "batch_1"):
            with pytest.raises(NotAnswering, match="Connect"):
                ask()

    @pytest.mark.parametrize("kind", ["rate_limited", "server_error"])
    def test_a_provider_that_is_busy_tells_the_time(self, judge: BatchJudge, kind: Kind) -> None:
        """A batch is looked for by its clock; ours may be a day off."""
        self.inject("list", kind)

        assert judge.now() is not None

    def test_a_wrong_key_is_no_credential_and_not_quoted(self) -> None:
        """For each call alike; a server's own words may quote it."""
        with self.locked() as judge:
            for ask in (judge.now, lambda: judge.create(queries(1)), *asking(judge, "batch_1")):
                with pytest.raises(NoCredentials) as refusal:
                    ask()
                assert CANARY not in told_of(refusal.value)

    @pytest.mark.parametrize("kind", ["rate_limited", "cut_before", "server_error"])
    def test_what_costs_nothing_is_asked_again(self, judge: BatchJudge, kind: Kind) -> None:
        """A failure that passes at once is not worth a word."""
        created = judge.create(queries(1))
        for call in FREE_CALLS:
            self.inject(call, kind)

        listed = list(judge.created_since(created.created_at))
        found = judge.retrieve(created.provider_batch_id)
        canceled = judge.cancel(created.provider_batch_id)

        names = {each.provider_batch_id for each in (*listed, found, canceled)}
        assert names == {created.provider_batch_id}

    def test_a_hung_answer_that_costs_nothing_is_given_up_after_a_minute(
        self, judge: BatchJudge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The network may be gone without a sign; the SDK's ten minutes would be told by nobody."""
        name = self.ended(judge, queries(N))
        send, waits_s = httpx2.HTTPTransport.handle_request, list[object]()

        def handle(transport: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
            waits_s.append(request.extensions["timeout"]["read"])
            return send(transport, request)

        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", handle)
        for ask in asking(judge, name):
            ask()
        assert [*judge.results(name)]

        assert len(waits_s) >= len(FREE_CALLS) + 1
        assert set(waits_s) == {60.0}

    @pytest.mark.parametrize("kind", ["rate_limited", "server_error", "page"])
    def test_what_goes_on_failing_may_pass_later(self, judge: BatchJudge, kind: Kind) -> None:
        """The beginning of a page shows what it is: mostly a proxy's."""
        name = judge.create(queries(1)).provider_batch_id
        words = {"rate_limited": "HTTP 429", "server_error": "HTTP 500", "page": "<html>Sign in"}

        for call, ask in zip(FREE_CALLS, asking(judge, name), strict=True):
            self.inject(call, kind, n=6)
            with pytest.raises(NotAnswering, match=words[kind]) as caught:
                ask()
            assert CANARY not in told_of(caught.value)

    def test_a_download_that_does_not_begin_is_begun_again(self, judge: BatchJudge) -> None:
        """None of it is read twice."""
        name = self.ended(judge, queries(N))
        for kind in ("rate_limited", "cut_before"):
            self.inject("results", kind)

        assert keys(judge.results(name)) == KEYS

    def test_a_download_that_breaks_off_says_so(self, judge: BatchJudge) -> None:
        """What came before counts, and the next download has it all."""
        name = self.ended(judge, queries(N))
        self.inject("results", "cut_half")
        came: list[Answer] = []

        with pytest.raises(NotAnswering, match="broke off") as caught:
            came.extend(judge.results(name))

        assert 0 < len(came) < N
        assert CANARY not in told_of(caught.value)
        assert keys(judge.results(name)) == KEYS

    @pytest.mark.parametrize("kind", ["cut_quietly", "page"])
    def test_a_download_may_end_too_early_without_a_sign(
        self, judge: BatchJudge, kind: Kind
    ) -> None:
        """Only whoever knows the queries can tell; the next download has them all."""
        name = self.ended(judge, queries(N))
        self.inject("results", kind)

        cut = keys(judge.results(name))

        assert len(cut) < N
        assert set(cut) < set(KEYS)
        assert keys(judge.results(name)) == KEYS

    def test_what_cannot_be_an_id_is_the_id_of_no_batch(self, judge: BatchJudge) -> None:
        """The SDKs' own errors would show as tracebacks."""
        for ask, name in product((judge.retrieve, judge.cancel), ("", "..", "x" * 100_000)):
            with pytest.raises(BatchGone):
                ask(name)

    def test_a_line_may_be_missing_doubled_a_strangers_or_no_line(self, judge: BatchJudge) -> None:
        """Each answer is told as it lies there; what is no line is left out."""
        name = self.ended(judge, queries(N))
        strange = json.dumps({"custom_id": "stranger"}).encode()
        none = (b"null", b'"hello"', b"<html>", b'{"x": 1}', b"", b"{", b"[]")
        self.retell(name, lambda lines: [*none, *lines[1:], lines[1], strange])

        answers = [*judge.results(name)]

        assert len(answers) == N + 1
        assert len({each.query_key for each in answers} & set(KEYS)) == N - 1
        (odd,) = (each for each in answers if each.query_key == "stranger")
        assert not isinstance(odd, Reply)

    @pytest.mark.parametrize(
        ("why", "reason", "then"),
        [("this prompt is too long", "rejected", "go on"), (USAGE_LIMIT, "errored", "stop")],
    )
    def test_a_limit_of_the_account_is_no_fault_of_a_query(
        self, judge: BatchJudge, why: str, reason: str, then: str
    ) -> None:
        """It comes in the middle of a batch, and as an invalid request; the query stays open."""
        name = self.ended(judge, queries(N))
        self.retell(
            name, lambda lines: [self.rejection(json.loads(lines[0])["custom_id"], why), *lines[1:]]
        )

        (failure,) = (each for each in judge.results(name) if isinstance(each, NoReply))

        assert (failure.reason, failure.then) == (reason, then)
        assert why in failure.detail

    def test_results_may_be_lost_before_they_are_read_again(self, judge: BatchJudge) -> None:
        """The first download had half of them."""
        name = self.ended(judge, queries(N))
        self.inject("results", "cut_half")
        assert [*islice(judge.results(name), 1)]
        self.lose(name)

        with pytest.raises(ResultsLost):
            [*judge.results(name)]

    def test_the_list_is_read_page_by_page_and_no_further_than_needed(
        self, judge: BatchJudge
    ) -> None:
        """A workspace may hold months of batches of others."""
        self.list_at_most(2)
        states = [judge.create(queries(1)) for _ in range(6)]

        since = list(judge.created_since(states[3].created_at))

        assert ids(since) == ids([*reversed(states[3:])])
        assert self.n_calls("list") == 2


def asking(judge: BatchJudge, name: str) -> tuple[Callable[[], object], ...]:
    """Return the calls that cost nothing."""
    since = Clock().now() - timedelta(days=30)
    return (
        lambda: judge.retrieve(name),
        lambda: [*judge.created_since(since)],
        lambda: judge.cancel(name),
    )


def keys(answers: Iterable[Answer]) -> list[str]:
    """Return which queries were answered."""
    return sorted(answer.query_key for answer in answers)


def ids(states: Sequence[BatchState]) -> list[str]:
    """Return the ids of batches."""
    return [state.provider_batch_id for state in states]
