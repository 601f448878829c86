"""What every implementation of a port promises: one contract, run on each of them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from commands.errors import ProviderError, ResultsLost
from commands.ports import (
    Answer,
    BatchJudge,
    GenerationTask,
    Generator,
    Judge,
    LocalJudge,
    NoReply,
    Reply,
)
from ledger.identity import Digest
from projections.verdicts.parsers import parse_verdict
from projections.verdicts.queries import PairQuery
from tests.support.builders.events import entrant, key
from tests.support.scripted import answered

GOLD = "Axillary nerve"
QUERIES = tuple(
    PairQuery(key(f"{a} or {b}"), "forward", "Judge factuality.", f"{a}? {b}?", a, b, GOLD)
    for a, b in [
        ("The axillary nerve.", "The radial nerve."),
        ("The radial nerve.", "The axillary nerve."),
        ("I do not know.", "I do not know."),
        ("", "The axillary nerve."),
    ]
)
KEYS = sorted(query.query_key for query in QUERIES)
TASKS = tuple(
    GenerationTask(key(f"{name} {n}"), entrant(name), f"Question {n}?", seed=n)
    for name in ("base", "tuned")
    for n in range(3)
)


def key_of(answer: Answer) -> Digest:
    """Return the key of what was answered: answers come in any order."""
    return answer.query_key


class AnsweringContract:
    """What `judge_open` relies on; a subclass says which judge is meant."""

    def make(self) -> Judge | LocalJudge:
        """Return a new judge."""
        raise NotImplementedError

    def test_each_query_is_answered_once_by_its_key(self) -> None:
        """Replies come in any order, and a second one would be ignored, and paid for."""
        keys = [reply.query_key for reply in answered(self.make(), QUERIES)]

        assert sorted(keys) == KEYS

    def test_a_query_is_answered_alike_in_any_company(self) -> None:
        """A run that was cut off asks in other portions; a judge that changed its mind shows."""
        judge = self.make()

        apart = [reply for query in QUERIES for reply in answered(judge, [query])]

        together = answered(self.make(), QUERIES)
        assert sorted(apart, key=key_of) == sorted(together, key=key_of)

    def test_no_query_is_no_reply(self) -> None:
        """A run may find nothing open."""
        assert list(answered(self.make(), [])) == []


class JudgeContract(AnsweringContract):
    """The same, of a judge that can be expected to reach a verdict."""

    def test_every_reply_can_be_read_as_a_verdict(self) -> None:
        """The last line is all that the parser looks at."""
        replies = [reply for reply in answered(self.make(), QUERIES) if isinstance(reply, Reply)]

        assert len(replies) == len(QUERIES)
        assert None not in [parse_verdict(reply.text) for reply in replies]


class GeneratorContract:
    """What `generate_owed` relies on; a subclass says which generator is meant."""

    def make(self) -> Generator:
        """Return a new generator."""
        raise NotImplementedError

    def test_each_task_is_answered_exactly_once(self) -> None:
        """A task left out would be owed for ever, one answered twice could differ."""
        keys = [result.response_key for batch in self.make().generate(TASKS) for result in batch]

        assert sorted(keys) == sorted(task.response_key for task in TASKS)

    def test_no_task_is_no_batch(self) -> None:
        """An empty batch would be an empty transaction."""
        assert [batch for batch in self.make().generate([]) if batch] == []


INSTANT = timedelta(microseconds=1)


class BatchJudgeContract:
    """What judging in batches relies on; a subclass says which judge is meant."""

    def make(self) -> BatchJudge:
        """Return a judge whose batches end when they are told to."""
        raise NotImplementedError

    def end(self) -> None:
        """End the batches of the judge that was made."""
        raise NotImplementedError

    def lose(self, provider_batch_id: str, /) -> None:
        """Let the provider keep a batch's results no longer."""
        raise NotImplementedError

    def ended(self, judge: BatchJudge, queries: Sequence[PairQuery] = QUERIES) -> str:
        """Return the id of a batch that has ended."""
        created = judge.create(queries)
        self.end()
        return created.provider_batch_id

    def test_a_new_batch_is_open(self) -> None:
        """Its id, its times and its size are recorded before anything else is known."""
        created = self.make().create(QUERIES)

        assert not created.has_ended
        assert created.has_results
        assert created.n_queries == len(QUERIES)
        assert created.n_succeeded == 0
        assert created.expires_at - created.created_at == timedelta(hours=24)

    def test_looking_at_an_open_batch_shows_the_same(self) -> None:
        """A process that comes back compares what it finds with what it sent."""
        judge = self.make()
        created = judge.create(QUERIES)

        assert judge.retrieve(created.provider_batch_id) == created

    def test_an_ended_batch_tells_how_its_queries_ended(self) -> None:
        """The counts say whether all results have been read."""
        judge = self.make()

        state = judge.retrieve(self.ended(judge))

        assert state.has_ended
        assert (state.n_queries, state.n_succeeded) == (len(QUERIES), len(QUERIES))
        assert (state.n_errored, state.n_canceled, state.n_expired) == (0, 0, 0)

    def test_each_query_of_a_batch_is_answered_once(self) -> None:
        """The key is all that tells the answers apart."""
        judge = self.make()

        answers = list(judge.results(self.ended(judge)))

        assert sorted(answer.query_key for answer in answers) == KEYS
        assert all(isinstance(answer, Reply) for answer in answers)

    def test_results_may_be_read_again(self) -> None:
        """A process that was killed among them reads them from the start."""
        judge = self.make()
        name = self.ended(judge)
        cut = judge.results(name)
        next(cut)

        first, second = (sorted(judge.results(name), key=str) for _ in range(2))

        assert first == second

    def test_an_open_batch_has_no_results(self) -> None:
        """Read too early, an empty batch would be taken for an answered one."""
        judge = self.make()
        created = judge.create(QUERIES)

        with pytest.raises(ProviderError, match="has not ended"):
            list(judge.results(created.provider_batch_id))

    def test_results_that_are_kept_no_longer_are_lost(self) -> None:
        """They are paid for, and must be told from results that are yet to come."""
        judge = self.make()
        name = self.ended(judge)
        self.lose(name)

        assert not judge.retrieve(name).has_results
        with pytest.raises(ResultsLost):
            list(judge.results(name))

    def test_batches_are_listed_with_the_newest_first(self) -> None:
        """The batch whose fate is unknown is among the newest."""
        judge = self.make()
        first, second = (judge.create(QUERIES[place:]) for place in range(2))

        assert list(judge.created_since(first.created_at)) == [second, first]
        assert list(judge.created_since(first.created_at + INSTANT)) == [second]

    def test_a_canceled_batch_answers_with_nothing(self) -> None:
        """What was not reached is not paid for, and may be asked again."""
        judge = self.make()
        created = judge.create(QUERIES)

        judge.cancel(created.provider_batch_id)
        state = judge.retrieve(created.provider_batch_id)
        answers = list(judge.results(created.provider_batch_id))

        assert (state.has_ended, state.n_canceled) == (True, len(QUERIES))
        assert {each.reason for each in answers if isinstance(each, NoReply)} == {"canceled"}
        assert sorted(answer.query_key for answer in answers) == KEYS

    def test_canceling_twice_is_canceling_once(self) -> None:
        """The process may have died before it heard of the first."""
        judge = self.make()
        created = judge.create(QUERIES)

        judge.cancel(created.provider_batch_id)
        judge.cancel(created.provider_batch_id)

        assert judge.retrieve(created.provider_batch_id).n_canceled == len(QUERIES)

    def test_canceling_what_has_ended_changes_nothing(self) -> None:
        """A batch may end as it is canceled; its answers are paid for."""
        judge = self.make()
        name = self.ended(judge)

        assert judge.cancel(name).n_succeeded == len(QUERIES)
        assert len(list(judge.results(name))) == len(QUERIES)

    def test_a_batch_that_is_not_known_is_an_error(self) -> None:
        """Under another key the provider knows none of ours: that is not a lost batch."""
        with pytest.raises(ProviderError) as caught:
            self.make().retrieve("msgbatch_unknown")

        assert not isinstance(caught.value, ResultsLost)

    def test_a_longer_query_takes_more_of_a_batch(self) -> None:
        """Batches are split by size before they are sent."""
        judge, query = self.make(), QUERIES[0]
        longer = query._replace(user=query.user + "ä" * 100)

        assert judge.n_bytes(longer) - judge.n_bytes(query) == 200
