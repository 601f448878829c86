"""Read an imported set of battles: what projections show instead of a tournament's outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from commands.errors import ConfigurationError, Spelling, as_option, shortened
from ledger.events.imports import BattlesImported, VoteSample, battles_stream, set_of
from ledger.events.ratings import TieModel
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json
from ledger.store import Ledger
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet, battles_of_set
from projections.battles.imported_sets import (
    IMPORTED_BATTLES,
    Unread,
    Where,
    battles_where,
    values_of,
    with_unread,
)
from projections.fold import fold
from projections.tournament.settlement import Compared

_BATTLES = frozenset({"BattlesImported"})


@dataclass(frozen=True)
class SelectedSet:
    """An imported set of battles, and the last position read."""

    name: str
    events: Sequence[BattlesImported]
    as_of: int
    where: Where = field(default_factory=dict)  # which of its battles these are; empty: all

    @cached_property
    def battles(self) -> BattlesOfSet:
        """The battles as columns."""
        return battles_of_set(self.events)

    @property
    def drawn(self) -> VoteSample | None:
        """How its pairs were drawn, if people voted on pairs of a tournament."""
        return self.events[0].drawn

    @cached_property
    def compared(self) -> Mapping[Dimension, Sequence[Compared]]:
        """The battles as comparisons, under the set's name."""
        return {Dimension(self.name): self.battles.compared(self.name)}

    @property
    def columns(self) -> Mapping[Dimension, Battles]:
        """The battles in columns, under the set's name."""
        return {Dimension(self.name): self.battles}

    def rated_battles(self, ties: TieModel) -> Mapping[Dimension, Battles]:
        """Return the battles to rate, by preferences where a tie may be half a win."""
        return {Dimension(self.name): self.battles.rated(soft=ties == "half")}

    @property
    def roster(self) -> list[str]:
        """The entrants' names, in alphabetical order."""
        return list(self.battles.entrants)

    def settings(self, section: str) -> Mapping[str, object]:  # noqa: ARG002  # a set has none
        """Return no settings: the defaults hold."""
        return {}

    @property
    def judges(self) -> tuple[JudgeSettings, ...]:
        """The settings of judges, of which others' are not known."""
        return ()

    @cached_property
    def judge_names(self) -> list[str]:
        """The names of the judges, in alphabetical order."""
        judges = (judge for event in self.events for judge in event.judges.values)
        return sorted({judge for judge in judges if judge is not None})

    @property
    def judge_id(self) -> str | None:
        """The judge, if there is exactly one."""
        return self.judge_names[0] if len(self.judge_names) == 1 else None

    @property
    def facts(self) -> dict[str, Json]:
        """The set, its judges and the position, which every result in JSON names."""
        judges: list[Json] = [*self.judge_names]
        return {
            "battles": self.name,
            "as_of": self.as_of,
            "judge": self.judge_id,
            "judges": judges,
            **fact_of(self.where),
        }

    @property
    def selected_by(self) -> tuple[str, ...]:
        """A sentence on which of the battles these are; none if they are all."""
        if not self.where:
            return ()
        return (f"{self.name}: only battles of {spelt(self.where)}.",)

    @property
    def judged(self) -> str:
        """Who decided the battles, in a sentence."""
        people = "people's votes" if "human" in self._sources else ""
        unknown = "battles of unknown source" if "unknown" in self._sources else ""
        word = "judge" if len(self.judge_names) == 1 else "judges"
        judges = f"{word} {shortened(self.judge_names)}" if self.judge_names else ""
        return f"{self.name}: {' and '.join(filter(None, (people, judges, unknown)))}."

    def source_of(self, entrant: str, rated_by: str) -> str:
        """Return who rated an entrant; `human` is unknown where no battle of it says so."""
        if rated_by != "human" or "unknown" not in self._sources or entrant in self._voted_on:
            return rated_by
        return "unknown"

    @cached_property
    def _sources(self) -> frozenset[str]:
        return frozenset(source for event in self.events for source in event.sources.values)

    @cached_property
    def _voted_on(self) -> frozenset[str]:
        """The entrants that people are known to have voted on."""
        human = battles_where(self.events, {"source": ["human"]})
        return frozenset(entrant for event in human for entrant in event.entrants)

    @property
    def accounts(self) -> tuple[str, ...]:
        """A sentence that accounts for every battle."""
        return (f"{self.name}: {self.battles.account.sentence()}",)


def imported_set(
    ledger: Ledger,
    name: str,
    as_of: int,
    where: Where | None = None,
    spelling: Spelling = as_option,
    unread: Unread = "drop",
) -> SelectedSet:
    """Read an imported set of battles up to a position, or some of them; other sets are not read.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set, or no such battle in it.
    """
    stream = battles_stream(name)
    battles = fold(IMPORTED_BATTLES, ledger.read(stream=stream, until=as_of, types=_BATTLES))
    if not battles.chunks:
        known = ", ".join(imported_names(ledger)) or "none, see `tourney import battles --help`"
        raise ConfigurationError([f"no battles were imported as {name!r}; there are: {known}"])
    read = with_unread(battles.events, unread)
    if not where:
        return SelectedSet(name, read, as_of)
    require_values(name, "battle", where, values_of(read), spelling("where"))
    events = tuple(battles_where(read, where))
    if not events:
        raise ConfigurationError([f"{spelling('where')}: no battle of {name!r} has all of these"])
    return SelectedSet(name, events, as_of, where)


def spelt(where: Where) -> str:
    """Return a selection in words, as category=code or math."""
    return ", ".join(f"{name}={' or '.join(sorted(kept))}" for name, kept in where.items())


def fact_of(where: Where) -> dict[str, Json]:
    """Return a selection as results in JSON name it; nothing if it is of all."""
    return {"where": {name: sorted(kept) for name, kept in where.items()}} if where else {}


def require_values(
    name: str, what: str, where: Where, known: Mapping[str, Sequence[str]], option: str
) -> None:
    """Require that a set or a tournament has the columns, and the values in them.

    Raises:
        ConfigurationError: It does not; the error lists what there is.
    """

    def unknown(column: str, value: str) -> str | None:
        if column not in known:
            there_are = "; ".join(f"{each}: {shortened(values)}" for each, values in known.items())
            return f"{name!r} has no column {column!r}; it has {there_are}"
        if value in known[column]:
            return None
        close = get_close_matches(value, known[column], n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {shortened(known[column])}"
        return f"{name!r} has no such {what}; {hint}"

    faults = [
        f"{option} {column}={value}: {why}"
        for column, kept in where.items()
        for value in kept
        if (why := unknown(column, value))
    ]
    if faults:
        raise ConfigurationError(faults)


def imported_names(ledger: Ledger) -> list[str]:
    """Return the names of the imported sets that have battles, in order of their first import."""
    return [*filter(None, map(set_of, ledger.streams(types=_BATTLES)))]
