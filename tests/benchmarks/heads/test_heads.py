"""What a Hydra is measured against, and by, is itself right."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest
import torch
from transformers import Olmo2ForCausalLM

from commands.backends.hydra.decoding import decode
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads import gpu, plain
from tests.benchmarks.heads.answering import N_PROMPT_TOKENS, Work
from tests.benchmarks.heads.memory import n_bytes
from tests.benchmarks.heads.random_hydra import (
    DEPTH,
    SEVEN_B,
    Shape,
    random_hydra,
    random_model,
    scaled,
)
from tests.benchmarks.heads.references import decode_jointly
from tests.benchmarks.heads.speculation import acceptance
from tests.benchmarks.heads.traffic import bytes_read
from tests.support.weights.accelerators import accelerators

pytestmark = pytest.mark.nightly  # what it tests is measured with, not used

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
    last = model.model.layers[-1]  # of it the prompt's pass needs keys and values alone
    attention = last.self_attn
    kept = sum(map(n_bytes, (attention.k_proj, attention.v_proj, attention.k_norm)))
    a_column = 2 * SHAPE.hidden_size * 4
    spared = n_bytes(last) - kept + (N_PROMPT_TOKENS - 1) * a_column
    assert counted == 4 * layers + 3 * output + columns * N_LAYERS * a_column - spared


@pytest.mark.parametrize("temperature", [None, 1.0])
def test_both_ways_to_answer_plainly_answer_as_many_tokens(
    model: Olmo2ForCausalLM, temperature: float | None
) -> None:
    """A way that answered less would be faster; sampled, they answer as many but for chance."""
    work = plain.PlainWork(12, 4, 10, temperature)

    ours, theirs = plain.leaving(model, work), plain.by_generate(model, work)

    assert ours == theirs if temperature is None else 0.5 < ours / theirs < 2


def test_the_report_of_a_gpu_is_written_whole(tmp_path: Path) -> None:
    """A machine with a GPU is rare, and must not be rented to find a fault in the bench."""
    bench, table = Bench(tmp_path, scale=0.01, n_rounds=1), tmp_path / "table.md"

    with (
        pytest.MonkeyPatch.context() as patch,
        torch.random.fork_rng(devices=[]),
        accelerators(),
    ):
        patch.setattr(gpu, "N_COPIED", 2**10)
        gpu.report(bench, scaled(SEVEN_B, bench), table)

    written = table.read_text(encoding="utf-8")
    assert "GPU: a double" in written
    rows = [line.removeprefix("| ") for line in written.splitlines() if line.startswith("| ")]
    assert [row.split(",")[0].split(" of ")[0] for row in rows[-9:]] == [
        *["greedy", "sampled"] * 2,
        "share",
        "memory",
        *["full PoE"] * 3,
    ]


def test_without_a_gpu_it_is_said_what_would_be_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make gpu` is no failure where there is none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    gpu.main()

    said = capsys.readouterr().out
    assert "tokens/s, beside transformers' own generate" in said
    assert said.endswith("no GPU\n")


def test_the_memory_of_a_token_is_that_of_all_layers_it_is_kept_in(
    model: Olmo2ForCausalLM,
) -> None:
    """At 7B shapes it stands beside the paper's 0.918 MB."""
    net = random_hydra(model, strength=0.1, n_heads=3)

    row = gpu.memory_row(net)

    n_layers = N_LAYERS - DEPTH + 1 + 2 * (DEPTH - 1)  # the heads' first attention is kept once
    a_token = n_layers * 2 * SHAPE.hidden_size * 4
    assert f"+ {a_token / 1e6:.3f} MB" in row.figure


class _CountingServer(BaseHTTPRequestHandler):
    """Answers as vLLM does, with nothing but counts."""

    def do_GET(self) -> None:
        """Name the only model."""
        self._say({"data": [{"id": "served"}]})

    def do_POST(self) -> None:
        """Count as many tokens as are asked for."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert (asked["model"], asked["ignore_eos"]) == ("served", True)
        self._say({"usage": {"completion_tokens": asked["max_tokens"]}})

    def _say(self, body: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_server_is_measured_on_as_many_tokens(model: Olmo2ForCausalLM, tmp_path: Path) -> None:
    """Answers of another length would take another time."""
    work = plain.PlainWork(4, 2, 5, temperature=1.0, may_end=False)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), _CountingServer) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        thread = Thread(target=server.serve_forever)
        thread.start()
        patch.setattr(gpu, "SERVER_ROWS", (2,))
        url = f"http://127.0.0.1:{server.server_port}/v1"
        rows = list(gpu.server_rows(Bench(tmp_path, scale=0.01, n_rounds=1), model, url))
        server.shutdown()
        thread.join()

    assert plain.leaving(model, work) == 4 * 5
    assert [row.benchmark for row in rows] == ["sampled, 4 prompts at 2 rows, no answer ends early"]
