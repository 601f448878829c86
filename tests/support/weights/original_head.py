"""A head as the Hydra's first authors built and saved it, for files in their layout."""

from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import PreTrainedModel

WEIGHTS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}


class FeedForward(nn.Module):
    """OLMo-core's feed-forward module."""

    def __init__(self, mlp: nn.Module) -> None:
        """Take over the weights of an MLP of transformers'."""
        super().__init__()
        for name, projection in WEIGHTS.items():
            self.add_module(name, mlp.get_submodule(projection))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return w2(silu(w1(x)) * w3(x))."""
        w1, w2, w3 = (self.get_submodule(name) for name in WEIGHTS)
        out: torch.Tensor = w2(nn.functional.silu(w1(states)) * w3(states))
        return out


class Block(nn.Module):
    """A layer of a head, of which LoRA sees the feed-forward module."""

    def __init__(self, mlp: nn.Module) -> None:
        """Build one over an MLP of transformers'."""
        super().__init__()
        self.feed_forward = FeedForward(mlp)


class Head(nn.Module):
    """A head: blocks of its own."""

    def __init__(self, model: PreTrainedModel, layers: range) -> None:
        """Build one over these layers of a model."""
        super().__init__()
        mlps = [model.get_submodule(f"model.layers.{n}.mlp") for n in layers]
        self.blocks = nn.ModuleList(Block(mlp) for mlp in mlps)


def original_head(model: PreTrainedModel, layers: range, *, rank: int, seed: int = 0) -> PeftModel:
    """Return a head over a model's layers, with LoRA that no training has made zero."""
    settings = LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=list(WEIGHTS), init_lora_weights=False
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head: PeftModel = get_peft_model(Head(model, layers), settings)
    return head.eval()


def slim_state(head: PeftModel) -> dict[str, torch.Tensor]:
    """Return what a slim file holds."""
    return {key: value for key, value in head.state_dict().items() if "lora_" in key}


def save_slim(head: PeftModel, file: Path) -> Path:
    """Write a slim file."""
    torch.save(slim_state(head), file)
    return file


def save_fat(head: PeftModel, file: Path) -> Path:
    """Write a checkpoint of a training: the whole head and its optimizer after a step."""
    optimizer = torch.optim.AdamW([p for p in head.parameters() if p.requires_grad])
    sum(p.square().sum() for p in head.parameters() if p.requires_grad).backward()  # type: ignore[union-attr]
    optimizer.step()
    whole = {
        "head_state_dict": head.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "global_step": 1,
    }
    torch.save(whole, file)
    return file
