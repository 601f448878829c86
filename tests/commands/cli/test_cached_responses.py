"""Responses that tap's scripts cached, from the command line: imported, judged, and verified."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from projections.tournament.matches import prompt_seed
from tests.commands.cli.conftest import N_PROMPTS, Tourney
from tests.commands.cli.settled import fields

Json = Mapping[str, Any]


def write_cache(folder: Path, entrant: Json) -> str:
    """Write what an entrant would have cached, in every second line its gold answer."""
    name = f"responses_{entrant['id']}.jsonl"
    bank = (folder / "bank.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [cached(entrant, json.loads(line), n) for n, line in enumerate(bank)]
    (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return name


def cached(entrant: Json, prompt: Json, n: int) -> Json:
    """Return a line of a cache."""
    is_hydra = entrant.get("loader") == "hydra"
    return {
        "entrant_id": entrant["id"],
        "prompt_id": prompt["prompt_id"],
        "response_text": prompt["gold_answer"] if n % 2 else f"{entrant['id']} cannot say",
        "p_correct": None,
        "diagnostics": {
            "draft_head_idx": 0 if is_hydra else None,
            "seed": prompt_seed(prompt["prompt_id"]),
            "bypass_jury": entrant.get("bypass_jury", False) if is_hydra else None,
            "n_resampled": 0,
            "n_tokens_generated": 5,
        },
        "timestamp": "2026-04-27T12:00:00+00:00",
    }


@pytest.fixture
def caches(place: Path) -> dict[str, str]:
    """Give the caches of the entrants that are configured, by entrant."""
    configured = tomllib.loads((place / "tournament.toml").read_text(encoding="utf-8"))
    return {entrant["id"]: write_cache(place, entrant) for entrant in configured["entrants"]}


def test_cached_responses_are_judged_without_generating(
    tourney: Tourney, caches: dict[str, str]
) -> None:
    """Hours of a GPU were paid for them; whose claim they rest on is said, and kept."""
    first = tourney("import", "responses", *caches.values(), "--json")
    second = tourney("import", "responses", *caches.values(), "--json")
    owed = tourney("plan", "generate", "--exit-code")
    judged = tourney("apply", "judge", "--yes")
    verified = tourney("verify", "--json")

    done = (first, second, owed, judged, verified)
    assert [each.returncode for each in done] == [0] * 5, [each.stderr for each in done]
    assert "cannot check that these responses are by the configured entrants" in first.stderr
    assert fields(first)["rows"] == sorted(rows(caches, responses=N_PROMPTS), key=by_file)
    assert fields(second)["rows"] == sorted(rows(caches, already_there=N_PROMPTS), key=by_file)
    assert fields(verified)["rows"] == []
    assert all(row["imported_from"] for row in shown(tourney))


def rows(caches: Mapping[str, str], **counts: int) -> list[dict[str, object]]:
    """Return what the import's table says of caches that are alike."""
    none = {"responses": 0, "already_there": 0, "skipped": 0}
    return [{"file": name, "entrant": who, **none, **counts} for who, name in caches.items()]


def by_file(row: Json) -> str:
    """Return what rows are sorted by."""
    return str(row["file"])


def shown(tourney: Tourney) -> list[dict[str, Any]]:
    """Return the responses as they are on record."""
    found: list[dict[str, Any]] = fields(tourney("project", "responses", "--json"))["rows"]
    return found


def test_a_bad_line_is_listed_and_may_be_left_out(
    place: Path, tourney: Tourney, caches: dict[str, str]
) -> None:
    """With its line, and nothing is recorded until it is put right or left out."""
    name = next(iter(caches.values()))
    with (place / name).open("a", encoding="utf-8") as cache:
        cache.write('{"entrant_id": "ba')

    refused = tourney("import", "responses", name)
    skipped = tourney("import", "responses", name, "--skip-bad", "--json")

    where = f"{name}:{N_PROMPTS + 1}: not JSON"
    assert (refused.returncode, skipped.returncode) == (2, 0), skipped.stderr
    assert "1 line cannot be imported; nothing was imported" in refused.stderr
    assert where in refused.stderr
    assert where in skipped.stderr
    assert sum(row["skipped"] for row in fields(skipped)["rows"]) == 1
    assert sum(row["responses"] for row in fields(skipped)["rows"]) == N_PROMPTS
