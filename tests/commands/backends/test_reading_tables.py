"""Weights that are a table: what they find likely is known, and so is their score."""

import math
from collections.abc import Callable, Sequence
from string import ascii_uppercase as letters

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from commands.backends.huggingface.reader import HfLikelihoodModel
from commands.backends.huggingface.worker import Load
from commands.backends.weights.loaded import LoadedWeights
from commands.evaluating.samples import Inference
from commands.ports import ContinuationLikelihood
from ledger.events.registration import Entrant
from tests.commands.backends.reading_builders import passages_of, readings, results
from tests.commands.evaluations.examples import Endings
from tests.support.scripted import ScriptedGenerator

Item = tuple[str, Sequence[str], int]
N_TOKENS = 270


@pytest.fixture
def follows(tokenizer: PreTrainedTokenizerFast) -> Callable[[torch.Tensor], Load]:
    """Give a builder of loaders: of weights that say table[t] behind token t, (V, V) logits.

    Attention and MLP add nothing to an embedding of one 1, which the norm makes sqrt(V).
    """

    def build(table: torch.Tensor) -> Load:
        config = LlamaConfig(
            vocab_size=N_TOKENS,
            hidden_size=N_TOKENS,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=3,
            max_position_embeddings=160,
        )
        with torch.random.fork_rng(devices=[]):
            model = LlamaForCausalLM(config).train(mode=False)
        state = model.state_dict()
        state["model.layers.0.self_attn.o_proj.weight"].zero_()
        state["model.layers.0.mlp.down_proj.weight"].zero_()
        state["model.embed_tokens.weight"].copy_(torch.eye(N_TOKENS))
        state["lm_head.weight"].copy_(table.T / math.sqrt(N_TOKENS))
        cpu = torch.device("cpu")
        return lambda *_: LoadedWeights(model, tokenizer, cpu, frozenset({0}), 160)

    return build


def alphabet(tokenizer: PreTrainedTokenizerFast) -> torch.Tensor:
    """Return a table that knows which letter follows which."""
    table = torch.zeros(N_TOKENS, N_TOKENS)
    ids = tokenizer.encode(letters, add_special_tokens=False)  # no two of them are merged
    table[ids, [*ids[1:], ids[0]]] = 20.0
    return table


def spelling(n_letters: int, *, before: str = "Go on: ") -> list[Item]:
    """Return items whose right choice goes on with the alphabet, each at another place."""
    items: list[Item] = []
    for n in range(len(letters) - n_letters):
        right = letters[n + 1 : n + 1 + n_letters]
        choices = [right[:-1] + wrong for wrong in "?!~"]
        choices.insert(n % 4, right)
        items.append((before + letters[n], choices, n % 4))
    return items


def score_of(items: list[Item], entrant: Entrant, load: Load) -> object:
    """Return the share of items whose right choice is the likeliest."""
    reader = HfLikelihoodModel(4096, device="cpu", load=load)
    inference = Inference(entrant, lambda: ScriptedGenerator(lambda _: ""), lambda: reader)
    return Endings(*items)(inference)


@pytest.mark.parametrize("n_letters", [1, 4])
@pytest.mark.parametrize("before", ["Go on: ", 40 * "Go on: "])
def test_weights_that_know_every_answer_score_one(
    entrant: Callable[..., Entrant],
    tokenizer: PreTrainedTokenizerFast,
    follows: Callable[[torch.Tensor], Load],
    n_letters: int,
    before: str,
) -> None:
    """Answers of one token and of many, behind contexts that fit and that are cut."""
    items = spelling(n_letters, before=before)
    load = follows(alphabet(tokenizer))

    assert score_of(items, entrant(), load) == 1.0
    [read] = readings(passages_of(entrant(), (items[0][0], "B")), load=load)
    assert read.is_truncated == (len(before) > 160)


@pytest.mark.parametrize("n_letters", [1, 4])
def test_weights_that_know_nothing_score_as_by_chance(
    entrant: Callable[..., Entrant], follows: Callable[[torch.Tensor], Load], n_letters: int
) -> None:
    """All choices are equally likely, and the right one is not the first."""
    load = follows(torch.zeros(N_TOKENS, N_TOKENS))

    assert score_of(spelling(n_letters), entrant(), load) == 0.25


@pytest.mark.parametrize("n_chars", [1, 50, 500])
def test_the_perplexity_of_knowing_nothing_is_the_size_of_the_vocabulary(
    entrant: Callable[..., Entrant], follows: Callable[[torch.Tensor], Load], n_chars: int
) -> None:
    """For documents of one token and of several windows."""
    load = follows(torch.zeros(N_TOKENS, N_TOKENS))

    [read] = results(passages_of(entrant(), ("", "A" * n_chars), rolls=True), load=load)

    assert isinstance(read, ContinuationLikelihood)
    assert len(read.text_ids) == n_chars
    assert math.exp(-read.log_likelihood / n_chars) == pytest.approx(N_TOKENS, rel=1e-5)
