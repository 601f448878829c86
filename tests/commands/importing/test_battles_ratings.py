"""Taking in the ratings that others published."""

import json
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.battles import import_ratings
from ledger.events.imports import ImportedRating, RatingsImported
from ledger.store import Ledger
from projections.battles.imported_sets import IMPORTED_RATINGS
from projections.fold import fold

HUMAN = {
    "model": "gpt-4",
    "rating": 1100.5,
    "ci_low": 1090.0,
    "ci_high": 1111.0,
    "n_battles": 700,
    "source": "human",
}
RATINGS = {
    "arena": "LMArena-100k",
    "model": "tuned",
    "judge_model": "chrF2",
    "n_bootstraps": 20,
    "seed": 0,
    "ratings": [HUMAN],
}


def written(folder: Path, content: object) -> Path:
    """Write a file of ratings."""
    path = folder / "elo_ratings.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_ratings_are_kept_as_they_were_said(ledger: Ledger, tmp_path: Path) -> None:
    """They are shown beside ours, with their interval."""
    event = import_ratings(ledger, written(tmp_path, RATINGS), name="arena")

    rating = ImportedRating(
        entrant="gpt-4",
        rating=1100.5,
        ci_low=1090.0,
        ci_high=1111.0,
        n_battles=700,
        source="human",
    )
    assert event.ratings == (rating,)
    assert (event.arena, event.evaluated, event.judge_model) == ("LMArena-100k", "tuned", "chrF2")
    assert (event.n_bootstraps, event.seed) == (20, 0)
    found = fold(IMPORTED_RATINGS, ledger.read())
    assert dict(found) == {"arena": event}
    import_ratings(ledger, written(tmp_path, RATINGS), name="arena")
    assert ledger.head.position == 1  # the same file again is there already


def test_what_is_not_known_may_be_left_out_or_nan(ledger: Ledger, tmp_path: Path) -> None:
    """JudgeArena writes NaN bare, and our own file has a dimension and may have no interval."""
    sparse = {"model": "x", "rating": 1, "ci_low": float("nan"), "source": "evaluated"}
    dimension = {"dimension": "factuality", "ci_high": None}

    event = import_ratings(ledger, written(tmp_path, {"ratings": [sparse | dimension]}), name="a")

    rating = ImportedRating(entrant="x", rating=1.0, source="evaluated", dimension="factuality")
    assert event == RatingsImported(
        file_digest=event.file_digest, format="judgearena", mapping_version=1, ratings=(rating,)
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "the list `ratings` is missing"),
        ({"mean_ratings": {}}, "the list `ratings` is missing"),
        ({"ratings": [1]}, "1 is not a rating"),
        ({"ratings": [HUMAN | {"model": ""}]}, "model is '', but must be a text"),
        ({"ratings": [HUMAN | {"rating": None}]}, "'gpt-4' has no rating"),
        ({"ratings": [HUMAN | {"rating": float("inf")}]}, "rating is inf, but must be a number"),
        ({"ratings": [HUMAN | {"n_battles": 0.5}]}, "n_battles is 0.5, but must be a whole number"),
        ({"ratings": [HUMAN | {"n_battles": -1}]}, "n_battles is -1, but must be a whole number"),
        ({"ratings": [HUMAN | {"source": "oracle"}]}, "source is 'oracle', but must be one of"),
    ],
)
def test_what_are_no_ratings_is_refused(
    ledger: Ledger, tmp_path: Path, content: object, why: str
) -> None:
    """By the file's name and what is wrong in it; nothing is appended."""
    file = written(tmp_path, content)

    with pytest.raises(ConfigurationError) as caught:
        import_ratings(ledger, file, name="arena")

    assert str(caught.value).startswith(f"{file} is not an elo_ratings.json: {why}")
    assert ledger.head.position == 0


def test_an_empty_file_is_called_empty(ledger: Ledger, tmp_path: Path) -> None:
    """It is no JSON that was cut short."""
    file = tmp_path / "elo_ratings.json"
    file.touch()

    with pytest.raises(ConfigurationError, match=r"elo_ratings\.json: the file is empty$"):
        import_ratings(ledger, file, name="arena")


@pytest.mark.parametrize("content", [None, "{", "[" * 100_000], ids=["missing", "cut", "nested"])
def test_a_file_that_cannot_be_read_is_refused(
    ledger: Ledger, tmp_path: Path, content: str | None
) -> None:
    """Missing, cut short, or nested deeper than anybody means."""
    file = tmp_path / "elo_ratings.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigurationError, match=r"elo_ratings\.json"):
        import_ratings(ledger, file, name="arena")
