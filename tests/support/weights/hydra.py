"""Tiny Hydras: their files, tables for heads, and whole models to compare heads with."""

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import torch
from peft import LoraConfig, PeftModel
from safetensors.torch import save_file
from torch import nn
from transformers import AutoModelForCausalLM, DynamicCache, Olmo2ForCausalLM
from transformers import PreTrainedTokenizerFast as Tokenizer

from commands.backends.hydra.decoding import HydraRow, HydraSteps
from commands.backends.hydra.net import HydraNet, Route
from commands.backends.weights.answers import Ending, PromptRow
from commands.backends.weights.decoding import follow
from commands.backends.weights.sampling import SamplingSettings
from ledger.events.registration import Adapter, Entrant, Hydra
from ledger.identity import EntrantId, digest_of
from tests.support.builders.events import valid
from tests.support.weights.tiny import save_weights, tiny

N_HEADS, DEPTH = 4, 2
MLP = ("gate_proj", "up_proj", "down_proj")


class HydraFiles(NamedTuple):
    """Where a Hydra's files lie."""

    weights: Path
    security: tuple[Path, ...]
    robustness: tuple[Path, ...]
    uncertainty: Path


def tiny_olmo2(seed: int, **changes: object) -> Olmo2ForCausalLM:
    """Return random weights of four layers: the last two are the heads'."""
    return tiny(
        Olmo2ForCausalLM, seed=seed, **{"num_hidden_layers": 4, "pad_token_id": 4} | changes
    )


def save_hydra(root: Path, tokenizer: Tokenizer) -> HydraFiles:
    """Write weights, each head's shards of two trainings, and an uncertainty head's."""
    return HydraFiles(
        save_weights(tiny_olmo2(seed=1), tokenizer, root / "weights"),
        tuple(save_shard(root / f"security {n}", seed=n) for n in range(N_HEADS)),
        tuple(save_shard(root / f"robustness {n}", seed=20 + n, rank=8) for n in range(N_HEADS)),
        save_shard(root / "uncertainty", seed=40, rank=8),
    )


def save_shard(folder: Path, *, seed: int, rank: int = 4, targets: Sequence[str] = MLP) -> Path:
    """Write a folder of peft with LoRA of the last layers' MLPs, none of it zero."""
    stream = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in (2, 3):
        for name in targets:
            n_out, n_in = (32, 64) if name == "down_proj" else (64, 32)
            module = f"base_model.model.model.layers.{layer}.mlp.{name}"
            tensors[f"{module}.lora_A.weight"] = 0.15 * torch.randn(rank, n_in, generator=stream)
            tensors[f"{module}.lora_B.weight"] = 0.15 * torch.randn(n_out, rank, generator=stream)
    settings = LoraConfig(
        task_type="CAUSAL_LM",
        r=rank,
        lora_alpha=2 * rank,
        target_modules=list(targets),
        layers_to_transform=[2, 3],
    )
    settings.save_pretrained(str(folder))
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def copied_head(weights: Path, *shards: Path) -> Olmo2ForCausalLM:
    """Return a whole model of its own for one head, merged by peft's own way."""
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    for shard in shards:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            model = PeftModel.from_pretrained(model, str(shard)).merge_and_unload()
    return cast("Olmo2ForCausalLM", model)


def scattered_heads(
    plain: Olmo2ForCausalLM, n_heads: int, *, depth: int, noise: float
) -> tuple[HydraNet, list[Olmo2ForCausalLM]]:
    """Return a Hydra whose heads were each changed at random, and each head as a whole model."""
    stream = torch.Generator().manual_seed(0)
    copies = [copy.deepcopy(plain) for _ in range(n_heads)]
    for one in copies:
        for layer in one.model.layers[-depth:]:
            for tensor in layer.mlp.parameters():
                tensor.data += noise * torch.randn(tensor.shape, generator=stream)
    heads = [[copy.deepcopy(layer.mlp) for layer in one.model.layers[-depth:]] for one in copies]
    return HydraNet(copy.deepcopy(plain), heads), copies


