"""What every implementation of a port promises: one contract, run on each of them."""

from commands.ports import Answer, GenerationTask, Generator, Judge, Reply
from ledger.identity import Digest
from projections.verdicts.parsers import parse_verdict
from projections.verdicts.queries import JudgeQuery
from tests.builders import entrant, key

GOLD = "Axillary nerve"
QUERIES = tuple(
    JudgeQuery(key(f"{a} or {b}"), "forward", "Judge factuality.", f"{a}? {b}?", a, b, GOLD)
    for a, b in [
        ("The axillary nerve.", "The radial nerve."),
        ("The radial nerve.", "The axillary nerve."),
        ("I do not know.", "I do not know."),
        ("", "The axillary nerve."),
    ]
)
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

    def make(self) -> Judge:
        """Return a new judge."""
        raise NotImplementedError

    def test_each_query_is_answered_at_most_once(self) -> None:
        """A second reply would be ignored, and paid for."""
        keys = [reply.query_key for reply in self.make().answer(QUERIES)]

        assert len(keys) == len(set(keys))

    def test_a_reply_keeps_the_key_of_its_query(self) -> None:
        """Replies come in any order, and the key is all that tells them apart."""
        keys = {reply.query_key for reply in self.make().answer(QUERIES)}

        assert keys == {query.query_key for query in QUERIES}

    def test_the_same_query_is_answered_alike(self) -> None:
        """An offline judge that changed its mind could not be replayed by anybody."""
        first, second = (sorted(self.make().answer(QUERIES), key=key_of) for _ in range(2))

        assert first == second

    def test_a_query_is_answered_alike_in_any_company(self) -> None:
        """A run that was cut off asks in other portions."""
        judge = self.make()

        apart = [reply for query in QUERIES for reply in judge.answer([query])]

        together = self.make().answer(QUERIES)
        assert sorted(apart, key=key_of) == sorted(together, key=key_of)

    def test_no_query_is_no_reply(self) -> None:
        """A run may find nothing open."""
        assert list(self.make().answer([])) == []


class JudgeContract(AnsweringContract):
    """The same, of a judge that can be expected to reach a verdict."""

    def test_every_reply_can_be_read_as_a_verdict(self) -> None:
        """The last line is all that the parser looks at."""
        replies = [reply for reply in self.make().answer(QUERIES) if isinstance(reply, Reply)]

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
