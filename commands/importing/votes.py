"""Use case of `tourney annotate`: record people's votes, one by one, as battles of a set.

A vote is on the disk before the next ballot is shown. It may be changed by another vote on the same
ballot, and the last one counts, as the last import of a file does; so nothing is ever taken back.
Several processes may record votes of one set: before each vote the others' are read.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Final, Literal, TypeAlias

from commands.errors import ConfigurationError
from ledger.errors import StaleVersion
from ledger.events.imports import (
    BattlesImported,
    ImportedBattle,
    SampleDesign,
    VoteSample,
    Winner,
    battles_stream,
)
from ledger.identity import Digest, Dimension
from ledger.store import Ledger
from projections.battles.ballots import Ballot, CastVote, ballots_of, votes_cast
from projections.tournament.state import Tournament

Choice: TypeAlias = Literal["a", "b", "tie", "skip"]
CHOICES: Final[Mapping[Choice, Winner]] = {
    "a": "model_a",
    "b": "model_b",
    "tie": "tie",
    "skip": "no verdict",
}
_SEED: Final = 20260427  # of the draw; earlier versions let one choose another
_FORMAT: Final = "annotation"


@dataclass
class BallotBox:
    """The ballots of an annotator, and the votes that were cast; threads may share it."""

    ledger: Ledger
    name: str  # of the set
    annotator: str
    sample: VoteSample
    ballots: tuple[Ballot, ...]
    votes: dict[Digest, CastVote] = field(default_factory=dict)
    _turn: Lock = field(default_factory=Lock)
    _position: int = 0  # of the last event of the set that was read
    _version: int = 0  # of the set then

    @cached_property
    def _digests(self) -> tuple[Digest, ...]:
        return tuple(ballot.digest(self.name, self.annotator) for ballot in self.ballots)

    def vote_on(self, number: int) -> CastVote | None:
        """Return the vote on a ballot, counted from 0; None: there is none yet."""
        return self.votes.get(self._digests[number])

    def n_cast_on(self, number: int) -> int:
        """Return how often was voted on a ballot."""
        vote = self.vote_on(number)
        return vote.n_cast if vote else 0

    @property
    def n_done(self) -> int:
        """On how many ballots was voted."""
        return sum(digest in self.votes for digest in self._digests)

    @property
    def next_open(self) -> int | None:
        """The first ballot without a vote; None: there is none."""
        open_ones = (n for n, digest in enumerate(self._digests) if digest not in self.votes)
        return next(open_ones, None)

    def cast(self, number: int, choice: Choice, *, n_before: int) -> bool:
        """Record a vote; it is on the disk when this returns.

        Args:
            number: The ballot, counted from 0.
            choice: The vote.
            n_before: How many votes on it whoever votes knows of: another one is a correction.

        Returns:
            Whether it counts: not if somebody voted on that ballot meanwhile, as by a double click
            or in another window.

        Raises:
            ConfigurationError: The set was begun meanwhile, and drawn otherwise.
            LedgerError: The ledger cannot be written; nothing was recorded.
        """
        event = self._event(number, choice, n_before + 1)
        with self._turn:
            while True:
                self.catch_up()
                if self.n_cast_on(number) != n_before:
                    return False
                with suppress(StaleVersion):  # another process voted at this moment
                    stream = battles_stream(self.name)
                    self.ledger.append(stream, [event], expected_version=self._version)
                    self.catch_up()
                    return True

    def catch_up(self) -> None:
        """Read the votes that were cast since, here or elsewhere.

        Raises:
            ConfigurationError: The set was drawn otherwise.
        """
        for recorded in self.ledger.read(stream=battles_stream(self.name), after=self._position):
            if isinstance(recorded.event, BattlesImported):
                if recorded.event.drawn not in {None, self.sample}:
                    raise ConfigurationError([_drawn_otherwise(self.name, recorded.event.drawn)])
                self.votes |= votes_cast([recorded.event])
            self._position, self._version = recorded.position, recorded.version

    def _event(self, number: int, choice: Choice, version: int) -> BattlesImported:
        ballot = self.ballots[number]
        battle = ImportedBattle(
            ballot.entrant_a,
            ballot.entrant_b,
            CHOICES[choice],
            question_id=ballot.pairing.prompt.prompt_id,
            source="human",
            judge_model=self.annotator,
        )
        return BattlesImported.of(
            [battle],
            file_digest=self._digests[number],
            mapping=(_FORMAT, version),
            chunk=1,
            n_skipped=0,
            drawn=self.sample,
        )


def open_ballot_box(
    ledger: Ledger,
    tournament: Tournament,
    name: str,
    annotator: str,
    *,
    dimension: Dimension,
    design: SampleDesign,
    limit: int | None = None,
) -> BallotBox:
    """Return the ballots of a sample with the votes that a set holds; a set has one sample.

    Args:
        ledger: Open for writing.
        tournament: Whose pairs are voted on.
        name: The set that votes join.
        annotator: What its votes are labelled with.
        dimension: What is to be compared.
        design: Which pairs are drawn.
        limit: At most so many pairs; None: all.

    Raises:
        ConfigurationError: The set was drawn otherwise, or there is nothing to vote on.
    """
    known = _sample_of(ledger, name)
    seed = known.seed if known else _SEED
    sample = VoteSample(tournament=tournament.stream, dimension=dimension, design=design, seed=seed)
    ballots = ballots_of(tournament, sample)[:limit]
    box = BallotBox(ledger, name, annotator, sample, ballots)
    box.catch_up()
    if not ballots:
        lacking = "no pair has both responses, and different ones"
        why = lacking if design == "random" else "judges disagree on no pair"
        raise ConfigurationError([f"there is nothing to vote on: on {dimension!r} {why}"])
    return box


def _sample_of(ledger: Ledger, name: str) -> VoteSample | None:
    """Return how the pairs of a set were drawn; None: it has none yet.

    Raises:
        ConfigurationError: Its first battles were not voted on here.
    """
    for recorded in ledger.read(stream=battles_stream(name)):
        if isinstance(recorded.event, BattlesImported):
            if recorded.event.drawn is None:
                raise ConfigurationError([_drawn_otherwise(name, None)])
            return recorded.event.drawn
    return None


def _drawn_otherwise(name: str, known: VoteSample | None) -> str:
    if known is None:
        return f"set {name!r} was imported from a file; vote under another --name"
    drawn = f"{known.design}, seed {known.seed}, of {known.tournament!r} on {known.dimension!r}"
    return f"set {name!r} was drawn otherwise ({drawn}); go on with it, or use another --name"
