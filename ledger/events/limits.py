"""Limits on the fields of events: checked whenever an event is read or appended."""

from datetime import datetime
from typing import Annotated, TypeAlias

from msgspec import Meta

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Ordinal: TypeAlias = Annotated[int, Meta(ge=1)]
Seed32: TypeAlias = Annotated[int, Meta(ge=0, lt=2**32)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Duration: TypeAlias = Annotated[float, Meta(ge=0)]  # seconds
Probability: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Level: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]  # of confidence
FilledText: TypeAlias = Annotated[str, Meta(min_length=1)]
Dollars: TypeAlias = Annotated[float, Meta(ge=0)]
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]
