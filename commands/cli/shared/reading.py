"""What a reading is asked for: which ledger, as of when, for which judge, by which rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from commands.cli.shared.ledger import head_at, judge_of, on_dimension, position_of, read_tournament
from commands.cli.tables.table import judged_by
from commands.errors import ConfigurationError
from ledger.events.imports import BattlesImported
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json, JudgeId
from ledger.store import Ledger
from projections.battles.imported import IMPORTED_BATTLES
from projections.fold import Projection, State, fold
from projections.tournament.jury import settle_by_majority
from projections.tournament.settlement import Settlement, account_of, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSERS, newest_parser
from projections.verdicts.policies import CONCATENATE, MAJORITY, POLICY_NAMES, RECORDED, Rule


def rule_of(policy: str, parser: str | None) -> Rule:
    """Return the rule that options name; a parser without a version is its newest.

    Raises:
        ConfigurationError: There is no such policy or parser.
    """
    if policy not in POLICY_NAMES:
        raise _unknown("--policy", policy, POLICY_NAMES)
    full_name = None if parser is None else newest_parser(parser)
    if parser is not None and full_name is None:
        raise _unknown(
            "--parser", parser, [*PARSERS, *(each.partition("@")[0] for each in PARSERS)]
        )
    return Rule(policy, full_name)


def require_jury(state: Tournament, judge: str | None) -> None:
    """Refuse a majority of one judge, whether one is named or alone.

    Raises:
        ConfigurationError: It is.
    """
    if judge is not None:
        raise ConfigurationError([f"--policy {MAJORITY} asks the whole panel; leave out --judge"])
    if len(state.panel) == 1:
        raise ConfigurationError(
            [f"--policy {MAJORITY} needs two judges, and the panel has one; see [[jury]]"]
        )


def note_of(rule: Rule) -> str:
    """Say by what rule outcomes were made that are not those on record."""
    read = "as recorded" if rule.parser is None else f"read again by {rule.parser}"
    counted = ", each order a game of its own" if rule.policy == CONCATENATE else ""
    return f"Outcomes by {rule.policy}{counted}, of replies {read}; nothing of this is on record."


def _unknown(option: str, value: str, known: Sequence[str]) -> ConfigurationError:
    close = get_close_matches(value, known, n=2, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {', '.join(known)}"
    )
    return ConfigurationError([f"{option} {value!r} is not known; {hint}"])


class Asked(NamedTuple):
    """What the shared options say."""

    ledger: Path
    config: Path
    tournament: str | None
    as_of: str | None
    judge: str | None
    dimension: str | None
    rule: Rule


@dataclass(frozen=True)
class Reading:
    """A tournament as of a position, seen through one judge's verdicts."""

    state: Tournament
    judge: JudgeSettings
    ledger: Path
    until: int | None  # the last position that is read; None: the ledger's last
    named_judge: str | None = None  # by --judge
    named_dimension: str | None = None  # by --dimension
    rule: Rule = RECORDED

    @property
    def facts(self) -> dict[str, Json]:
        """What every result in JSON says of where it comes from."""
        newest = self.state.newest
        return {"tournament": self.state.stream, "as_of": newest.position if newest else 0}

    @property
    def judges(self) -> tuple[JudgeSettings, ...]:
        """Whose verdicts count: one judge's, or the majority of a panel's."""
        return self.state.panel if self.rule.policy == MAJORITY else (self.judge,)

    @property
    def judge_id(self) -> JudgeId | None:
        """Who judged; None where it was a jury."""
        return None if self.rule.policy == MAJORITY else self.judge.judge_id

    @property
    def judge_model(self) -> str | None:
        """Which model judged; None where it was a jury."""
        return None if self.rule.policy == MAJORITY else self.judge.model

    @cached_property
    def settlements(self) -> dict[Dimension, tuple[Settlement, ...]]:
        """What became of every pairing, by dimension."""
        prompts = frozenset(prompt.prompt_id for prompt in self.state.bank)
        if self.rule.policy == MAJORITY:
            panel, parser = self.state.panel, self.rule.parser
            settled = settle_by_majority(self.state, prompts, panel, parser)
        else:
            settled = settle(self.state, prompts, self.judge, self.rule)
        return by_dimension(self.state, settled)

    def folded(self, projection: Projection[State]) -> State:
        """Return what another projection makes of the same events."""
        with Ledger.read_only(self.ledger) as opened:
            return fold(projection, opened.read(until=self.until))

    @property
    def notes(self) -> tuple[str, ...]:
        """Say who judged, and what became of every pairing."""
        return (judged_by(self.judges), *self.accounts)

    @property
    def accounts(self) -> tuple[str, ...]:
        """Say for each dimension what became of every pairing."""
        return tuple(
            f"{dimension}: {account_of(group).sentence()}"
            for dimension, group in self.settlements.items()
        )


def read_verdicts(asked: Asked) -> Reading:
    """Read what the options name out of a ledger.

    Raises:
        LedgerError: It cannot be read.
        ConfigurationError: An option names nothing, or does not go with another.
        NothingRecorded: There is no such tournament.
    """
    with Ledger.read_only(asked.ledger) as opened:
        state = read_tournament(opened, asked.tournament, asked.as_of, asked.config)
        until = position_of(opened, asked.as_of)
    seen, by = on_dimension(state, asked.dimension), judge_of(state, asked.judge)
    if asked.rule.policy == MAJORITY:
        require_jury(state, asked.judge)
    return Reading(seen, by, asked.ledger, until, asked.judge, asked.dimension, asked.rule)


def pinned(asked: Asked) -> Asked:
    """Return what is asked for as of a position, so that all of it is read as of the same."""
    with Ledger.read_only(asked.ledger) as opened:
        return asked._replace(as_of=str(head_at(opened, asked.as_of).position))


def require_no_tournament(asked: Asked) -> None:
    """Refuse options that say nothing of imported battles.

    Raises:
        ConfigurationError: There are such.
    """
    if any((asked.tournament, asked.judge, asked.dimension)) or asked.rule != RECORDED:
        chosen_by = "--tournament, --judge, --dimension, --policy and --parser"
        raise ConfigurationError([f"{chosen_by} are of a tournament's battles: leave out --name"])


class BattleSet(NamedTuple):
    """Imported battles that go by one name, and the last position that was read."""

    events: Sequence[BattlesImported]
    as_of: int


def read_set(asked: Asked, name: str) -> BattleSet:
    """Read a set of imported battles.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set.
    """
    with Ledger.read_only(asked.ledger) as opened:
        as_of = head_at(opened, asked.as_of).position
        battles = fold(IMPORTED_BATTLES, opened.read(until=as_of, types={"BattlesImported"}))
    if name not in battles.names:
        known = ", ".join(battles.names) or "none, see `tourney import battles --help`"
        raise ConfigurationError([f"no battles were imported as {name!r}; there are: {known}"])
    return BattleSet(battles.of([name]).events, as_of)
