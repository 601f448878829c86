"""Load a Hydra: weights, and for each head the LoRA shards to merge into its layers."""

import copy
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

import torch
from peft import PeftModel
from transformers import Olmo2Config, Olmo2ForCausalLM, PreTrainedTokenizerBase

from commands.backends.hydra.net import HydraNet, head_mlps, sharing_copy
from commands.backends.loads import group_by
from commands.backends.weights.chat import encode
from commands.backends.weights.folder import (
    check_folder,
    check_vocabulary,
    load_tokenizer,
    n_embeddings,
    quiet_transformers,
    reading,
    require_finite_weights,
)
from commands.backends.weights.loaded import (
    LoadedWeights,
    move_to_device,
    read_folder,
    token_bytes,
)
from commands.backends.weights.lora import (
    ADAPTER,
    Lora,
    check_fit,
    read_lora,
    require_head_lora,
    translate_peft_errors,
)
from commands.entrants.weights import head_layers
from commands.errors import WeightsError
from ledger.events.registration import Entrant, Hydra

CORRECT, WRONG = "A", "B"


def require_letters(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Check that A and B are encoded as one token each, and different ones.

    If both were the unknown token, say, every response would get the same probability.

    Raises:
        WeightsError: They are not.
    """
    correct, wrong = (encode(tokenizer, letter) for letter in (CORRECT, WRONG))
    if len(correct) == len(wrong) == 1 and correct != wrong:
        return
    why = (
        f"the tokenizer makes {[*correct]} of {CORRECT} and {[*wrong]} of {WRONG}: an uncertainty"
        " head answers by a single token each, and they must differ"
    )
    raise WeightsError(
        folder, why, "leave uncertainty out, or put the tokenizer there that it was trained with"
    )


def load_hydra(entrant: Entrant, heads: Hydra, device: torch.device) -> LoadedWeights:
    """Load a Hydra, merged on the CPU and then moved to the device.

    Raises:
        WeightsError: A file is missing, unreadable, or fits the others only in part.
    """
    folder = Path(entrant.weights)
    shards = read_shards(entrant, heads)
    read = read_folder(folder, dtype=str(entrant.dtype))
    model: Olmo2ForCausalLM = read.model
    n_heads, depth = len(heads.security), heads.heads_depth
    n_caching = model.config.num_hidden_layers + (n_heads - 1) * depth
    size = token_bytes(model.config, model.dtype, n_caching=n_caching, n_heads=n_heads)
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        net = HydraNet(model, [head_mlps(model, depth, loras) for loras in shards], n_heads)
    placed = move_to_device(net, device, folder)
    return read._replace(
        model=placed, device=device, token_bytes=size, attention=None, may_pad=True
    )


def check_hydra(entrant: Entrant, heads: Hydra) -> None:
    """Check a Hydra's shards, weights and tokenizer without loading them.

    Raises:
        WeightsError: A shard is unreadable or does not fit the weights, or the tokenizer does not,
            or the weights are not finite.
    """
    folder = Path(entrant.weights)
    check_folder(folder)
    require_finite_weights(folder)
    shards = read_shards(entrant, heads)
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        blank = blank_model(folder)
        tokenizer = load_tokenizer(folder)
        check_vocabulary(tokenizer, n_embeddings(blank), folder)
        if heads.uncertainty:
            require_letters(tokenizer, folder)
        loras = chain.from_iterable(shards)
        for alike in group_by(loras, lambda lora: repr(lora.settings)):
            require_fit(blank, alike)


def blank_model(folder: Path) -> Olmo2ForCausalLM:
    """Return the model of a folder's config.json on the meta device, with shapes but no data.

    Raises:
        WeightsError: The config is unreadable.
    """
    with reading(folder, "config.json"):
        config = Olmo2Config.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        return Olmo2ForCausalLM(config)


def require_fit(model: Olmo2ForCausalLM, alike: Sequence[Lora]) -> None:
    """Check that shards of equal settings fit a model, without merging them.

    Raises:
        WeightsError: A part of a shard does not fit the model.
    """
    with translate_peft_errors(alike[0].source):
        settings = copy.deepcopy(alike[0].settings)  # peft completes them for the model at hand
        adapted = PeftModel(sharing_copy(model), settings, ADAPTER)
    for lora in alike:
        with translate_peft_errors(lora.source):
            check_fit(adapted, settings, lora)


def read_shards(entrant: Entrant, heads: Hydra) -> list[list[Lora]]:
    """Read each head's shards in the order of merging; the uncertainty head's come last.

    Raises:
        WeightsError: A shard is unreadable, or changes what is not the head's.
    """
    layers = head_layers(Path(entrant.weights), heads.heads_depth)
    uncertainty = [heads.uncertainty] if heads.uncertainty else []
    of_heads = [
        *([*filter(None, pair)] for pair in zip_longest(heads.security, heads.robustness)),
        uncertainty,
    ]
    shards = [[read_lora(Path(shard.path)) for shard in each] for each in of_heads if each]
    for lora in chain.from_iterable(shards):
        require_head_lora(lora, layers)
    return shards
