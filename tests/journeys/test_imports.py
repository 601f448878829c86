"""Answers and adapters that others made, imported from the command line and gone on with."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from commands.entrants.weights import require_head_fit
from projections.tournament.matches import prompt_seed
from tests.support.command_line.launching import N_PROMPTS, Tourney
from tests.support.command_line.settled import fields

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


def test_a_cache_of_nothing_is_told_of(
    place: Path, tourney: Tourney, caches: dict[str, str]
) -> None:
    """Of several files each is seen to have been looked at."""
    name = next(iter(caches.values()))
    (place / "responses_none.jsonl").touch()

    done = tourney("import", "responses", name, "responses_none.jsonl")

    assert done.returncode == 0, done.stderr
    assert "nothing of responses_none.jsonl was imported: it is empty\n" in done.stderr
    assert f"nothing of {name}" not in done.stderr


N_HEADS, DEPTH = 2, 2
LAYERS = range(4, 6)  # the last of the quickstart's six
HIDDEN, INNER = 160, 448
MODULES = {
    "w1": ("gate_proj", HIDDEN, INNER),
    "w2": ("down_proj", INNER, HIDDEN),
    "w3": ("up_proj", HIDDEN, INNER),
}
COMMAND = ("import", "hydra-weights", "weights", "imported")


def save_shard(file: Path, *, rank: int, seed: int) -> dict[str, torch.Tensor]:
    """Write a head's file in the original's layout; return the tensors by peft's names."""
    stream = torch.Generator().manual_seed(seed)
    theirs, ours = {}, {}
    for block, layer in enumerate(LAYERS):
        for weight, (projection, n_in, n_out) in MODULES.items():
            for half, shape in (("A", (rank, n_in)), ("B", (n_out, rank))):
                block_key = f"blocks.{block}.feed_forward.{weight}.lora_{half}.default.weight"
                layer_key = f"model.layers.{layer}.mlp.{projection}.lora_{half}.weight"
                tensor = torch.randn(shape, generator=stream)
                theirs[f"base_model.model.{block_key}"] = tensor
                ours[f"base_model.model.{layer_key}"] = tensor
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(theirs, file)
    return ours


@pytest.fixture
def originals(place: Path) -> dict[str, dict[str, torch.Tensor]]:
    """Lay out all of the original's layouts; give what each becomes."""
    shards = {"uncertainty": save_shard(place / "doubt" / "checkpoint_final.pt", rank=4, seed=99)}
    for head in range(N_HEADS):
        shards[f"security/shard_{head}"] = save_shard(
            place / "prod" / f"shard_{head}_lora.pt", rank=2, seed=head
        )
        run = place / "robust" / f"shard_{head}" / "run_7" / "checkpoints"
        shards[f"robustness/shard_{head}"] = save_shard(
            run / "checkpoint_final_slim.pt", rank=4, seed=10 + head
        )
        shards[f"robustness/step_50/shard_{head}"] = save_shard(
            run / "checkpoint_step_50_slim.pt", rank=4, seed=20 + head
        )
    manifest = {"config": {"lora_r": 2, "lora_alpha": 4, "heads_depth": DEPTH}}
    (place / "prod" / "manifest.json").write_text(json.dumps(manifest))
    return shards


def test_the_originals_folders_become_folders_of_peft(
    place: Path, tourney: Tourney, originals: dict[str, dict[str, torch.Tensor]]
) -> None:
    """Every tensor of every step is there, under the name of the layer that it changes."""
    sets = ("--security", "prod", "--robustness", "robust", "--uncertainty", "doubt")

    done = tourney(*COMMAND, *sets, "--json")

    assert done.returncode == 0, done.stderr
    assert done.stderr == "7 adapters in imported\n"
    rows = json.loads(done.stdout)["rows"]
    assert {row["adapter"]: row["rank"] for row in rows} == {
        name: 2 if name.startswith("security") else 4 for name in originals
    }
    for name, expected in originals.items():
        folder = place / "imported" / name
        found = load_file(folder / "adapter_model.safetensors")
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        settings = json.loads((folder / "adapter_config.json").read_text())
        assert settings["base_model_name_or_path"] == "weights"
        assert settings["lora_alpha"] == 2 * settings["r"]
        require_head_fit(place / "weights", folder, LAYERS)


@pytest.mark.usefixtures("originals")
def test_files_without_a_manifest_tell_how_deep_heads_are(place: Path, tourney: Tourney) -> None:
    """Their blocks are numbered, and a file has all of them."""
    done = tourney(*COMMAND, "--robustness", "robust")

    assert done.returncode == 0, done.stderr
    assert done.stderr == "4 adapters in imported\n"
    require_head_fit(place / "weights", place / "imported" / "robustness" / "shard_0", LAYERS)