def hydra_entrant(files: HydraFiles, **changes: object) -> Entrant:
    """Return the full jury, sampling 12 tokens; changes are an entrant's fields or its Hydra's."""
    of_hydra = {name: changes.pop(name) for name in Hydra.__struct_fields__ if name in changes}
    heads: dict[str, object] = {
        "heads_depth": DEPTH,
        "security": tuple(map(adapter, files.security)),
        "robustness": tuple(map(adapter, files.robustness)),
    }
    fields: dict[str, object] = {
        "entrant_id": EntrantId("full_poe"),
        "loader": "hydra",
        "weights": str(files.weights),
        "weights_digest": digest_of(str(files.weights)),
        "temperature": 0.98,
        "max_new_tokens": 12,
        "dtype": "float32",
        "hydra": valid(Hydra, heads | of_hydra),
    }
    return valid(Entrant, fields | changes)


def adapter(path: Path) -> Adapter:
    """Return a shard as an entrant names it."""
    return Adapter(path=str(path), digest=digest_of(str(path)))


class TableNet(HydraNet):
    """Heads of which all can be worked out by hand: each says the same after the same token.

    Their states are their logits; the trunk's are the tokens.
    """

    def __init__(self, table: torch.Tensor) -> None:
        """Let head k say table[k, t] after token t: (K, V, V) logits."""
        nn.Module.__init__(self)  # there are no weights to take apart
        self.n_heads = len(table)
        self.table = table

    @property
    def device(self) -> torch.device:
        """Where the table is."""
        return self.table.device

    def trunk_states(self, ids: torch.Tensor, *_: object) -> torch.Tensor:
        """Return (R, S, 1) for (R, S)."""
        return ids[..., None]

    def head_states(self, states: torch.Tensor, route: Route, *_: object) -> torch.Tensor:
        """Return (E * R, S, V) for (R, S, 1)."""
        tokens = states.repeat(route.n_rows // len(states), 1, 1)[..., 0]
        said = torch.empty(*tokens.shape, self.table.shape[-1])
        for head, rows in route.rows_of.items():
            said[rows] = self.table[head][tokens[rows]]
        return said

    def select_rows(self, cache: DynamicCache, rows: torch.Tensor) -> None:
        """Select nothing: only the last token counts."""

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return what are logits already."""
        return states.clone()


class HydraDecoding(NamedTuple):
    """How rows of a batch are decoded."""

    temperature: float | None
    max_new_tokens: int
    ending: Ending = Ending(frozenset())
    beta: float = 1.0
    top_p: float = 1.0

    @property
    def product_temperature(self) -> float:
        """The temperature of the product; 1 for greedy decoding."""
        return 1.0 if self.temperature is None else self.temperature


class HeadRoles(NamedTuple):
    """Which head drafts a row, and which verify it."""

    draft: int
    jury: tuple[int, ...] = ()


def head_row(prompt_ids: Sequence[int], roles: HeadRoles, seed: int) -> HydraRow:
    """Start a row with heads of one's choice."""
    prompt = PromptRow(digest_of(seed), (*prompt_ids,), 0, seed)
    return HydraRow(prompt, draft=roles.draft, jury=roles.jury)


def start_row(prompt_ids: Sequence[int], *, seed: int, n_heads: int, bypass_jury: bool) -> HydraRow:
    """Start a row by drawing the head that drafts."""
    prompt = PromptRow(digest_of(seed), (*prompt_ids,), 0, seed)
    return HydraRow.start(prompt, n_heads, bypass_jury=bypass_jury)


def decode(net: HydraNet, rows: Sequence[HydraRow], decoding: HydraDecoding) -> None:
    """Decode rows together."""
    for row in rows:
        row.row = row.row._replace(max_new_tokens=decoding.max_new_tokens)
    how = SamplingSettings(decoding.temperature, top_p=decoding.top_p)
    follow(HydraSteps(net, rows, how, decoding.beta), rows, decoding.ending)
