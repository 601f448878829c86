"""The golden payloads: of each event type and version one, and more where its shape differs.

What is there is never written again: it stands for ledgers that exist. Save that of a new type or
version as NAME.vN.json, as `EVENTS.encode` gives it; what stands behind the version tells shapes
apart.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ledger.events.registry import EVENTS, UPCASTS, Event

GOLDENS: Final = Path(__file__).parents[2] / "golden" / "events"
STORED: Final = sorted(GOLDENS.iterdir())


def kind_of(path: Path) -> tuple[str, int]:
    """Return the type and version of a golden."""
    type_, version, *_ = path.name.split(".")
    return type_, int(version.removeprefix("v"))


def read(path: Path) -> Event:
    """Return the event that a golden says, as it is now."""
    return EVENTS.decode(*kind_of(path), path.read_bytes())


SAMPLES: Final[Mapping[str, Event]] = {
    path.name: read(path) for path in STORED if kind_of(path) not in UPCASTS
}
"""The event of each golden of today's versions, by its file."""
