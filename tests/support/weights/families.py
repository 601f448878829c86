"""Tiny random weights of the families of decoders that transformers has, one of each.

Each is what its config makes of tourney's tokenizer and a few numbers: two layers, one of each kind
where a family has several kinds, and windows that are shorter than the prompts.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from tests.support.weights.tiny import SIZES

Settings: TypeAlias = dict[str, object]

_PAD: Final = {"pad_token_id": 4}
_HEAD: Final[Settings] = {"head_dim": 8}
_WINDOW: Final[Settings] = {"sliding_window": 8}
_BOTH_WINDOWS: Final[Settings] = _WINDOW | {"layer_types": ["sliding_attention", "full_attention"]}
_EXPERTS: Final[Settings] = {
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
_STATES: Final[Settings] = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 4,
    "mamba_n_groups": 1,
}
_DELTA: Final[Settings] = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}

FAMILIES: Final[Mapping[str, Mapping[str, object]]] = {
    "apertus": {},
    "arcee": {},
    "bamba": _STATES | {"attn_layer_indices": [1]},
    "biogpt": {},
    "bitnet": {},
    "bloom": {},
    "codegen": {"rotary_dim": 4},
    "cohere": {},
    "cohere2": _BOTH_WINDOWS,
    "ctrl": {"dff": 64},
    "diffllama": {},
    "ernie4_5": _HEAD,
    "ernie4_5_moe": _EXPERTS | {"moe_num_experts": 4, "moe_k": 2},
    "exaone4": _HEAD | _BOTH_WINDOWS,
    "falcon": {},
    "falcon_h1": _STATES | {"mamba_d_ssm": 64, "mamba_chunk_size": 8},
    "falcon_mamba": {"state_size": 4},
    "flex_olmo": _EXPERTS,
    "gemma": _HEAD,
    "gemma2": _HEAD | _BOTH_WINDOWS | {"query_pre_attn_scalar": 8, "tie_word_embeddings": False},
    "gemma3_text": _HEAD
    | _BOTH_WINDOWS
    | {"query_pre_attn_scalar": 8, "tie_word_embeddings": False},
    "glm": _HEAD | {"partial_rotary_factor": 0.5},
    "glm4": _HEAD,
    "glm4_moe": _EXPERTS | _HEAD | {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    "gpt2": {},
    "gpt_bigcode": {},
    "gpt_neo": {
        "attention_types": [[["global", "local"], 1]],
        "num_layers": 2,
        "num_heads": 4,
        "window_size": 8,
    },
    "gpt_neox": {},
    "gpt_oss": _EXPERTS | _HEAD | _BOTH_WINDOWS,
    "gptj": {"rotary_dim": 4},
    "granite": {},
    "granitemoe": _EXPERTS,
    "granitemoehybrid": _EXPERTS
    | _STATES
    | {"layer_types": ["mamba", "attention"], "shared_intermediate_size": 16},
    "helium": _HEAD,
    "hunyuan_v1_dense": _HEAD,
    "jamba": _EXPERTS | {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4},
    "jetmoe": _EXPERTS | {"kv_channels": 8},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_multiple_of": 8, "conv_L_cache": 3},
    "llama": {},
    "llama4_text": _EXPERTS | _HEAD | {"intermediate_size_mlp": 64, "attention_chunk_size": 8},
    "mamba": {"state_size": 4},
    "mamba2": {"num_heads": 8, "head_dim": 8, "state_size": 4, "n_groups": 1, "chunk_size": 8},
    "minimax": _EXPERTS | _HEAD | {"layer_types": _DELTA["layer_types"], "block_size": 8},
    "mistral": _HEAD | _WINDOW,
    "mixtral": _EXPERTS,
    "modernbert-decoder": {"local_attention": 8},
    "mpt": {},
    "nanochat": {},
    "nemotron": {},
    "olmo": {},
    "olmo2": {},
    "olmo3": _BOTH_WINDOWS,
    "olmo_hybrid": _HEAD,
    "olmoe": _EXPERTS,
    "openai-gpt": {},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "persimmon": {},
    "phi": {},
    "phi3": {},
    "phimoe": _EXPERTS,
    "qwen2": {},
    "qwen2_moe": _EXPERTS | {"shared_expert_intermediate_size": 16},
    "qwen3": _HEAD,
    "qwen3_5_text": _HEAD | _DELTA,
    "qwen3_moe": _EXPERTS | _HEAD,
    "qwen3_next": _EXPERTS | _HEAD | _DELTA | {"shared_expert_intermediate_size": 16},
    "recurrent_gemma": _HEAD
    | {"lru_width": 32, "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
    "rwkv": {"attention_hidden_size": 32},
    "seed_oss": _HEAD,
    "smollm3": {"no_rope_layers": [1, 0]},
    "stablelm": {},
    "starcoder2": {},
    "vaultgemma": _HEAD | _BOTH_WINDOWS,
    "xglm": {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4},
}
"""Each family's model_type, with the settings that it needs beside SIZES."""


def family_config(family: str) -> PreTrainedConfig:
    """Return the config of a family's tiny weights."""
    kind = cast("type[Any]", type(AutoConfig.for_model(family)))
    return cast("PreTrainedConfig", kind.from_dict(SIZES | _PAD | dict(FAMILIES[family])))


def family_model(family: str) -> PreTrainedModel:
    """Return tiny random weights of a family."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = AutoModelForCausalLM.from_config(family_config(family))  # type: ignore[no-untyped-call]  # theirs
        model = cast("PreTrainedModel", made)
    model.train(mode=False)
    return model
