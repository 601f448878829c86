"""Adapters in memory: merged exactly, or refused by name."""

import copy
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, PreTrainedModel

from commands.backends.weights.lora import Lora, merge_lora, read_lora, require_head_lora
from commands.errors import WeightsError
from tests.support.weights.families import family_model

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")

LAYER = "base_model.model.model.layers"
LAYERS = range(4, 6)


def lora_of(*keys: str) -> Lora:
    """Return LoRA of these tensors, the key of the file's place left out."""
    return Lora(Path("shard_0"), LoraConfig(), {key: torch.ones(1) for key in keys})


def test_lora_that_was_merged_can_be_merged_again(
    weights: Path, adapters: tuple[Path, Path]
) -> None:
    """Nine heads start from the same weights; what is in memory must not change in between."""
    lora = read_lora(adapters[0])

    first, second = (merge_lora(base(weights), lora).state_dict() for _ in range(2))

    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert lora.settings == read_lora(adapters[0]).settings


@pytest.mark.parametrize(
    "key",
    [
        f"{LAYER}.3.mlp.up_proj.lora_A.weight",
        f"{LAYER}.6.mlp.up_proj.lora_A.weight",
        f"{LAYER}.5.self_attn.q_proj.lora_A.weight",
        f"{LAYER}.5.mlp.up_proj.base_layer.weight",
        "base_model.model.lm_head.weight",
    ],
)
def test_lora_for_anything_else_is_refused_by_key(key: str) -> None:
    """Heads share all else: what one shard changed there would change every head."""
    lora = lora_of(f"{LAYER}.5.mlp.up_proj.lora_B.weight", key)

    with pytest.raises(WeightsError, match="LoRA for another layer or module") as refusal:
        require_head_lora(lora, LAYERS)

    assert refusal.value.why.endswith(f"than the MLPs of layers 4 to 5: {key}")


SCALES = (8 / 4, 8 / 2)  # lora_alpha / r of the two adapters
Q_PROJ = "model.layers.0.self_attn.q_proj"
KEY = f"base_model.model.{Q_PROJ}.lora_A.weight"

Copied = Callable[[Path], Path]
Respecified = Callable[..., Path]


