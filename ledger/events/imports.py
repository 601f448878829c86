"""Imported battles and ratings, and merged ledgers.

Up to 5,000 battles are stored in one event, column by column. A column holds its distinct values
and, for each battle, one character that says which value it has. The first 91 characters take a
byte each, most others two; so a ledger's file takes at most a fifth more than plain arrays would:
two bytes a battle for each entrant, and for its prompt where one is there more than once; one for
who won; eight for each number that is not always the same; and each name and prompt id as a line
of UTF-8, once an event. Preferences that are nearly all different take more, seventeen digits
each: they are kept as JSON writes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

from msgspec import Meta

from ledger.events.values import Count, Fact, FilledText, Ordinal, Probability, Seed32, Value
from ledger.identity import Digest, Dimension, StreamId

Winner = Literal["model_a", "model_b", "tie", "tie (bothbad)", "no verdict"]
Source = Literal["llm-judge", "human", "unknown"]
JurorSaid = Literal["model_a", "model_b", "tie", "tie (bothbad)", "inconsistent", "no verdict"]
MIN_WEIGHT: Final = 1e-6
MAX_WEIGHT: Final = 1e6  # sums stay finite; only ratios count
Weight = Annotated[float, Meta(ge=MIN_WEIGHT, le=MAX_WEIGHT)]
Cell = TypeVar("Cell")

_SETS: Final = "battles:"  # how streams of battles begin, and no tournament's does
MAX_BATTLES: Final = 5_000
"""How many one event holds."""

SIGNS: Final = "".join(
    map(chr, (*range(0x23, 0x5C), *range(0x5D, 0x7F), *range(0xA1, 0xA1 + 2 * MAX_BATTLES)))
)
"""What stands for the first value, the second, and so on; JSON writes each as it is."""


def battles_stream(name: str) -> StreamId:
    """Return the stream of a set of imported battles."""
    return StreamId(f"{_SETS}{name}")


def set_of(stream: StreamId) -> str | None:
    """Return the name of the set of battles that a stream holds; None for a tournament's stream."""
    return stream.removeprefix(_SETS) if stream.startswith(_SETS) else None


def encode_cells(cells: Iterable[Cell], values: Iterable[Cell]) -> str:
    """Encode each cell as the character of its index among the values."""
    signs = dict(zip(values, SIGNS, strict=False))
    return "".join(map(signs.__getitem__, cells))


class CodedColumn(Value, Generic[Cell], frozen=True):
    """One column of a set of battles, as distinct values and a code for each battle.

    There are no codes if all battles have the same value, or each has its own.
    """

    values: tuple[Cell, ...]
    codes: str = ""

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> "CodedColumn[Cell]":
        """Encode the cells of a column, at least one."""
        values = tuple(dict.fromkeys(cells))
        is_plain = len(values) in {1, len(cells)}
        return cls(values) if is_plain else cls(values, encode_cells(cells, values))

    def cells(self, n_battles: int) -> Sequence[Cell]:
        """Decode the cells of a column."""
        if self.codes:
            return [*map(dict(zip(SIGNS, self.values, strict=False)).__getitem__, self.codes)]
        return self.values if len(self.values) == n_battles else self.values * n_battles

    def fits(self, n_battles: int) -> bool:
        """Say whether the column has a cell for each battle."""
        if self.codes:
            return len(self.codes) == n_battles and are_codes(self.codes, len(self.values))
        return len(self.values) in {1, n_battles}


def are_codes(codes: str, n_values: int) -> bool:
    """Say whether each code stands for one of the first `n_values` values."""
    return set(codes) <= set(SIGNS[:n_values])


class JurorVote(NamedTuple):
    """What one judge of a jury said; inconsistent: another thing in each order."""

    judge: FilledText
    vote: JurorSaid


class ImportedBattle(NamedTuple):
    """Two entrants compared on one prompt, by a judge, by a jury or by people."""

    model_a: str
    model_b: str
    winner: Winner
    pref: float | None = None  # probability that b is better; None: unknown
    question_id: str | None = None  # battles of one prompt have the same
    source: Source = "unknown"
    judge_model: str | None = None
    weight: float = 1.0
    votes: tuple[JurorVote, ...] = ()  # of a jury, whose verdict is the winner
    categories: tuple[str, ...] = ()
    language: str | None = None
    length_a: int | None = None  # of a's answer, in what the file counts: tokens or characters
    length_b: int | None = None


SampleDesign = Literal["random", "disagreement"]


class VoteSample(Value, frozen=True, kw_only=True):
    """How pairs of a tournament were drawn for people to vote on, and which side each stood on."""

    tournament: StreamId
    dimension: Dimension
    design: SampleDesign  # of all pairs, or of those on which orders or judges disagree
    seed: Seed32


