"""What a Hydra is measured against, and by, is itself right."""

from collections.abc import Iterator
from typing import Final

import pytest
import torch
from transformers import Olmo2ForCausalLM

from commands.backends.hydra.decoding import decode
from tests.benchmarks.heads.answering import N_PROMPT_TOKENS, Work
from tests.benchmarks.heads.memory import n_bytes
from tests.benchmarks.heads.random_hydra import DEPTH, Shape, random_hydra, random_model
from tests.benchmarks.heads.references import Jury, decode_jointly
from tests.benchmarks.heads.speculation import acceptance
from tests.benchmarks.heads.traffic import bytes_read

N_LAYERS: Final = 5
SHAPE: Final = Shape(N_LAYERS, 2, 16, 48, 300)
GREEDILY: Final = Work(n_prompts=3, n_tokens=12, temperature=None)


@pytest.fixture
def model() -> Iterator[Olmo2ForCausalLM]:
    """Yield random weights, and draw the same random numbers in every test."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield random_model(SHAPE)


def test_the_competitor_without_drafts_decodes_the_same_product(model: Olmo2ForCausalLM) -> None:
    """A ratio to something that decodes another distribution would say nothing."""
    net = random_hydra(model, strength=0.3)
    rows = GREEDILY.rows(net)

    decode(net, rows, GREEDILY.decoding)

    assert decode_jointly(net, GREEDILY.rows(net), GREEDILY.decoding) == [r.tokens for r in rows]
    assert any(row.diagnostics().resampled_at for row in rows)


@torch.inference_mode()
def test_heads_one_after_another_say_what_they_say_together(model: Olmo2ForCausalLM) -> None:
    """Both ways of routing do the same work, also behind a block that was forgotten."""
    net, heads = random_hydra(model, strength=1.0), (4, 0, 7)
    together, apart = Jury(net, [heads] * 2), [Jury(net, [(head,)] * 2) for head in heads]
    read, block = torch.randn(2, 6, SHAPE.hidden_size), torch.randn(2, 4, SHAPE.hidden_size)
    for jury in (together, *apart):
        jury.read(read)
        jury.read(block + 1)
        jury.forget(4)

    states = together.read(block)

    torch.testing.assert_close(states, torch.cat([jury.read(block) for jury in apart]))


def test_heads_that_are_equal_accept_every_greedy_draft(model: Olmo2ForCausalLM) -> None:
    """Acceptance stands beside each ratio."""
    assert acceptance(random_hydra(model, strength=0.0), GREEDILY) == 1.0
    assert 0.0 < acceptance(random_hydra(model, strength=0.3), GREEDILY) < 1.0


def test_lora_is_as_long_as_it_is_said_to_be(model: Olmo2ForCausalLM) -> None:
    """The strength in a row's name is what its heads differ by."""
    net = random_hydra(model, strength=0.5)

    for layer, routed in zip(model.model.layers[-DEPTH:], net.head_layers, strict=True):
        weight, changed = layer.mlp.up_proj.weight, routed.mlp.mlps[0].up_proj.weight
        assert float((changed - weight).norm() / weight.norm()) == pytest.approx(0.5, rel=0.2)


def test_a_head_adds_its_mlps_and_no_more(model: Olmo2ForCausalLM) -> None:
    """The memory of shared heads is counted by storage, whatever modules hold it."""
    n_mlps = 2 * DEPTH  # of two heads more
    an_mlp = 3 * 48 * SHAPE.hidden_size * 4

    assert n_bytes(random_hydra(model, 0.1, n_heads=3)) == n_bytes(model) + n_mlps * an_mlp


def test_each_pass_reads_its_weights_and_what_is_kept_of_the_text(model: Olmo2ForCausalLM) -> None:
    """The floor that a GPU is measured against is of these bytes."""
    net = random_hydra(model, strength=0.1)
    work = Work(n_prompts=2, n_tokens=3, bypass_jury=True)
    rows = work.rows(net)

    counted = bytes_read(net, lambda: decode(net, rows[:1], work.decoding))

    layers = n_bytes(model.model.layers)
    output = n_bytes(model.lm_head) + n_bytes(model.model.norm)
    columns = sum(range(N_PROMPT_TOKENS - 1, N_PROMPT_TOKENS + 3))  # the prompt's pass and three
    assert counted == 4 * layers + 3 * output + columns * N_LAYERS * 2 * SHAPE.hidden_size * 4
