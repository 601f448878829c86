"""Two processes that share work: the first prints what came of it, as JSON; run by accelerate.

With an argument, the first meets a bug: an error that is none of tourney's.
"""

import json
import os
import sys
from pathlib import Path

from commands.backends.huggingface.replicas import ReplicaGroup
from commands.errors import ReplicaFailed, WeightsError
from commands.ports import (
    Continuation,
    ContinuationLikelihood,
    GeneratedText,
    GenerationTask,
    Generator,
    LikelihoodModel,
)
from tests.support.builders.events import entrant, key
from tests.support.scripted import ScriptedGenerator, ScriptedReader

BASE = entrant("base")
RANK = os.environ["RANK"]
PASSAGES = tuple(
    Continuation(f"{context}{n}", BASE, context, "x")
    for context in ("one", "two", "three")
    for n in (1, 2)
)


def answer(task: GenerationTask) -> str:
    """Say which process answered; two prompts cannot be answered."""
    match task.prompt_text:
        case "x":
            raise WeightsError(Path("weights"), "torn", "mend it")
        case "!":
            raise RuntimeError("bug")
    return RANK


def made(device: str) -> tuple[Generator, LikelihoodModel]:
    """Make what works on a device."""
    assert device == "cpu"
    return ScriptedGenerator(answer), ScriptedReader(lambda _: float(RANK))


def tasks(*prompts: str) -> list[GenerationTask]:
    """Return a task for each prompt."""
    return [GenerationTask(key(prompt), BASE, prompt, 0) for prompt in prompts]


def lead(replicas: ReplicaGroup) -> None:
    """Give work, and print what came of it; the second process cannot answer the last prompt."""
    said: dict[str, object] = {}
    read = [each for batch in replicas.log_likelihoods(PASSAGES) for each in batch]
    said["read"] = {e.key: e.log_likelihood for e in read if isinstance(e, ContinuationLikelihood)}
    answered: dict[str, str] = {}
    try:
        for batch in replicas.generate(tasks("a", "b", "c", "x")):
            answered |= {e.response_key: e.text for e in batch if isinstance(e, GeneratedText)}
    except ReplicaFailed as error:
        said["failure"] = str(error)
    said["answered"] = answered
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    every = ReplicaGroup(made, batch_tokens=8192, device="cpu")
    if not every.is_main:
        every.serve()
    elif sys.argv[1:]:
        with every.leading():
            list(every.generate(tasks("!", "b")))  # the first of them is dealt to the first
    else:
        with every.leading():
            lead(every)
