"""Entrants of settings and of checkpoints: their files, digests and options."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from commands.entrants.files import base_weights, read_checkpoint, read_entrant
from commands.entrants.weights import HubSnapshot, folder_digest
from commands.errors import WeightsError
from commands.settings.schema import GenerationSection
from commands.settings.sections import AnyEntrantSection
from ledger.events.registration import Adapter, Entrant, Hydra
from tests.support.builders.commands import write_olmo, write_shard
from tests.support.weights.headers import write_headers, write_shapes

SECTION: TypeAdapter[Any] = TypeAdapter(AnyEntrantSection)
ROBUST = {"robustness": "robustness", "rob_checkpoint": -1}
ASKED = {"uncertainty": "uncertainty", "needs_uncertainty": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give an OLMo 2 of four layers, and what two heads of two layers learnt."""
    write_olmo(tmp_path / "weights", n_layers=4)
    write_set(tmp_path / "security", first_byte=10)
    write_set(tmp_path / "robustness", first_byte=20)
    write_set(tmp_path / "robustness" / "step_50", first_byte=30)
    write_shard(tmp_path / "uncertainty", 2, 3, first_byte=40)
    return tmp_path


def write_set(folder: Path, *, first_byte: int) -> None:
    """Write two shards, which differ."""
    for head in range(2):
        write_shard(folder / f"shard_{head}", 2, 3, first_byte=first_byte + head)


def entrant(folder: Path, **fields: object) -> Entrant:
    """Read an entrant whose section says so, in a tournament of 256 new tokens."""
    section = SECTION.validate_python({"id": "poe", "weights": "weights", **fields})
    return read_entrant(section, GenerationSection(dtype="float32"), folder)


def hydra(folder: Path, **fields: object) -> Hydra:
    """Read a Hydra of two heads of two layers."""
    given = {"loader": "hydra", "security": "security"}
    found = entrant(folder, **{**given, **fields}).hydra
    assert found
    return found


def adapters(folder: Path, *names: str) -> tuple[Adapter, ...]:
    """Return the adapters that lie there."""
    paths = [folder / name for name in names]
    return tuple(Adapter(path=str(path), digest=folder_digest(path)) for path in paths)


def test_plain_weights_have_no_heads(folder: Path) -> None:
    """A new loader must not change what those before it are."""
    plain = entrant(folder, adapters=["uncertainty"], temperature=0.5)

    assert (plain.loader, plain.hydra, plain.temperature) == ("hf", None, 0.5)
    assert plain.adapters == adapters(folder, "uncertainty")


def test_a_hydra_is_its_shards_and_how_they_decode(folder: Path) -> None:
    """One shard a head, in the order of the heads, named by content."""
    found = hydra(folder, beta=0.5, **ROBUST, **ASKED)

    assert found == Hydra(
        heads_depth=2,
        security=adapters(folder, "security/shard_0", "security/shard_1"),
        robustness=adapters(folder, "robustness/shard_0", "robustness/shard_1"),
        uncertainty=adapters(folder, "uncertainty")[0],
        bypass_jury=False,
        beta=0.5,
    )


def test_a_step_of_robustness_is_that_steps_shards(folder: Path) -> None:
    """Sweeps compare steps, and would see no difference if all were the final one."""
    found = hydra(folder, robustness="robustness", rob_checkpoint=50)

    steps = "robustness/step_50/shard_0", "robustness/step_50/shard_1"
    assert found.robustness == adapters(folder, *steps)


@pytest.mark.parametrize("name", ["security", "robustness", "uncertainty"])
def test_files_as_training_left_them_are_refused_with_the_command_to_run(
    folder: Path, name: str
) -> None:
    """They are pickles, which nothing but the import reads."""
    pickles = folder / "pickles"
    pickles.mkdir()
    for file in ("shard_0_lora.pt", "shard_1_lora.pt", "checkpoint_final.pt"):
        (pickles / file).write_bytes(b"pickled")

    remedy = (
        f"run `tourney import hydra-weights {folder / 'weights'} OUT --{name} DIR`, where DIR is "
    )
    with pytest.raises(WeightsError, match=re.escape(f"this is a file; {remedy}")):
        hydra(folder, **{**ROBUST, **ASKED, name: "pickles"})


