"""Limits on the fields of events: checked whenever an event is read or appended."""

from datetime import datetime
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

MAX_POINTS: Final = 1e6  # of Elo: wide of all that is rated, and formulas stay finite
MIN_SPREAD: Final = 0.01  # Elo points: intervals of less are lost in rounding
MIN_LEVEL: Final = 0.001
MAX_LEVEL: Final = 0.999999
MAX_REPEATS: Final = 1_000_000  # hours, and not for ever

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Ordinal: TypeAlias = Annotated[int, Meta(ge=1)]
Seed32: TypeAlias = Annotated[int, Meta(ge=0, lt=2**32)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Duration: TypeAlias = Annotated[float, Meta(ge=0)]  # seconds
Probability: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Level: TypeAlias = Annotated[float, Meta(ge=MIN_LEVEL, le=MAX_LEVEL)]  # of confidence
Step: TypeAlias = Annotated[float, Meta(gt=0, le=MAX_POINTS)]  # Elo points at a match
Spread: TypeAlias = Annotated[float, Meta(ge=MIN_SPREAD, le=MAX_POINTS)]  # Elo points
Rating: TypeAlias = Annotated[float, Meta(ge=-MAX_POINTS, le=MAX_POINTS)]
Repeats: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_REPEATS)]
RepeatsIfAny: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_REPEATS)]
FilledText: TypeAlias = Annotated[str, Meta(min_length=1)]
Dollars: TypeAlias = Annotated[float, Meta(ge=0)]
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]
