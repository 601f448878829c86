"""On a GPU, or on several, weights say what they say on a CPU; a double stands for the GPUs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from accelerate import dispatch_model  # type: ignore[import-untyped]  # it has no types

from commands.backends.huggingface.local import Load, LocalModels, free_bytes, load_entrant
from commands.backends.weights.loaded import (
    LoadedWeights,
    as_loaded,
    move_to_device,
    prepare_device,
)
from commands.errors import ConfigurationError
from commands.ports import ContinuationLikelihood, GeneratedText, GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from tests.support.weights.accelerators import FREE, accelerators
from tests.support.weights.hydra import HydraFiles, adapter, hydra_entrant
from tests.support.weights.loads import kept, kept_copy, model_of
from tests.support.weights.reading import passages_of

CPU = torch.device("cpu")
PROMPTS = ["dose " * (1 + 3 * n % 8) + "?" for n in range(3)]
AT_ONCE = 60  # tokens: some prompts wait until others have ended
PAIRS = (
    *(("dose " * 20, text) for text in ("a", "patient asks")),  # share a prefix
    ("a patient " * 10, "a dose"),
    ("", "a patient asks"),
)
PLAIN = GenerationOptions()
WARPED = GenerationOptions(top_p=0.9, top_k=40, min_p=0.01, repetition_penalty=1.2)

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


def usual(device: str) -> Load:
    """Return what loads weights: on a GPU always anew, as they come there by being loaded."""
    return kept if device == "cpu" else load_entrant


def moving(entrant: Entrant) -> Load:
    """Return what moves a Hydra to its device, where to merge its heads would take long."""
    here = kept_copy(entrant, CPU)

    def move(_: Entrant, device: torch.device) -> LoadedWeights:
        return here._replace(model=move_to_device(here.model, device, Path()), device=device)

    return move


def said(
    owed: Sequence[GenerationTask], device: str = "cpu", load: Load | None = None
) -> dict[str, object]:
    """Return what is answered on a device, without the times."""
    generator = LocalModels(AT_ONCE, device=device, load=load or usual(device))
    return {
        each.response_key: replace(each, elapsed_s=0.0)
        for batch in generator.generate(owed)
        for each in batch
        if isinstance(each, GeneratedText)
    }


def read(entrant: Entrant, device: str = "cpu", load: Load | None = None) -> dict[str, object]:
    """Return how likely passages are on a device."""
    reader = LocalModels(1_000, device=device, load=load or usual(device))
    finished = reader.log_likelihoods(passages_of(entrant, *PAIRS))
    return {each.key: each for batch in finished for each in batch}


def about(found: dict[str, object]) -> dict[str, object]:
    """Return what equals likelihoods to the last bits of float32, which processors add up apart."""
    return {
        name: replace(each, log_likelihood=pytest.approx(each.log_likelihood, rel=1e-6))  # type: ignore[arg-type]  # it equals a float
        if isinstance(each, ContinuationLikelihood)
        else each
        for name, each in found.items()
    }


def generating(entrant: Entrant, device: torch.device) -> LoadedWeights:
    """Load weights whose rows cannot be replaced, so that transformers' own loop decodes them."""
    return load_entrant(entrant, device)._replace(may_leave=False)


@pytest.mark.parametrize(
    ("load", "temperature", "options", "dtype"),
    [
        pytest.param(None, None, PLAIN, "float32", marks=pytest.mark.nightly),
        pytest.param(None, 1.0, PLAIN, "bfloat16", marks=pytest.mark.nightly),
        (None, 1.0, WARPED, "float32"),
        pytest.param(generating, 1.0, WARPED, "float32", marks=pytest.mark.nightly),
    ],
)
def test_weights_answer_alike(
    entrant: Build,
    tasks: Tasks,
    load: Load | None,
    temperature: float | None,
    options: GenerationOptions,
    dtype: str,
) -> None:
    """Whatever is drawn, and by whichever loop."""
    owed = tasks(entrant(temperature=temperature, dtype=dtype, max_new_tokens=4), PROMPTS)
    owed = [replace(task, options=options) for task in owed]
    with accelerators():
        on_gpu = said(owed, "cuda", load)

    assert len(on_gpu) == len(owed)
    assert on_gpu == said(owed, load=load)


