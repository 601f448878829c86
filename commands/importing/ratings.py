"""Use case of `tourney import elo-ratings`: append the ratings of JudgeArena's elo_ratings.json.

They are shown beside tourney's own ratings; nothing is computed from them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from commands.importing.formats.files import decode_json
from commands.importing.formats.rows import (
    Fields,
    InvalidFields,
    one_of,
    optional_number,
    optional_text,
    shorten,
    text,
)
from ledger.events.imports import ImportedRating, RatingsImported, RatingSource, battles_stream
from ledger.identity import Digest
from ledger.store import Ledger

_MAPPING_VERSION: Final = 1
_SOURCES: Final[Sequence[RatingSource]] = ("evaluated", "human")


def import_ratings(ledger: Ledger, file: Path, *, name: str) -> RatingsImported:
    """Append a file's ratings; repeating it is harmless.

    Args:
        ledger: Open for writing.
        file: The file, recorded by its digest.
        name: Name of the set of battles that they belong to.

    Raises:
        ConfigurationError: The file cannot be read, or is not an elo_ratings.json; nothing was
            appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    event = _event(file)
    ledger.append(battles_stream(name), [event])
    return event


def _event(file: Path) -> RatingsImported:
    try:
        content = file.read_bytes()
        return _ratings(decode_json(content), Digest(hashlib.sha256(content).hexdigest()))
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from error
    except (InvalidFields, ValueError) as error:
        raise ConfigurationError([f"{file} is not an elo_ratings.json: {error}"]) from error


def _ratings(found: object, digest: Digest) -> RatingsImported:
    if not isinstance(found, dict) or not isinstance(found.get("ratings"), list):
        raise InvalidFields("the list `ratings` is missing")
    return RatingsImported(
        file_digest=digest,
        format="judgearena",
        mapping_version=_MAPPING_VERSION,
        arena=optional_text(found, "arena"),
        evaluated=optional_text(found, "model"),
        judge_model=optional_text(found, "judge_model"),
        n_bootstraps=_optional_count(found, "n_bootstraps"),
        seed=_optional_count(found, "seed"),
        ratings=tuple(map(_rating, found["ratings"])),
    )


def _rating(found: object) -> ImportedRating:
    if not isinstance(found, dict):
        raise InvalidFields(f"{shorten(found)} is not a rating")
    entrant, rating = text(found, "model"), optional_number(found, "rating")
    if rating is None:
        raise InvalidFields(f"{entrant!r} has no rating")
    return ImportedRating(
        entrant=entrant,
        rating=rating,
        ci_low=optional_number(found, "ci_low"),
        ci_high=optional_number(found, "ci_high"),
        n_battles=_optional_count(found, "n_battles"),
        source=one_of(found, "source", _SOURCES),
        dimension=optional_text(found, "dimension"),
    )


def _optional_count(fields: Fields, name: str) -> int | None:
    number = optional_number(fields, name)
    if number is not None and (number < 0 or number % 1):
        raise InvalidFields(f"{name} is {shorten(fields[name])}, but must be an integer from 0")
    return None if number is None else int(number)