def test_without_robustness_none_is_merged(folder: Path) -> None:
    """Nor of a folder alone: rob_checkpoint says whether, and which."""
    assert hydra(folder).robustness == ()
    assert hydra(folder, robustness="robustness").robustness == ()


def test_an_uncertainty_head_that_is_not_needed_is_not_read(folder: Path) -> None:
    """It says nothing about a response, so it is no part of the entrant."""
    unasked = hydra(folder, uncertainty="nowhere", needs_uncertainty=False)

    assert unasked == hydra(folder)


def test_an_entrant_may_have_a_limit_of_its_own(folder: Path) -> None:
    """It goes before [generation], for any loader."""
    limits = [entrant(folder, **each).max_new_tokens for each in ({}, {"max_new_tokens": 40})]

    assert limits == [256, 40]


def served(folder: Path, **fields: object) -> Entrant:
    """Read an entrant that a server serves; of the tournament's dtype nothing is sent there."""
    given = {"id": "hosted", "loader": "endpoint", "model": "org/large", "base_url": "http://a/v1"}
    section = SECTION.validate_python({**given, **fields})
    return read_entrant(section, GenerationSection(dtype="float32"), folder)


def test_a_served_entrant_is_the_name_of_its_weights(folder: Path) -> None:
    """Nothing can be read of them, and nothing is said that nobody knows."""
    hosted = served(folder, revision="2026-04", temperature=0.5)

    assert (hosted.loader, hosted.weights, hosted.revision) == ("endpoint", "org/large", "2026-04")
    assert (hosted.dtype, hosted.adapters, hosted.temperature) == (None, (), 0.5)


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        ({"model": "org/small"}, True),
        ({"revision": "2026-04"}, True),
        ({"max_new_tokens": 8}, True),
        ({"base_url": "https://b/v1"}, False),
        ({"concurrency": 2}, False),
    ],
    ids=str,
)
def test_other_weights_on_a_server_are_another_entrant_and_a_moved_server_is_not(
    folder: Path, changed: Mapping[str, object], *, is_other: bool
) -> None:
    """The responses on record are not theirs; those of the same weights are not paid for again."""
    plain, other = served(folder), served(folder, **changed)

    assert (other != plain) == (other.digest != plain.digest) == is_other


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"weights": "nowhere"}, "nowhere: there is no such folder of weights"),
        ({"security": "nowhere"}, "nowhere: there is no such folder of shards"),
        ({**ROBUST, "rob_checkpoint": 75}, "robustness: it has no step 75; it has: step 50, final"),
        ({**ROBUST, "robustness": "weights"}, "weights: there are no shards in it"),
        ({**ASKED, "uncertainty": "security"}, "security: it holds neither of adapter_config.json"),
    ],
    ids=str,
)
def test_a_hydra_that_cannot_be_is_refused(
    folder: Path, changed: Mapping[str, object], fault: str
) -> None:
    """Before anything is recorded or generated, and with the place that is wrong."""
    with pytest.raises(WeightsError, match=fault):
        hydra(folder, **changed)


def rewritten(shard: Path, *layers: int) -> None:
    """Write a shard of these layers in the place of another."""
    shutil.rmtree(shard)
    write_shard(shard, *layers)


@pytest.mark.parametrize("name", ["robustness/shard_1", "uncertainty"])
def test_heads_are_as_deep_as_the_deepest_of_their_shards(folder: Path, name: str) -> None:
    """All heads have the same layers; what one shard leaves as it was changes nothing."""
    rewritten(folder / name, 1, 2)

    assert hydra(folder, **ROBUST, **ASKED).heads_depth == 3
    assert hydra(folder).heads_depth == 2


