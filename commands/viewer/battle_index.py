"""The battles of a tournament, to filter and to search; texts are kept in small letters."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from commands.report.battles import Disputed, disputed, replied
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.tournament.compared import kind_of
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement
from projections.tournament.state import Tournament

_REMEMBERED: Final = 32  # of the last searches, as when paging


class BattleFilter(NamedTuple):
    """Which battles are listed; empty: all."""

    entrant: str = ""
    against: str = ""
    prompt: str = ""
    dimension: str = ""
    outcome: str = ""
    disputed: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "BattleFilter":
        """Take the filter out of the query of an address."""
        return cls(*(query.get(name, "").strip() for name in cls._fields))

    @property
    def query(self) -> dict[str, str]:
        """What says the same in an address."""
        return {name: value for name, value in self._asdict().items() if value}

    def fits(self, battle: Settlement) -> bool:
        """Say whether a battle has the names and the outcome that are asked for."""
        dimension, prompt, *both = battle.pairing.names
        return (
            all(entrant in both for entrant in (self.entrant, self.against) if entrant)
            and self.prompt in {"", prompt}
            and self.dimension in {"", dimension}
            and self.outcome in {"", kind_of(battle.status)}
        )


@dataclass(frozen=True, eq=False)
class BattleIndex:
    """The pairs of which both responses are there, in match order.

    Attributes:
        battles: The pairs and their outcomes.
        disputed: Those on which the orders or the judges contradict each other.
        prompts: The text of each prompt, with its id and its gold answer.
        responses: The text of each response by its key.
        replies: What the judge replied about each battle.
    """

    battles: tuple[Settlement, ...]
    disputed: Disputed
    prompts: Mapping[str, str]
    responses: Mapping[Digest, str]
    replies: Sequence[str]

    @cached_property
    def places(self) -> Mapping[Digest, int]:
        """The place of each battle by its id."""
        return {battle.battle_id: place for place, battle in enumerate(self.battles)}

    @cached_property
    def counts(self) -> Mapping[str, Counter[str]]:
        """How many battles on each prompt ended how, and how many are "disputed"."""
        counts: dict[str, Counter[str]] = {prompt: Counter() for prompt in self.prompts}
        for battle in self.battles:
            counts[battle.prompt_id][kind_of(battle.status)] += 1
        for _, prompt, *_ in self.disputed.all:
            counts[prompt]["disputed"] += 1
        return counts

    def is_disputed(self, place: int) -> bool:
        """Say whether the orders or the judges contradict each other on a battle."""
        return self.battles[place].pairing.names in self.disputed.all

    @lru_cache(maxsize=_REMEMBERED)  # noqa: B019  # which keeps the last few indices alive
    def find(self, chosen: BattleFilter) -> Sequence[int]:
        """Return the places of the battles that pass a filter, in order."""
        found = [place for place, battle in enumerate(self.battles) if chosen.fits(battle)]
        if chosen.disputed:
            found = [place for place in found if self.is_disputed(place)]
        return self._having(_plain(chosen.text), found) if chosen.text else found

    def _having(self, text: str, places: Iterable[int]) -> Sequence[int]:
        """Return those of some battles one of whose texts holds a text."""
        prompts = {prompt for prompt, written in self.prompts.items() if text in written}
        responses = {key for key, written in self.responses.items() if text in written}
        return [
            place
            for place in places
            if self.battles[place].prompt_id in prompts
            or not responses.isdisjoint(_response_keys(self.battles[place].match))
            or text in self.replies[place]
        ]

    def beside(self, place: int, chosen: BattleFilter) -> tuple[Digest | None, Digest | None]:
        """Return the ids of the battles before and after one, among those that pass a filter."""
        places = self.find(chosen)
        at = bisect_left(places, place)
        after = at + 1 if at < len(places) and places[at] == place else at
        return (
            self.battles[places[at - 1]].battle_id if at > 0 else None,
            self.battles[places[after]].battle_id if after < len(places) else None,
        )


def index_of(
    state: Tournament, settlements: Iterable[Settlement], judge: JudgeSettings
) -> BattleIndex:
    """Return the index of all pairs with both responses, as a judge settled them."""
    battles = tuple(settlement for settlement in settlements if settlement.match is not None)
    both = {
        response.response_key: response
        for battle in battles
        if battle.match
        for response in (battle.match.response_a, battle.match.response_b)
    }
    return BattleIndex(
        battles,
        disputed(state, battles, judge),
        {
            prompt.prompt_id: _plain(
                f"{prompt.prompt_id}\n{prompt.text}\n{prompt.gold_answer or ''}"
            )
            for prompt in state.bank
        },
        {key: _plain(response.text) for key, response in both.items()},
        [_plain(_replies(state, battle.match)) for battle in battles],
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _response_keys(match: Match | None) -> tuple[Digest, ...]:
    return (match.response_a.response_key, match.response_b.response_key) if match else ()


def _replies(state: Tournament, match: Match | None) -> str:
    """Return what the judge replied in both orders."""
    replies = (replied(state, key) for _, key in match.keys) if match else ()
    return "\n".join(reply.reply for reply in replies if reply)
