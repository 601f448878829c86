"""What was redacted of a tournament: replies and responses without their text.

A verdict stays as it was read; read again by another parser, its reply says nothing. A response
stays the entrant's answer: it is not generated again. Without its text its queries cannot be built,
so nothing more is asked about it. Outcomes that are on record stay: they are found by names, and by
the queries that were sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

from immutables import Map
from msgspec import UnsetType

from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    Order,
    Outcome,
    PairKey,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.responses import Followed, ResponseGenerated
from ledger.events.values import REDACTED
from ledger.identity import Digest, Dimension, EntrantId, JudgeId, PromptId
from ledger.recorded import Recorded

TextOf: TypeAlias = Callable[[Digest], str | None]
"""Returns the text of a response by its key; None: it has none on record."""


Responses: TypeAlias = tuple[Digest, Digest]
"""The keys of a pair's responses, in roster order."""

PairName: TypeAlias = tuple[Dimension, PromptId, EntrantId, EntrantId, JudgeId, str]
"""The fields of a pair's key but its queries."""


@dataclass(frozen=True)
class Redactions:
    """The redacted events that a tournament can use, and what was asked about them."""

    positions: tuple[int, ...] = ()
    replies: frozenset[Digest] = frozenset()  # by query key
    responses: Map[Digest, ResponseGenerated] = Map()
    # these and what follows them in conversations; several prompts may share an answer:
    concerned: frozenset[Digest] = frozenset()  # by response key
    prompts: frozenset[PromptId] = frozenset()
    # of these prompts:
    asked: Map[Digest, JudgeQuerySubmitted] = Map()  # by query key, without repeats
    asked_at: Map[Digest, int] = Map()  # by query key: the newest position
    outcomes: Map[PairKey, Outcome] = Map()

    def after(self, recorded: Recorded) -> Self:
        """Return what is known after one more event."""
        match event := recorded.event:
            case ResponseGenerated() if recorded.redacted:
                responses = self.responses.set(event.response_key, event)
                positions = self._with(recorded)
                return replace(self._concerning(event), responses=responses, positions=positions)
            case ResponseGenerated(follows=Followed(answer=answer)) if answer in self.concerned:
                return self._concerning(event)
            case JudgeQuerySubmitted(repeats=UnsetType()) if self._concerns(event):
                return replace(
                    self,
                    asked=self.asked.set(event.query_key, event),
                    asked_at=self.asked_at.set(event.query_key, recorded.position),
                    prompts=self.prompts | {event.prompt_id},
                )
            case PairReconciled() if event.prompt_id in self.prompts or event.forward in self.asked:
                outcomes = self.outcomes.set(event.natural_key, event.outcome)
                return replace(self, outcomes=outcomes)
            case VerdictReceived() | JudgeQueryFailed() if recorded.redacted:
                replies = self.replies | {event.query_key}
                return replace(self, replies=replies, positions=self._with(recorded))
            case _ if recorded.redacted:
                return replace(self, positions=self._with(recorded))
            case _:
                return self

    def __contains__(self, response: ResponseGenerated) -> bool:
        """Say whether a response has lost its text; another tournament may still have it."""
        return self.responses.get(response.response_key) == response

    def is_gone(self, query_key: Digest, reply: str) -> bool:
        """Say whether the reply to a query was redacted; another tournament may still have it."""
        return reply == REDACTED and query_key in self.replies

    def outcome(
        self, name: PairName, of: Responses, text_of: TextOf
    ) -> tuple[PairKey, Outcome] | None:
        """Return the outcome on record of two responses, with its key; None: there is none.

        An outcome of the same name is not theirs if its queries were sent about other texts. Pairs
        of the same texts share their queries, which name the responses of one of them.
        """
        for key, outcome in self.outcomes.items():
            sent = self.asked.get(key.forward)
            asked = of if sent is None else _asked_about(sent)
            is_theirs = asked == of or [*map(text_of, asked)] == [*map(text_of, of)]
            if key[: len(name)] == name and is_theirs:
                return key, outcome
        return None

    def query(
        self, name: PairName, of: Responses, text_of: TextOf, order: Order, rubric: Digest
    ) -> Digest | None:
        """Return the key of the query that was sent about two responses in an order.

        Pairs of the same texts share it, on the same prompt and rubric; it names one of them. Of
        several, as where the judge's settings changed under its name, it is the newest.
        """
        _, prompt_id, _, _, judge, _ = name
        wanted = prompt_id, rubric, judge, order

        def is_same(response: Digest, other: Digest) -> bool:
            """Say whether two responses are one, or have one text that is still known."""
            return response == other or text_of(response) == text_of(other) != REDACTED

        digests = (
            key
            for key, sent in self.asked.items()
            if (sent.prompt_id, sent.rubric_digest, sent.judge, sent.order) == wanted
            and all(map(is_same, _asked_about(sent), of))
        )
        return max(digests, key=self.asked_at.__getitem__, default=None)

    def _concerning(self, response: ResponseGenerated) -> Self:
        concerned = self.concerned | {response.response_key}
        return replace(self, concerned=concerned, prompts=self.prompts | {response.prompt_id})

    def _concerns(self, query: JudgeQuerySubmitted) -> bool:
        is_of_prompt = query.prompt_id in self.prompts
        return is_of_prompt or not self.concerned.isdisjoint((query.response_a, query.response_b))

    def _with(self, recorded: Recorded) -> tuple[int, ...]:
        return (*self.positions, recorded.position)


def _asked_about(sent: JudgeQuerySubmitted) -> Responses:
    return sent.response_a, sent.response_b


NONE_REDACTED: Final = Redactions()
