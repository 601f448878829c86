"""Every family of decoders enters: read, batched, sampled, and with LoRA merged.

A few run by default, all in the night: `pytest -m nightly tests/commands/backends/weights`.
"""

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from commands.backends.weights.folder import attention_of
from commands.backends.weights.loaded import LoadedWeights, load_folder
from commands.ports import GenerationTask
from ledger.events.registration import Entrant
from tests.support.weights.families import FAMILIES, family_config, family_model
from tests.support.weights.generating import PROMPTS, answers, texts
from tests.support.weights.loads import model_of
from tests.support.weights.tiny import save_weights

Build = Callable[..., Entrant]
MakeTasks = Callable[..., list[GenerationTask]]

CPU: Final = torch.device("cpu")
BY_DEFAULT: Final = ("bloom", "qwen3_moe")
_MORE: Final = [
    pytest.param(family, marks=() if family in BY_DEFAULT else pytest.mark.nightly)
    for family in FAMILIES
]


@pytest.fixture(scope="module", params=_MORE)
def family(request: pytest.FixtureRequest) -> str:
    """Give each family in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(
    family: str, tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Give a folder of the family's weights, for as long as its tests take."""
    folder = tmp_path_factory.mktemp(family)
    yield save_weights(family_model(family), tokenizer, folder)
    shutil.rmtree(folder)


def test_a_response_is_the_same_alone_and_in_a_batch(
    family: str, folder: Path, entrant: Build, tasks: MakeTasks
) -> None:
    """Greedy or sampled, what the neighbours are must not matter; and it names its attention."""
    loaded = load_folder(folder, CPU, dtype="float32")

    def load(*_: object) -> LoadedWeights:
        return loaded

    for temperature in (None, 1.0):
        one = entrant(folder=folder, temperature=temperature, max_new_tokens=8)
        owed = tasks(one, PROMPTS[:3])
        together = answers(owed, load=load)

        assert together == [each for task in owed for each in answers([task], load=load)]
        assert len({each.text for each in together}) > 1
        assert {each.attention for each in together} == {attention_of(family_model(family))}


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_a_merged_adapter_computes_what_it_computes_beside_the_weights(
    family: str, folder: Path, tmp_path: Path
) -> None:
    """All linear layers, and the experts' stacked weights where there are some."""
    beside = adapted(folder, family)
    beside.save_pretrained(str(tmp_path), save_embedding_layers=False)
    ids = torch.arange(5, 25)[None]

    merged = model_of(load_folder(folder, CPU, dtype="float32", adapters=[tmp_path]))

    with torch.inference_mode():
        expected, plain = beside(ids).logits, beside.unload()(ids).logits
        found = merged(ids).logits
    assert not torch.allclose(plain, expected, atol=1e-2)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


def test_a_multimodal_folder_is_loaded_whole_and_answers_texts(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, entrant: Build, tasks: MakeTasks
) -> None:
    """Its text model is not stored as weights of its own."""
    eye = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "patch_size": 8}
    config = Gemma3Config(
        text_config=family_config("gemma3_text").to_dict(),
        vision_config={**eye, "num_attention_heads": 2, "image_size": 16},
        mm_tokens_per_image=4,
    )
    save_weights(Gemma3ForConditionalGeneration(config), tokenizer, tmp_path)

    loaded = load_folder(tmp_path, CPU, dtype="float32")

    assert isinstance(model_of(loaded), Gemma3ForConditionalGeneration)
    assert len(texts(tasks(entrant(folder=tmp_path, max_new_tokens=3), PROMPTS[:2]))) == 2


_BYPASSED: Final = ["conv1d", "dt_proj", "out_proj"]
_NOT_ADAPTED: Final = {
    "falcon_h1": _BYPASSED,
    "falcon_mamba": _BYPASSED,
    "jamba": ["dt_proj"],
    "mamba": _BYPASSED,
    "mamba2": _BYPASSED,
    "llama4_text": ["router"],
    "phimoe": ["router"],
}
"""Modules that peft cannot adapt: kernels read their weights past it, or they give two tensors."""


def adapted(folder: Path, family: str) -> PeftModel:
    """Return weights with a random adapter on all that an adapter can be on."""
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    experts = {
        name.rpartition("experts.")[2]
        for name, each in model.named_parameters()
        if ".experts." in name and each.ndim == 3
    }
    config = LoraConfig(
        r=2,
        lora_alpha=2,
        target_modules="all-linear",
        exclude_modules=_NOT_ADAPTED.get(family),
        target_parameters=[f"experts.{name}" for name in sorted(experts)] or None,
        init_lora_weights=False,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        adapted = get_peft_model(model, config)
    assert isinstance(adapted, PeftModel)
    return adapted.eval()
