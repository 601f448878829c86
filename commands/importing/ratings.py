"""Use case of `tourney import elo-ratings`: append the ratings of JudgeArena's elo_ratings.json.

They are shown beside tourney's own ratings; nothing is computed from them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from commands.importing.formats.files import decode_json, reading
from commands.importing.formats.rows import Cells, InvalidFields, shorten
from ledger.events.imports import ImportedRating, RatingsImported, RatingSource, battles_stream
from ledger.identity import Digest, digest_of_bytes
from ledger.store import Ledger

_MAPPING_VERSION: Final = 1
_SOURCES: Final[Mapping[str, RatingSource]] = {"evaluated": "evaluated", "human": "human"}


def import_ratings(ledger: Ledger, file: Path, *, name: str) -> RatingsImported:
    """Append a file's ratings; repeating it is harmless.

    The file is recorded by its digest; `name` is the set of battles that they belong to.

    Raises:
        ConfigurationError: The file cannot be read, or is not an elo_ratings.json; nothing was
            appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    event = _event(file)
    ledger.append(battles_stream(name), [event])
    return event


def _event(file: Path) -> RatingsImported:
    with reading(file):
        content = file.read_bytes()
    if not content.strip():
        raise ConfigurationError([f"{file}: the file is empty"])
    try:
        return _ratings(decode_json(content), digest_of_bytes(content))
    except (InvalidFields, ValueError) as error:
        raise ConfigurationError([f"{file} is not an elo_ratings.json: {error}"]) from error


def _ratings(found: object, digest: Digest) -> RatingsImported:
    if not isinstance(found, dict) or not isinstance(found.get("ratings"), list):
        raise InvalidFields("the list `ratings` is missing")
    cells = Cells(found)
    return RatingsImported(
        file_digest=digest,
        format="judgearena",
        mapping_version=_MAPPING_VERSION,
        arena=cells.optional_text("arena"),
        evaluated=cells.optional_text("model"),
        judge_model=cells.optional_text("judge_model"),
        n_bootstraps=cells.optional_count("n_bootstraps"),
        seed=cells.optional_count("seed"),
        ratings=tuple(map(_rating, found["ratings"])),
    )


def _rating(found: object) -> ImportedRating:
    if not isinstance(found, dict):
        raise InvalidFields(f"{shorten(found)} is not a rating")
    cells = Cells(found)
    entrant, rating = cells.text("model"), cells.optional_number("rating")
    if rating is None:
        raise InvalidFields(f"{entrant!r} has no rating")
    return ImportedRating(
        entrant=entrant,
        rating=rating,
        ci_low=cells.optional_number("ci_low"),
        ci_high=cells.optional_number("ci_high"),
        n_battles=cells.optional_count("n_battles"),
        source=cells.mapped_value("source", _SOURCES),
        dimension=cells.optional_text("dimension"),
    )
