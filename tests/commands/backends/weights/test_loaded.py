"""Weights are loaded whole onto the device that was chosen, or refused with a remedy."""

import logging
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from commands.backends.weights.folder import quiet_transformers, require_finite_weights
from commands.backends.weights.loaded import load_weights, move_to_device
from commands.errors import WeightsError
from ledger.events.registration import Entrant
from tests.support.weights.loads import model_of

CPU = torch.device("cpu")

Build = Callable[..., Entrant]
Copied = Callable[[Path], Path]
Respecified = Callable[..., Path]


def test_weights_are_loaded_in_the_entrants_dtype(entrant: Build) -> None:
    """The dtype is part of the entrant's digest, so it must be what answers."""
    loaded = load_weights(entrant(dtype="float16"), CPU)

    assert {p.dtype for p in model_of(loaded).parameters()} == {torch.float16}
    assert not model_of(loaded).training


def test_every_end_token_that_is_named_anywhere_ends_an_answer(
    entrant: Build, weights: Path, respecified: Respecified
) -> None:
    """Weights, tokenizer and template often name different ones, and each can be right."""
    folder = respecified(weights, "generation_config.json", eos_token_id=[7, 9])

    loaded = load_weights(entrant(folder=folder), CPU)

    end_of_turn = loaded.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert loaded.end_ids == {7, 9, loaded.tokenizer.eos_token_id, end_of_turn}


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_broken_or_missing_file_is_told_with_the_way_to_get_it(
    entrant: Build, weights: Path, copied: Copied, file: str
) -> None:
    """A download that stopped half-way, or a Git LFS pointer under the right name."""
    folder = copied(weights)
    (folder / file).write_text("version https://git-lfs.github.com/spec/v1")

    with pytest.raises(WeightsError, match="cannot be read"):
        load_weights(entrant(folder=folder), CPU)
    (folder / file).unlink()
    with pytest.raises(WeightsError, match=r"hf download ORG/NAME --local-dir") as refusal:
        load_weights(entrant(folder=folder), CPU)
    assert refusal.value.path == folder


def test_code_beside_the_weights_is_never_run(
    entrant: Build, weights: Path, respecified: Respecified, tmp_path: Path
) -> None:
    """A bank of entrants comes from many hands."""
    trace = tmp_path / "it ran"
    auto_map = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    folder = respecified(weights, "config.json", model_type="own", auto_map=auto_map)
    (folder / "own.py").write_text(f"open({str(trace)!r}, 'w')")

    with pytest.raises(WeightsError):
        load_weights(entrant(folder=folder), CPU)
    assert not trace.exists()


def test_a_folder_that_is_none_of_weights_is_refused(
    entrant: Build, weights: Path, adapters: tuple[Path, Path], copied: Copied
) -> None:
    """By itself transformers would ask the Hub, run a pickle, or put an adapter on unchecked."""
    folder = copied(weights)
    settings = (adapters[0] / "adapter_config.json").read_bytes()
    (folder / "adapter_config.json").write_bytes(settings)

    with pytest.raises(WeightsError, match="this is an adapter"):
        load_weights(entrant(folder=folder), CPU)
    (folder / "adapter_config.json").unlink()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(WeightsError, match=r"no \*\.safetensors files"):
        load_weights(entrant(folder=folder), CPU)
    with pytest.raises(WeightsError, match=r"no such folder of weights; .*hf download"):
        load_weights(entrant(folder=folder / "nowhere"), CPU)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"num_hidden_layers": 3}, r"missing model\.layers\.2"),
        ({"num_hidden_layers": 1}, r"left over model\.layers\.1"),
        ({"intermediate_size": 48}, r"of another size model\.layers\.0\.mlp"),
        (
            {"model_type": "nonesuch"},
            "generates no text with weights of model_type 'nonesuch'; upgrade",
        ),
        ({"hidden_size": "wide"}, "cannot be read"),
    ],
)
def test_weights_that_are_not_those_of_the_config_are_refused(
    entrant: Build, weights: Path, respecified: Respecified, setting: dict[str, object], why: str
) -> None:
    """By itself transformers fills the gaps with random numbers and goes on."""
    folder = respecified(weights, "config.json", **setting)

    with pytest.raises(WeightsError, match=why):
        load_weights(entrant(folder=folder), CPU)


class Huge(torch.nn.Linear):
    """Weights that no card holds."""

    def to(self, *_: object, **__: object) -> "Huge":
        """Find no room."""
        raise torch.OutOfMemoryError


def test_weights_that_no_card_holds_are_sent_to_a_server() -> None:
    """What splits weights over cards is a server's work, and servers do it well."""
    with pytest.raises(WeightsError, match=r'70b: .* do not fit on cpu; .* loader = "endpoint"'):
        move_to_device(Huge(1, 1), torch.device("cpu"), Path("70b"))


FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_single_nan_in_weights_is_found(tmp_path: Path, dtype: torch.dtype) -> None:
    """In every type that weights have; a tensor without elements has none."""
    sound = torch.zeros(3, 5).to(dtype)
    broken = torch.tensor([0.0, torch.nan, 1.0]).to(dtype)
    whole = {"sound": sound, "packed": torch.ones(2, dtype=torch.uint8), "none": torch.zeros(0)}
    save_file(whole, tmp_path / "model.safetensors")
    require_finite_weights(tmp_path)

    save_file({**whole, "broken": broken}, tmp_path / "model.safetensors")

    with pytest.raises(WeightsError, match="these tensors are not finite: broken; use weights of"):
        require_finite_weights(tmp_path)


def test_transformers_is_quiet_within_a_block_and_afterwards_as_before() -> None:
    """What it warns of is no fault of the user's; what others ask it to tell, it tells."""
    library, told = logging.getLogger("transformers"), StringIO()
    handler = logging.StreamHandler(told)
    library.addHandler(handler)
    try:
        with quiet_transformers():
            logging.getLogger("transformers.models.one").warning("hidden")
            logging.getLogger("transformers.models.one").error("broken")
        logging.getLogger("transformers.models.one").warning("shown")
    finally:
        library.removeHandler(handler)

    assert told.getvalue().split() == ["broken", "shown"]