@pytest.mark.parametrize(
    "changes", [{}, pytest.param({"bypass_jury": True}, marks=pytest.mark.nightly)]
)
def test_a_hydra_answers_alike(
    three_heads: HydraFiles, tasks: Tasks, changes: dict[str, object]
) -> None:
    """Drafts, votes and what a head says of the answer are those of the CPU."""
    rated = hydra_entrant(
        three_heads, uncertainty=adapter(three_heads.uncertainty), max_new_tokens=2, **changes
    )
    owed, load = tasks(rated, PROMPTS[:2]), moving(rated)

    with accelerators(2):
        on_gpu = said(owed, "cuda:1", load)

    assert len(on_gpu) == len(owed)
    assert on_gpu == said(owed)


def test_passages_are_as_likely(entrant: Build) -> None:
    """Also where they share a prefix, whose cache is chosen from by row."""
    with accelerators(2):
        on_gpu = read(entrant(), "cuda:1")

    assert on_gpu == about(read(entrant()))


@pytest.mark.parametrize("kind", [pytest.param("cuda", marks=pytest.mark.nightly), "mps"])
def test_passages_are_as_likely_by_a_hydra(three_heads: HydraFiles, kind: str) -> None:
    """What is added up in float64 is added up where there is float64."""
    jury = hydra_entrant(
        three_heads, uncertainty=adapter(three_heads.uncertainty)
    )  # as is loaded above
    load = moving(jury)
    with accelerators(kind=kind):
        on_gpu = read(jury, kind, load)

    assert on_gpu == read(jury)


@pytest.mark.parametrize("first", [pytest.param(0, marks=pytest.mark.nightly), 1])
def test_weights_over_two_gpus_say_the_same(entrant: Build, tasks: Tasks, first: int) -> None:
    """A trainer may hold some; each layer keeps its cache, and logits come from the last device."""
    here, there = f"cuda:{first}", f"cuda:{1 - first}"
    places = {"embed_tokens": here, "rotary_emb": here, "layers.0": here, "layers.1": there}
    split = {f"model.{name}": place for name, place in (places | {"norm": there}).items()}

    def load(one: Entrant, _: torch.device) -> LoadedWeights:
        loaded = load_entrant(one, CPU)
        model = dispatch_model(model_of(loaded), {**split, "lm_head": there})
        return as_loaded(model, loaded.tokenizer)

    owed = tasks(entrant(temperature=1.0, max_new_tokens=4), PROMPTS)
    with accelerators(2):
        on_gpus, as_likely = said(owed, here, load), read(entrant(), here, load)

    assert on_gpus == said(owed)
    assert as_likely == about(read(entrant()))


def test_the_double_keeps_the_rules_of_devices() -> None:
    """What it let through would be found on a real one only."""
    with accelerators(2):
        here, there = torch.ones(2, device="cuda"), torch.ones(2, device="cuda:1")
        assert (here + torch.tensor(1.0)).device == torch.device("cuda:0")
        with pytest.raises(RuntimeError, match="cuda:0 and cuda:1"):
            here + there
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            torch.cat([here, torch.ones(1)])
        with pytest.raises(TypeError, match="to numpy"):
            here.numpy()
        with pytest.raises(RuntimeError, match="invalid device ordinal: cuda:2"):
            torch.ones(1, device="cuda:2")
        with pytest.raises(RuntimeError, match="device type for generator"):
            torch.rand(2, device="cuda", generator=torch.Generator())
        moved = torch.nn.Linear(2, 2).to("cuda:1")
        assert moved(there).device == moved.weight.device == torch.device("cuda:1")
        there[:1] = 5
        assert there.cpu().numpy().tolist() == [5, 1]
    with accelerators(kind="mps"), pytest.raises(TypeError, match="float64"):
        torch.ones(1, dtype=torch.float64, device="mps")


def test_only_devices_that_are_here_are_taken() -> None:
    """A number too high would end in a traceback of CUDA's, once the weights are read."""
    with accelerators(2):
        assert prepare_device("auto") == torch.device("cuda")
        assert prepare_device("cuda:1") == torch.device("cuda:1")
        with pytest.raises(ConfigurationError, match="'cuda:2' is not here; use auto or one of"):
            prepare_device("cuda:2")
    with accelerators(kind="mps"):
        assert prepare_device("mps:0") == torch.device("mps:0")


def test_free_memory_is_that_of_the_gpu() -> None:
    """Whichever it is."""
    with accelerators(2):
        assert free_bytes(torch.device("cuda")) == free_bytes(torch.device("cuda:1")) == FREE