def base(weights: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Return the weights that the adapters are for, to be changed."""
    return copy.deepcopy(kept(weights, dtype))


@cache
def kept(weights: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Load weights once."""
    return AutoModelForCausalLM.from_pretrained(weights, dtype=dtype)


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    """Read an adapter's tensors."""
    return load_file(folder / "adapter_model.safetensors")


def respelt(folder: Path, changed: dict[str, torch.Tensor]) -> Path:
    """Give an adapter other tensors."""
    save_file(changed, folder / "adapter_model.safetensors")
    return folder


def test_two_adapters_are_merged_one_after_the_other(
    weights: Path, adapters: tuple[Path, Path]
) -> None:
    """The entrant must be W + scale * B @ A for each adapter, by hand and by peft's own way."""
    merged, by_peft = base(weights), base(weights)
    for folder in adapters:
        merged = merge_lora(merged, read_lora(folder))
        by_peft = PeftModel.from_pretrained(by_peft, folder).merge_and_unload()

    by_hand = base(weights).state_dict()
    for folder, scale in zip(adapters, SCALES, strict=True):
        lora = tensors(folder)
        for key in (key for key in lora if ".lora_A." in key):
            name = key.removeprefix("base_model.model.").replace(".lora_A", "")
            by_hand[name] += scale * lora[key.replace("lora_A", "lora_B")] @ lora[key]
    for name, found in merged.state_dict().items():
        torch.testing.assert_close(found, by_hand[name], rtol=0, atol=1e-6)
        torch.testing.assert_close(found, by_peft.state_dict()[name], rtol=0, atol=0)


def test_embeddings_saved_along_with_an_adapter_are_loaded(
    weights: Path, adapters: tuple[Path, Path], copied: Copied
) -> None:
    """Trainers often save the embeddings too; that is a use of the key, not a misfit."""
    lora = tensors(adapters[0])
    trained = torch.full_like(base(weights).state_dict()["lm_head.weight"], 0.25)
    lora["base_model.model.lm_head.weight"] = trained

    merged = merge_lora(base(weights), read_lora(respelt(copied(adapters[0]), lora)))

    assert torch.equal(merged.state_dict()["lm_head.weight"], trained)


WITHOUT_MODULE = KEY.replace("layers.0", "layers.7")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({KEY: torch.ones(4, 48)}, rf"{KEY} is \[4, 48\], expected \[4, 32\]"),
        ({KEY: None}, f"does not fit: missing {KEY};"),  # only a warning for peft
        ({"*": None}, r"missing .*lora_A.*missing .*lora_B"),  # of a trainer that saved too early
        ({WITHOUT_MODULE: torch.ones(4, 32)}, r"for no module: .*layers\.7"),  # peft drops such
        ({KEY: torch.full((4, 32), math.nan)}, "cannot merge the adapter"),
    ],
)
def test_tensors_that_do_not_fit_the_weights_are_refused_by_name(
    weights: Path,
    adapters: tuple[Path, Path],
    copied: Copied,
    changed: dict[str, torch.Tensor | None],
    why: str,
) -> None:
    """Half an adapter, or one of a larger sibling of the base, is an easy mistake."""
    lora = {} if "*" in changed else {**tensors(adapters[0]), **changed}
    kept = {name: each for name, each in lora.items() if each is not None}

    with pytest.raises(WeightsError, match=why):
        merge_lora(base(weights), read_lora(respelt(copied(adapters[0]), kept)))


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (
            {"target_modules": ["q_proj", "v_proj", "query_key_value"]},
            "no module 'query_key_value'",
        ),
        ({"target_modules": ["query_key_value"]}, "query_key_value"),
        ({"r": 8}, r"is \[4, 32\], expected \[8, 32\]"),  # the scale is lora_alpha / r
        ({"layers_to_transform": [0, 1, 5]}, "no module 'layer 5'"),
        ({"layers_to_transform": [0]}, r"for no module: .*layers\.1"),
        ({"surprising_new_setting": 3}, "surprising_new_setting"),
        ({"peft_type": "UNHEARD_OF"}, "UNHEARD_OF"),
        ({"peft_type": None}, "peft cannot merge the adapter"),
        ({"r": 10**12}, "its rank is 1,000,000,000,000, but its largest tensor has 32 rows"),
        ({"rank_pattern": {"q_proj": 10**9}}, "its rank is 1,000,000,000"),
        ({"layer_replication": [[0, 2], [1, 2]]}, "repeats layers"),
    ],
)
def test_settings_that_do_not_fit_the_weights_are_refused(
    weights: Path,
    adapters: tuple[Path, Path],
    respecified: Respecified,
    setting: dict[str, object],
    why: str,
) -> None:
    """What is asked for and not there, or not understood, would be merged in part."""
    folder = respecified(adapters[0], "adapter_config.json", **setting)

    with pytest.raises(WeightsError, match=why) as refusal:
        merge_lora(base(weights), read_lora(folder))
    assert refusal.value.path == folder


def test_adapters_of_another_kind_are_refused(
    weights: Path, adapters: tuple[Path, Path], copied: Copied
) -> None:
    """Only for LoRA is it known here what a whole merge is."""
    folder = copied(adapters[0])
    IA3Config(target_modules=["q_proj"], feedforward_modules=[]).save_pretrained(str(folder))

    with pytest.raises(WeightsError, match=r"of type .*IA3.*, only LORA can be merged"):
        merge_lora(base(weights), read_lora(folder))


@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.safetensors"])
def test_a_missing_or_broken_file_is_named(
    weights: Path, adapters: tuple[Path, Path], copied: Copied, file: str
) -> None:
    """A download that stopped half-way, or Git LFS pointers under the right names."""
    folder = copied(adapters[0])
    (folder / file).write_text("version https://git-lfs.github.com/spec/v1")

    with pytest.raises(WeightsError, match="cannot merge the adapter"):
        merge_lora(base(weights), read_lora(folder))
    (folder / file).unlink()
    with pytest.raises(WeightsError, match=f"{file} is missing"):
        merge_lora(base(weights), read_lora(folder))
    with pytest.raises(WeightsError, match=r"nowhere: there is no such adapter folder"):
        merge_lora(base(weights), read_lora(folder / "nowhere"))


