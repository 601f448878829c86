"""The newest load is kept until another is asked for."""

from collections.abc import Callable
from pathlib import Path

import torch

from commands.backends.huggingface.generator import HfGenerator
from commands.backends.huggingface.worker import LastLoaded
from commands.ports import GenerationTask
from ledger.events.registration import Entrant
from tests.commands.backends.loads import noting_alive

CPU = torch.device("cpu")

Build = Callable[..., Entrant]


def test_who_needs_the_same_load_shares_it(entrant: Build) -> None:
    """An evaluation that generates and one that reads would else load minutes each."""
    load = LastLoaded()

    first = load(entrant(), CPU)

    assert load(entrant(entrant_id="warm", temperature=0.7, max_new_tokens=5), CPU) is first


def test_another_load_takes_the_place_of_the_last(
    entrant: Build, tasks: Callable[..., list[GenerationTask]], adapters: tuple[Path, Path]
) -> None:
    """Two sets of weights would not fit where one does, nor one beside that which failed."""
    n_alive: list[int] = []
    generator = HfGenerator(1, device="cpu", load=LastLoaded(noting_alive(n_alive)))

    for one in (entrant(), entrant(adapters[0]), entrant(), entrant(dtype="bfloat16")):
        list(generator.generate(tasks(one, ["a dose"])))
        list(generator.generate(tasks(one, ["another"])))

    assert n_alive == [0, 0, 0, 0]
