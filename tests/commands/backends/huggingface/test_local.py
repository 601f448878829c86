"""Who answers and who reads load weights as seldom as possible, and never two at once."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file, save_file

from commands.backends.huggingface.local import Load, LocalModels, load_entrant
from commands.backends.weights.loaded import LoadedWeights, load_weights
from commands.errors import WeightsError
from commands.ports import Continuation, GenerationTask
from ledger.events.registration import Adapter, Entrant
from ledger.identity import digest_of
from tests.support.weights.hydra import HydraFiles, hydra_entrant
from tests.support.weights.loads import noting_alive

MISSING = Adapter(path="no such shard", digest=digest_of("no such shard"))

Build = Callable[..., Entrant]
Work = Callable[[Load, list[Entrant]], Iterator[object]]


def answering(load: Load, roster: list[Entrant]) -> Iterator[object]:
    """Have each of the roster answer."""
    return LocalModels(1, "cpu", load=load).generate(
        [GenerationTask(digest_of(n), each, "a dose", 0) for n, each in enumerate(roster)]
    )


def reading(load: Load, roster: list[Entrant]) -> Iterator[object]:
    """Have each of the roster read."""
    return LocalModels(1, "cpu", load=load).log_likelihoods(
        [Continuation(str(n), each, "", "a dose") for n, each in enumerate(roster)]
    )


both = pytest.mark.parametrize("work", [answering, reading])


@both
def test_entrants_that_share_a_load_are_loaded_once(
    entrant: Build, adapters: tuple[Path, Path], work: Work
) -> None:
    """Loading takes minutes for real weights; a temperature is not worth a second one."""
    greedy, warm = entrant(), entrant(entrant_id="warm", temperature=0.7)
    adapted = entrant(adapters[0], entrant_id="adapted")
    loads: list[Entrant] = []

    def load(one: Entrant, device: torch.device) -> LoadedWeights:
        loads.append(one)
        return load_weights(one, device)

    list(work(load, [greedy, adapted, warm]))

    assert loads == [greedy, adapted]


def test_tiny_weights_run_on_one_thread(entrant: Build) -> None:
    """More would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        load_entrant(entrant(), torch.device("cpu"))

        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@both
def test_what_cannot_be_loaded_is_told_of_before_the_first_load(
    entrant: Build, hydra_files: HydraFiles, weights: Path, tmp_path: Path, work: Work
) -> None:
    """Their turn may come hours later; all answers of a training that diverged would fail."""
    broken = hydra_entrant(hydra_files._replace(security=hydra_files.security[:1], robustness=()))
    assert broken.hydra is not None
    broken = replace(broken, hydra=replace(broken.hydra, security=(MISSING,)))
    diverged = shutil.copytree(weights, tmp_path / "diverged")
    tensors = load_file(diverged / "model.safetensors")
    name = min(tensors)
    tensors[name].view(-1)[-1] = torch.inf
    save_file(tensors, diverged / "model.safetensors", {"format": "pt"})
    infinite = entrant(weights=str(diverged), weights_digest=digest_of("diverged"))
    n_alive: list[int] = []

    for one, why in (
        (broken, "no such shard"),
        (infinite, f"diverged: these tensors are not finite: {name}; use"),
    ):
        with pytest.raises(WeightsError, match=why):
            next(work(noting_alive(n_alive), [entrant(), one]))
    assert not n_alive


def test_another_load_takes_the_place_of_the_last(
    entrant: Build, tasks: Callable[..., list[GenerationTask]], adapters: tuple[Path, Path]
) -> None:
    """Two sets of weights would not fit where one does, nor one beside that which failed."""
    n_alive: list[int] = []
    generator = LocalModels(1, device="cpu", load=noting_alive(n_alive))

    for one in (entrant(), entrant(adapters[0]), entrant(dtype="bfloat16")):
        list(generator.generate(tasks(one, ["a dose"])))
        list(generator.log_likelihoods([Continuation("1", one, "", "a dose")]))

    assert n_alive == [0, 0, 0]