@pytest.mark.parametrize(
    ("config", "layers", "fault"),
    [
        ({"heads_depth": 1}, (2, 3), r"security/shard_0: it has LoRA tensors outside .* 3 to 3: "),
        ({"num_shards": 3}, (2, 3), "security: its final .* fit 3 heads: shard 2 is missing; put"),
        ({"num_shards": 1}, (2, 3), "security: it has the shard of one head, and a Hydra has sev"),
        ({}, (0, 3), "weights: it has 4 layers; heads of depth 4 leave none for the trunk"),
    ],
    ids=str,
)
def test_shards_that_contradict_their_manifest_or_weights_are_refused(
    folder: Path, config: Mapping[str, int], layers: tuple[int, int], fault: str
) -> None:
    """A copy that broke off has fewer shards than the manifest says."""
    (folder / "security" / "manifest.json").write_text(json.dumps({"config": config}))
    rewritten(folder / "security" / "shard_0", *layers)

    with pytest.raises(WeightsError, match=fault):
        hydra(folder)


def test_sets_of_different_sizes_are_refused(folder: Path) -> None:
    """A head without robustness would be another head."""
    shutil.rmtree(folder / "robustness" / "shard_1")

    with pytest.raises(WeightsError, match=r"robustness: .* fit 2 heads: shard 1 is missing; put"):
        hydra(folder, **ROBUST)


def test_a_checkpoint_has_the_step_of_its_adapter(folder: Path) -> None:
    """Its base was trained before."""
    write_shard(folder / "checkpoint-60", 2, 3, first_byte=50)

    assert entrant(folder, adapters=["checkpoint-60"]).step == 60
    assert entrant(folder).step is None


@pytest.mark.parametrize(
    ("chosen", "stored"),
    [
        ({"system": "be short"}, {"system": "be short"}),
        ({"template": "none"}, {"template": "none"}),
        ({"template_arguments": {"b": 1, "a": 2}}, {"template_arguments": '{"a":2,"b":1}'}),
        ({"prompt_format": "Q: {prompt}"}, {"prompt_format": "Q: {prompt}"}),
        ({"stop": ["X"]}, {"stop": ("X",)}),
        ({"temperature": 1.0, "top_p": 0.9}, {"top_p": 0.9}),
        ({"temperature": 1.0, "top_k": 5}, {"top_k": 5}),
        ({"temperature": 1.0, "min_p": 0.1}, {"min_p": 0.1}),
        ({"repetition_penalty": 1.2}, {"repetition_penalty": 1.2}),
    ],
    ids=str,
)
def test_a_setting_makes_another_entrant_only_where_it_is_set(
    folder: Path, chosen: Mapping[str, object], stored: Mapping[str, object]
) -> None:
    """Responses of before the setting existed must not be generated again."""
    heat = {key: value for key, value in chosen.items() if key == "temperature"}

    for read in (entrant, served):
        plain, other = read(folder, **heat), read(folder, **chosen)

        assert "options" not in plain.fields
        assert other.fields["options"] == stored
        assert plain.digest != other.digest


def test_an_adapter_of_another_family_is_refused(folder: Path, tmp_path: Path) -> None:
    """Equal shapes would be merged in silence, and answer nonsense."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "llama"}')
    settings = folder / "uncertainty" / "adapter_config.json"
    settings.write_text(json.dumps({"base_model_name_or_path": str(tmp_path / "other")}))

    with pytest.raises(WeightsError, match="which is llama, and not olmo2; use the weights"):
        entrant(folder, adapters=["uncertainty"])


def test_weights_and_adapters_by_name_are_those_of_equal_folders(folder: Path) -> None:
    """The commit is recorded, but the content alone says which responses are theirs."""
    asked: list[tuple[str, str | None]] = []

    def fetch(name: str, revision: str | None) -> HubSnapshot:
        asked.append((name, revision))
        return HubSnapshot(folder / name.partition("/")[2], revision or "main's")

    section = {"adapters": ["uncertainty"], "temperature": 0.5}
    named = {"weights": "org/weights@c0ffee", "adapters": ["org/uncertainty@v1"]}
    whole = SECTION.validate_python({"id": "poe", **section, **named})
    found = read_entrant(whole, GenerationSection(dtype="float32"), folder, fetch)

    local = entrant(folder, **section)
    assert (found.revision, local.revision) == ("c0ffee", None)
    assert (found.digest, found.weights) == (local.digest, local.weights)
    assert found.adapters == local.adapters
    assert asked == [("org/weights", "c0ffee"), ("org/uncertainty", "v1")]


def test_a_folder_whose_name_has_an_at_sign_is_a_folder(folder: Path) -> None:
    """People name checkpoints as they like."""
    (folder / "uncertainty").rename(folder / "uncertainty@v1")

    assert entrant(folder, adapters=["uncertainty@v1"]).adapters[0].path.endswith("@v1")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the working folder, with a base at out/base."""
    weights(tmp_path / "out" / "base")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def weights(folder: Path, *types: str) -> None:
    """Write a folder of weights, whose tensors have these types."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    write_headers(folder / "model.safetensors", types or ("F32",))


def adapter_config(folder: Path, base: object) -> Path:
    """Write an adapter's configuration that names its base."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "adapter_config.json"
    file.write_text(json.dumps({"base_model_name_or_path": base}), encoding="utf-8")
    return file


