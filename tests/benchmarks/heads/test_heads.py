"""What a Hydra is measured against, and by, is itself right."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import torch
from transformers import Olmo2ForCausalLM

from tests.benchmarks.bench import Bench
from tests.benchmarks.heads import gpu, plain
from tests.benchmarks.heads.random_hydra import SEVEN_B, Shape, random_model, scaled
from tests.support.weights.accelerators import accelerators

pytestmark = pytest.mark.nightly  # what it tests is measured with, not used

N_LAYERS: Final = 5
SHAPE: Final = Shape(N_LAYERS, 2, 16, 48, 300)


@pytest.fixture
def model() -> Iterator[Olmo2ForCausalLM]:
    """Yield random weights, and draw the same random numbers in every test."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield random_model(SHAPE)


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

    with torch.random.fork_rng(devices=[]), accelerators():
        gpu.report(bench, scaled(SEVEN_B, bench), table)

    written = table.read_text(encoding="utf-8")
    assert "GPU: a double" in written
    rows = [line.removeprefix("| ") for line in written.splitlines() if line.startswith("| ")]
    assert [row.split(",")[0].split(" of ")[0] for row in rows[-9:]] == [
        *["greedy", "sampled"] * 2,
        "memory",
        *["full PoE"] * 2,
        *["one head (bypass_jury)"] * 2,
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