class BattlesImported(Fact, frozen=True, kw_only=True):
    """Battles were read from a file, by some version of its format's mapping.

    Or somebody voted on a pair of a tournament: then the file is the ballot, and a later version
    of its mapping is a later vote on it.
    """

    file_digest: Digest  # of its bytes
    format: FilledText
    mapping_version: Ordinal
    chunk: Ordinal  # 1, 2, 3 ... of the file
    n_skipped: Count  # rows that are no battles: behind those of the chunk before, left out
    entrants: tuple[FilledText, ...]
    a: str  # codes of entrants
    b: str
    winners: CodedColumn[Winner]
    prefs: CodedColumn[Probability | None]  # that b is better: 0 is a, 1/2 a tie, 1 is b
    prompts: CodedColumn[str | None]  # ids of theirs, which need not be ours
    sources: CodedColumn[Source]
    judges: CodedColumn[str | None]
    weights: CodedColumn[Weight]
    votes: CodedColumn[tuple[JurorVote, ...]] = CodedColumn(((),))
    categories: CodedColumn[tuple[FilledText, ...]] = CodedColumn(((),))
    languages: CodedColumn[FilledText | None] = CodedColumn((None,))
    lengths_a: CodedColumn[Count | None] = CodedColumn((None,))
    lengths_b: CodedColumn[Count | None] = CodedColumn((None,))
    drawn: VoteSample | None = None

    @classmethod
    def of(
        cls,
        battles: Sequence[ImportedBattle],
        *,
        file_digest: Digest,
        mapping: tuple[str, int],
        chunk: int,
        n_skipped: int,
        drawn: VoteSample | None = None,
    ) -> "BattlesImported":
        """Encode battles, at least one; the mapping is a format's name and version."""
        a, b, *columns = zip(*battles, strict=True)
        entrants = tuple(dict.fromkeys((*a, *b)))
        name, version = mapping
        return cls(
            file_digest=file_digest,
            format=name,
            mapping_version=version,
            chunk=chunk,
            n_skipped=n_skipped,
            entrants=entrants,
            a=encode_cells(a, entrants),
            b=encode_cells(b, entrants),
            **dict(zip(_COLUMNS, map(CodedColumn.of, columns), strict=True)),
            drawn=drawn,
        )

    def battles(self) -> Iterator[ImportedBattle]:
        """Decode the battles, in order."""
        entrants = dict(zip(SIGNS, self.entrants, strict=False))
        columns = (self._column(name).cells(self.n_battles) for name in _COLUMNS)
        a, b = (map(entrants.__getitem__, codes) for codes in (self.a, self.b))
        return map(ImportedBattle, a, b, *columns)

    def holding(self, battles: Sequence[ImportedBattle]) -> "BattlesImported":
        """Return this event with other battles, at least one."""
        mapping = (self.format, self.mapping_version)
        return BattlesImported.of(
            battles,
            file_digest=self.file_digest,
            mapping=mapping,
            chunk=self.chunk,
            n_skipped=self.n_skipped,
            drawn=self.drawn,
        )

    def _column(self, name: str) -> CodedColumn[Any]:
        column: CodedColumn[Any] = getattr(self, name)
        return column

    @property
    def n_battles(self) -> int:
        """How many battles these are."""
        return len(self.a)

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A chunk is read once by each mapping version; a corrected mapping reads it again."""
        return (self.file_digest, f"{self.format}@{self.mapping_version}", str(self.chunk))

    def __post_init__(self) -> None:
        """Refuse columns of different lengths, or a code without a value."""
        n = self.n_battles
        if not 1 <= n <= MAX_BATTLES or len(self.b) != n:
            raise ValueError(
                f"`a` has {n} battles, `b` {len(self.b)}: expected the same, 1 to {MAX_BATTLES}"
            )
        if not are_codes(self.a + self.b, len(self.entrants)):
            raise ValueError("a code of `a` or `b` stands for no entrant")
        if any(map(str.__eq__, self.a, self.b)):
            raise ValueError("an entrant battles itself")
        if odd := [name for name in _COLUMNS if not self._column(name).fits(n)]:
            raise ValueError(f"these columns do not have {n} battles: {', '.join(odd)}")
        if self.drawn is not None and n != 1:
            raise ValueError(f"a vote is on one pair; these are {n}")


_COLUMNS: Final = (
    *("winners", "prefs", "prompts", "sources", "judges", "weights"),
    *("votes", "categories", "languages", "lengths_a", "lengths_b"),
)
"""The columns of an event, in the order of a battle's fields after its entrants."""


class LedgerMerged(Fact, frozen=True):
    """Events of another ledger were added to this stream, each as it was recorded there.

    Their positions are new. Positions that they mention, as a publication does, refer to the ledger
    with this head.
    """

    # a ledger is merged once at each head; two others may each have merged it
    key_fields = ("head", "n_taken")
    head: Digest  # the other ledger's chain at its last event
    n_events: Ordinal  # its last position
    n_taken: Ordinal  # events that were new to this stream


RatingSource = Literal["evaluated", "human"]


class ImportedRating(Value, frozen=True, kw_only=True):
    """One entrant's imported rating, on the scale of its source."""

    entrant: FilledText
    rating: float
    ci_low: float | None = None  # of an interval of 95 %
    ci_high: float | None = None
    n_battles: Count | None = None
    source: RatingSource  # evaluated: a judge compared it; human: people did
    dimension: str | None = None


class RatingsImported(Fact, frozen=True, kw_only=True):
    """Ratings were read from a file; no battle and no rating of ours depends on them."""

    file_digest: Digest  # of its bytes
    format: FilledText
    mapping_version: Ordinal
    arena: str | None = None
    evaluated: str | None = None  # the entrant that it is about, among others
    judge_model: str | None = None
    n_bootstraps: Count | None = None
    seed: int | None = None
    ratings: tuple[ImportedRating, ...]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A file is read once by each mapping version; a corrected mapping reads it again."""
        return (self.file_digest, f"{self.format}@{self.mapping_version}")
