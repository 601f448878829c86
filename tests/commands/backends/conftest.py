"""Tiny real weights, tokenizers and adapters, and builders that give defaults."""

import gc
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from anthropic import Anthropic
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    GPT2LMHeadModel,
    Olmo2ForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from commands.backends.anthropic.client import make_client
from commands.ports import GenerationTask
from ledger.events.registration import Adapter, Entrant
from ledger.identity import EntrantId, digest_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.anthropic import CANARY
from tests.support.builders.events import valid
from tests.support.weights.hydra import HydraFiles, save_hydra
from tests.support.weights.tiny import save_weights, tiny

SPECIAL = ["<|endoftext|>", "<|user|>", "<|assistant|>", "<|im_end|>", "<|pad|>"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: on a busy machine several wait on each other, 20 times longer."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="session", autouse=True)
def _imports_are_no_garbage() -> Iterator[None]:
    """Thaw at the end what the next fixture leaves out of collections."""
    yield
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _earlier_is_no_garbage(_imports_are_no_garbage: None) -> None:
    """Leave what was imported so far out of collections: each load has one, which walks it all."""
    gc.freeze()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again without a pause what a server did not answer, or rejected."""
    monkeypatch.setattr("commands.asking.pace.FIRST_WAIT_S", 0.0)
    monkeypatch.setattr("commands.asking.pace._FIRST_PER_S", 1e6)
    for sdk in ("openai", "anthropic"):
        monkeypatch.setattr(f"{sdk}._base_client.INITIAL_RETRY_DELAY", 0.0)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """Give a byte-level BPE tokenizer of 270 tokens with a ChatML-like template."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=270, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(["a patient asks about a dose"], trainer)
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # theirs
        tokenizer_object=backend, bos_token=SPECIAL[0], eos_token=SPECIAL[0], pad_token=SPECIAL[4]
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


@pytest.fixture(scope="session")
def saved(
    tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[PreTrainedModel], Path]:
    """Give a function that writes weights to a folder of their own."""
    return lambda model: save_weights(
        model, tokenizer, tmp_path_factory.mktemp(model.config.model_type)
    )


@pytest.fixture(scope="session")
def weights(saved: Callable[[PreTrainedModel], Path]) -> Path:
    """Give a folder of random Olmo 2 weights."""
    return saved(tiny(Olmo2ForCausalLM, seed=1, pad_token_id=4))


@pytest.fixture(scope="session")
def gpt2_weights(saved: Callable[[PreTrainedModel], Path]) -> Path:
    """Give a folder of random GPT-2 weights: its learned positions show padding faults at once."""
    return saved(tiny(GPT2LMHeadModel, seed=2))


@pytest.fixture(scope="session")
def adapters(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give two LoRA adapters with non-zero A and B that overlap in q_proj."""
    first, second = tmp_path_factory.mktemp("lora_a"), tmp_path_factory.mktemp("lora_b")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        save_adapter(weights, first, rank=4, targets=["q_proj", "v_proj"])
        save_adapter(weights, second, rank=2, targets=["q_proj", "down_proj"])
    return first, second


@pytest.fixture(scope="session")
def hydra_files(
    tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> HydraFiles:
    """Give the files of a Hydra's heads and one for uncertainty."""
    return save_hydra(tmp_path_factory.mktemp("hydra"), tokenizer)


@pytest.fixture(scope="session")
def three_heads(hydra_files: HydraFiles) -> HydraFiles:
    """Give the files of three heads: merging more would take longer than what is tested."""
    return hydra_files._replace(
        security=hydra_files.security[:3], robustness=hydra_files.robustness[:3]
    )


@pytest.fixture
def lora_model(weights: Path) -> PeftModel:
    """Give the Olmo 2 weights with a random adapter beside them, as a trainer has them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(6)
        return with_adapter(weights, rank=4, targets=["q_proj", "v_proj"])


def save_adapter(weights: Path, folder: Path, *, rank: int, targets: list[str]) -> None:
    """Write a random adapter for these weights, as peft writes it."""
    adapted = with_adapter(weights, rank=rank, targets=targets)
    adapted.save_pretrained(str(folder), save_embedding_layers=False)


def with_adapter(weights: Path, *, rank: int, targets: list[str]) -> PeftModel:
    """Return weights with a random adapter beside them."""
    config = LoraConfig(
        r=rank, lora_alpha=8, target_modules=targets, init_lora_weights=False, task_type="CAUSAL_LM"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", category=FutureWarning)
        adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(weights), config)
    assert isinstance(adapted, PeftModel)
    return adapted


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    """Give a function that copies a folder, to be spoilt."""
    return lambda folder: Path(shutil.copytree(folder, tmp_path / f"copy of {folder.name}"))


@pytest.fixture
def respecified(copied: Callable[[Path], Path]) -> Callable[..., Path]:
    """Give a function that copies a folder and changes keys of a JSON file in it."""

    def respecify(folder: Path, name: str, **changes: object) -> Path:
        copy = copied(folder)
        settings = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps(settings | changes))
        return copy

    return respecify


@pytest.fixture
def entrant(weights: Path) -> Callable[..., Entrant]:
    """Give a builder of entrants on the Olmo 2 weights: greedy, float32, 12 new tokens."""

    def build(*adapters: Path, folder: Path = weights, **changes: object) -> Entrant:
        fields: dict[str, object] = {
            "entrant_id": EntrantId("base"),
            "loader": "hf",
            "weights": str(folder),
            "weights_digest": digest_of(str(folder)),
            "adapters": tuple(Adapter(path=str(a), digest=digest_of(str(a))) for a in adapters),
            "max_new_tokens": 12,
            "dtype": "float32",
        }
        return valid(Entrant, fields | changes)

    return build


@pytest.fixture
def tasks() -> Callable[..., list[GenerationTask]]:
    """Give a builder of one task per prompt, the seeds counting up."""

    def build(entrant: Entrant, prompts: list[str], first_seed: int = 0) -> list[GenerationTask]:
        return [
            GenerationTask(digest_of([entrant.entrant_id, prompt, seed]), entrant, prompt, seed)
            for seed, prompt in enumerate(prompts, first_seed)
        ]

    return build


@pytest.fixture
def fake_anthropic() -> Iterator[FakeAnthropic]:
    """Give the fake of the API, whose batches end when they are told to."""
    with FakeAnthropic(ends_after_retrievals=None) as fake:
        yield fake


@pytest.fixture
def anthropic_client(
    fake_anthropic: FakeAnthropic, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Anthropic]:
    """Give the client of a user whose key is the canary."""
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake_anthropic.url)
    with make_client() as client:
        yield client
