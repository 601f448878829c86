"""Ratings that others published: kept as they were said, to be shown beside ours."""

from typing import Literal

from ledger.events.fact import Fact, Value
from ledger.events.limits import Count, FilledText, Ordinal
from ledger.identity import Digest

RatingSource = Literal["evaluated", "human"]


class ImportedRating(Value, frozen=True, kw_only=True):
    """What was said of one entrant, on the scale of who said it."""

    entrant: FilledText
    rating: float
    ci_low: float | None = None  # of an interval of 95 %
    ci_high: float | None = None
    n_battles: Count | None = None
    source: RatingSource  # evaluated: a judge compared it; human: people did
    dimension: str | None = None


class RatingsImported(Fact, frozen=True, kw_only=True):
    """Ratings were read from a file; they are no battles, and none of ours rests on them."""

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
        """A file is read once by a mapping; a mapping put right reads it anew."""
        return (self.file_digest, f"{self.format}@{self.mapping_version}")