@pytest.mark.parametrize("base", ["out/base", "base", "../base", "{here}/out/base"])
def test_the_base_of_an_adapter_is_found_from_here_or_beside_it(here: Path, base: str) -> None:
    """Peft writes the path as the training said it, and trainings are moved."""
    config = adapter_config(Path("out/adapter"), base.format(here=here))

    assert base_weights(config).resolve() == here / "out" / "base"


LORA = {"base_model.model.q.lora_A.weight": (2, 4), "base_model.model.q.lora_B.weight": (4, 2)}


@pytest.mark.parametrize(
    ("checkpoint", "commit"),
    [("org/base@v1", "v1"), ("org/adapter@v2", "main"), ("org/here", None)],
)
def test_weights_and_bases_may_be_names_on_the_hub(
    here: Path, checkpoint: str, commit: str | None
) -> None:
    """As of a tournament's entrants; most adapters name their base so."""
    weights(here / "hub" / "base")
    for base in ("hub/base", "out/base"):
        write_shapes(here / base / "model.safetensors", {"q.weight": (4, 4)})
    for adapter, named in (("adapter", "org/base"), ("here", "out/base")):
        adapter_config(here / "hub" / adapter, named)
        write_shapes(here / "hub" / adapter / "adapter_model.safetensors", LORA)

    def fetch(name: str, revision: str | None) -> HubSnapshot:
        return HubSnapshot(here / "hub" / Path(name).name, revision or "main")

    found = read_checkpoint(Path(checkpoint), "a", GenerationSection(), fetch=fetch)

    base = "hub/base" if commit else "out/base"
    assert (found.weights, found.revision) == (str(here / base), commit)
    assert [Path(each.path).name for each in found.adapters] == (
        [] if commit == "v1" else [checkpoint.removeprefix("org/").removesuffix("@v2")]
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("base", ["allenai/OLMo-2-1124-7B", "out/bass"])
def test_a_base_that_is_not_here_is_told(base: str) -> None:
    """With what the adapter says, which is a name on a hub more often than not."""
    with pytest.raises(WeightsError, match=f"base_model_name_or_path is '{base}', no folder here"):
        base_weights(adapter_config(Path("adapter"), base))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        (("F32",), "float32"),
        (("BF16", "BF16", "F32"), "bfloat16"),  # some norms stay in float32
        (("F16", "I64", "I64"), "float16"),
        (("I64",), "float32"),
    ],
)
def test_weights_are_read_in_the_type_of_most_tensors(types: tuple[str, ...], dtype: str) -> None:
    """Numbers of one training would differ by how its weights were handed over."""
    weights(Path("saved"), *types)

    assert read_checkpoint(Path("saved"), "saved", GenerationSection()).dtype == dtype


@pytest.mark.usefixtures("here")
def test_a_type_that_is_asked_for_counts_and_others_are_not_guessed() -> None:
    """A large model is evaluated in half of its memory; a trainer's model is refused likewise."""
    weights(Path("saved"), "F64")

    asked = read_checkpoint(Path("saved"), "saved", GenerationSection(dtype="float16"))
    with pytest.raises(WeightsError, match="its tensors are F64, but must be one of F32, BF16, F"):
        read_checkpoint(Path("saved"), "saved", GenerationSection())

    assert asked.dtype == "float16"