PARTS = (
    {"target_modules": ["embed_tokens"]},
    {"target_modules": ["embed_tokens", "lm_head", "q_proj"]},
    {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    {"target_modules": ["embed_tokens"], "ensure_weight_tying": True},
    {
        "target_modules": ["q_proj"],
        "modules_to_save": ["embed_tokens"],
        "ensure_weight_tying": True,
    },
    {"target_modules": ["q_proj"], "trainable_token_indices": [5, 6]},
)


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`:UserWarning")
@pytest.mark.parametrize(
    "part",
    [
        part if n in {1, 4, 5} else pytest.param(part, marks=pytest.mark.nightly)
        for n, part in enumerate(PARTS)
    ],
)
def test_an_adapter_on_tied_embeddings_is_the_model_that_peft_loads(
    weights: Path, tmp_path: Path, part: dict[str, Any]
) -> None:
    """Merged into the shared tensor it would change the other end, too: another entrant."""
    torch.manual_seed(39)
    adapted = get_peft_model(tied(weights), LoraConfig(r=2, init_lora_weights=False, **part))
    for name, each in adapted.named_parameters():
        if "modules_to_save" in name or "trainable_tokens" in name:
            torch.nn.init.normal_(each, std=0.1)
    adapted.save_pretrained(str(tmp_path / "lora"), save_embedding_layers=False)
    peft_model = PeftModel.from_pretrained(tied(weights), str(tmp_path / "lora"))
    tokens = torch.arange(5, 25)[None]

    merged = merge_lora(tied(weights), read_lora(tmp_path / "lora"))

    ours, theirs, before = (
        each.eval()(tokens).logits for each in (merged, peft_model, tied(weights))
    )
    scale = theirs.abs().max().item()  # a logit near 0 is a sum of terms as large as this
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * scale)
    assert not torch.allclose(ours, before, atol=1e-3 * scale)


def tied(weights: Path) -> PreTrainedModel:
    """Load the weights with one tensor for both ends."""
    model = base(weights)
    model.config.tie_word_embeddings = True
    model.tie_weights()
    return model


def test_an_adapter_of_another_vocabulary_says_so(weights: Path, tmp_path: Path) -> None:
    """A list of tensors told nobody what to do."""
    larger = base(weights)
    n_tokens = larger.config.vocab_size
    larger.resize_token_embeddings(n_tokens + 4)
    adapted = get_peft_model(larger, LoraConfig(r=2, target_modules=["embed_tokens"]))
    adapted.save_pretrained(str(tmp_path / "lora"), save_embedding_layers=True)

    with pytest.raises(
        WeightsError, match=rf"vocabulary of {n_tokens + 4:,} .* have {n_tokens:,};"
    ):
        merge_lora(base(weights), read_lora(tmp_path / "lora"))


def test_adapters_of_single_experts_are_merged_into_the_stacked_weights(tmp_path: Path) -> None:
    """Adapters of transformers 4 name each expert; the weights are one tensor for all now."""
    folder, rank, stream = tmp_path / "lora", 2, torch.Generator().manual_seed(1)
    model = family_model("qwen3_moe")
    before = {name: each.clone() for name, each in model.state_dict().items()}
    lora = {
        f"base_model.model.model.layers.{layer}.mlp.experts.{expert}.{name}.lora_{side}.weight": (
            torch.randn(*shape, generator=stream)
        )
        for layer in range(2)
        for expert in range(4)
        for name, n_out, n_in in (("gate_proj", 16, 32), ("up_proj", 16, 32), ("down_proj", 32, 16))
        for side, shape in (("A", (rank, n_in)), ("B", (n_out, rank)))
    }
    targets = ["gate_proj", "up_proj", "down_proj"]
    LoraConfig(r=rank, lora_alpha=4, target_modules=targets, task_type="CAUSAL_LM").save_pretrained(
        str(folder)
    )
    save_file(lora, folder / "adapter_model.safetensors")

    merged = merge_lora(model, read_lora(folder)).state_dict()

    def change(layer: int, expert: int, name: str) -> torch.Tensor:
        of = f"base_model.model.model.layers.{layer}.mlp.experts.{expert}.{name}"
        return 2 * lora[f"{of}.lora_B.weight"] @ lora[f"{of}.lora_A.weight"]

    for layer in range(2):
        experts = f"model.layers.{layer}.mlp.experts"
        for expert in range(4):
            gate_up = torch.cat([change(layer, expert, each) for each in targets[:2]])
            expected = before[f"{experts}.gate_up_proj"][expert] + gate_up
            torch.testing.assert_close(merged[f"{experts}.gate_up_proj"][expert], expected)
            down = before[f"{experts}.down_proj"][expert] + change(layer, expert, "down_proj")
            torch.testing.assert_close(merged[f"{experts}.down_proj"][expert], down)
