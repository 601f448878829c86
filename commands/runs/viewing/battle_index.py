"""Index the battles of a tournament, to filter and search them quickly.

Each text is indexed once, however many battles it is part of, and by its words: of 100,000 battles
the replies alone are a hundred million characters, too many to look through while somebody waits.
"""

import operator
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commands.runs.report.battles import disputed_keys, replied
from ledger.events.registration import JudgeSettings, Prompt
from ledger.identity import Digest
from projections.tournament.compared import kind_of
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement
from projections.tournament.state import Tournament

Places: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

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


class LabelColumn(NamedTuple):
    """Labels of battles: the distinct ones, and the number of each battle's."""

    labels: tuple[str, ...]
    cells: Places

    @classmethod
    def of(cls, labels: Iterable[str]) -> "LabelColumn":
        """Number the labels as they come."""
        numbers: dict[str, int] = {}
        cells = [numbers.setdefault(each, len(numbers)) for each in labels]
        return cls(tuple(numbers), np.array(cells, dtype=np.intp))

    def equals(self, label: str) -> Mask:
        """Say of each battle whether that is its label."""
        number = self.labels.index(label) if label in self.labels else -1
        found: Mask = self.cells == number
        return found


@dataclass(frozen=True, eq=False)
class SearchedTexts:
    """Texts of battles in small letters, and in which of them each word stands.

    Attributes:
        texts: The distinct texts, with one blank between words.
        cells: (n, k) the numbers of each battle's k texts.
        holders: By word the numbers of the texts that hold it, in bytes of four.
    """

    texts: tuple[str, ...]
    cells: Places
    holders: Mapping[str, "array[int]"]

    @classmethod
    def of(cls, texts: Iterable[str], n_columns: int = 1) -> "SearchedTexts":
        """Take so many texts for each battle in turn."""
        written = LabelColumn.of(texts)
        plain = tuple(map(_plain, written.labels))
        holders: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
        for number, text in enumerate(plain):
            for word in set(text.split(" ")):
                holders[word].append(number)
        return cls(plain, written.cells.reshape(-1, n_columns), dict(holders))

    def having(self, text: str) -> Mask:
        """Say of each battle whether one of its texts holds a text, (n,)."""
        sought = _plain(text)
        found: Mask = np.ones(len(self.texts), dtype=bool)
        for part, fits in _parts(sought):
            found &= self._with_words(word for word in self.holders if fits(word, part))
        if " " in sought:  # every word is there; the whole need not be
            for number in np.flatnonzero(found):
                found[number] = sought in self.texts[number]
        held: Mask = np.any(found[self.cells], axis=1)
        return held

    def _with_words(self, words: Iterable[str]) -> Mask:
        found = np.zeros(len(self.texts), dtype=bool)
        for word in words:
            found[np.frombuffer(self.holders[word], dtype=np.uint32)] = True
        return found


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_Fits: TypeAlias = Callable[[str, str], bool]


def _parts(sought: str) -> Iterator[tuple[str, _Fits]]:
    """Yield the words sought, and how each must stand in a word: only the ends may be cut."""
    first, *others = sought.split(" ")
    if not others:
        yield first, operator.contains
        return
    *between, last = others
    yield first, str.endswith
    yield from ((word, operator.eq) for word in between)
    yield last, str.startswith


@dataclass(frozen=True, eq=False)
class BattleIndex:
    """The pairs of which both responses are there, in match order.

    Attributes:
        battles: The pairs and their outcomes, n of them.
        places: The place of each by its id.
        a: The entrants that the roster names first.
        b: The others.
        prompt: Prompt ids.
        dimension: Dimensions.
        kind: What became of them: decided, tie, inconsistent, failed or pending.
        is_disputed: (n,) whether the orders or the judges contradict each other.
        searched: What is searched: prompts, responses, replies.
    """

    battles: tuple[Settlement, ...]
    places: Mapping[Digest, int]
    a: LabelColumn
    b: LabelColumn
    prompt: LabelColumn
    dimension: LabelColumn
    kind: LabelColumn
    is_disputed: Mask
    searched: tuple[SearchedTexts, ...]

    def __len__(self) -> int:
        """Return the number of battles."""
        return len(self.battles)

    @lru_cache(maxsize=_REMEMBERED)  # noqa: B019  # which keeps the last few indices alive
    def find(self, chosen: BattleFilter) -> Places:
        """Return the places of the battles that pass a filter, in order."""
        kept = np.ones(len(self), dtype=bool)
        for entrant in filter(None, (chosen.entrant, chosen.against)):
            kept &= self.a.equals(entrant) | self.b.equals(entrant)
        for column, label in (
            (self.prompt, chosen.prompt),
            (self.dimension, chosen.dimension),
            (self.kind, chosen.outcome),
        ):
            if label:
                kept &= column.equals(label)
        if chosen.disputed:
            kept &= self.is_disputed
        if chosen.text:
            kept &= np.any([texts.having(chosen.text) for texts in self.searched], axis=0)
        return np.flatnonzero(kept)


def index_of(
    state: Tournament, settlements: Iterable[Settlement], judge: JudgeSettings
) -> BattleIndex:
    """Return the index of all pairs with both responses, as a judge settled them."""
    matched = [(each, each.match) for each in settlements if each.match is not None]
    battles = tuple(each for each, _ in matched)
    disputed = disputed_keys(state, battles, judge)
    keys = [each.pairing.names for each in battles]
    return BattleIndex(
        battles,
        {each.battle_id: place for place, each in enumerate(battles)},
        LabelColumn.of(a for _, _, a, _ in keys),
        LabelColumn.of(b for _, _, _, b in keys),
        LabelColumn.of(prompt for _, prompt, _, _ in keys),
        LabelColumn.of(dimension for dimension, _, _, _ in keys),
        LabelColumn.of(kind_of(each.status) for each in battles),
        np.array([key in disputed for key in keys], dtype=bool),
        (
            SearchedTexts.of(_task(each.pairing.prompt) for each in battles),
            SearchedTexts.of(
                (
                    response.text
                    for _, match in matched
                    for response in (match.response_a, match.response_b)
                ),
                n_columns=2,
            ),
            SearchedTexts.of(_replies(state, match) for _, match in matched),
        ),
    )


def _task(prompt: Prompt) -> str:
    return "\n".join((prompt.prompt_id, prompt.text, prompt.gold_answer or ""))


def _replies(state: Tournament, match: Match) -> str:
    """Return what the judge replied in both orders."""
    found = (replied(state, key) for _, key in match.keys)
    return "\n".join(each.reply for each in found if each)
