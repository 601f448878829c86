"""Work for the generator of a checkout: read kinds of it, write tokens a second of the processor.

`earlier` runs this script in two checkouts, so it uses only what commit 6200432 has, too.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import torch
from msgspec.structs import replace
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from commands.backends.huggingface.generator import HfGenerator
from commands.backends.huggingface.worker import LastLoaded, Loaded
from commands.backends.hydra.weights import LoadedHydra
from commands.backends.weights.loaded import as_loaded
from commands.ports import GeneratedText, GenerationOptions, GenerationTask
from commands.runs.register import opening_of
from commands.settings.reader import read_settings
from commands.settings.starting.demo import lay_out_demo
from ledger.events.registration import Entrant, EntrantRegistered, PromptRegistered
from tests.benchmarks.heads.random_hydra import N_HEADS, SMALL, random_hydra, random_model
from tests.support.builders.events import entrant, hydra, key, shards

N_NEW: Final = 48  # tokens of the longest answer; one in MEAN_LENGTH ends one
MEAN_LENGTH: Final = 16
STRENGTH: Final = 0.3  # of LoRA
TEMPERATURE: Final = 0.98
CHAT, PLAIN = GenerationOptions(), GenerationOptions(is_chat=False)


class Job(NamedTuple):
    """A generator, and what it is to answer."""

    generator: HfGenerator
    tasks: Sequence[GenerationTask]

    def rate(self) -> float:
        """Answer; return tokens a second of the processor."""
        began = time.process_time()
        made = [each for batch in self.generator.generate(self.tasks) for each in batch]
        took_s = time.process_time() - began
        answers = [each for each in made if isinstance(each, GeneratedText)]
        assert len(answers) == len(self.tasks)
        return sum(each.n_generated_tokens or 0 for each in answers) / took_s


def main(folder: Path) -> None:
    """Serve until there is no more to read."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    lay_out_demo(folder / "demo")
    jobs = demo_jobs(folder / "demo") | random_jobs(folder / "demo" / "weights")
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(jobs[line.strip()].rate())}\n")
        sys.stdout.flush()


def demo_jobs(demo: Path) -> dict[str, Job]:
    """Return the work of the quickstart, and its plain weights sampled."""
    settings = read_settings(demo / "tournament.toml", {})
    registrations = opening_of(settings, demo, versions=()).registrations
    entrants = [each.entrant for each in registrations if isinstance(each, EntrantRegistered)]
    texts = [each.prompt.text for each in registrations if isinstance(each, PromptRegistered)]
    base, one_head, _, nine = entrants
    sampled = replace(base, temperature=TEMPERATURE)
    few = settings.generation.batch_tokens or 0
    many = 32 * 243  # rows, of the longest prompt and answer
    kinds = {
        "demo weights, greedy": (base, few),
        "demo weights, sampled": (sampled, few),
        "demo weights, greedy, 32 rows": (base, many),
        "demo weights, sampled, 32 rows": (sampled, many),
        "demo weights, Hydra of one head": (one_head, few),
        "demo weights, Hydra of nine": (nine, few),
    }
    return {
        kind: Job(HfGenerator(batch_tokens, "cpu", load=LastLoaded()), tasks_of(who, texts))
        for kind, (who, batch_tokens) in kinds.items()
    }


def random_jobs(folder: Path) -> dict[str, Job]:
    """Return work for random weights of 100 M parameters, whose answers differ in length."""
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    model = random_model(SMALL)
    ends = frozenset(range(0, SMALL.vocabulary_size, MEAN_LENGTH))
    net = random_hydra(model, STRENGTH)
    with suppress(ModuleNotFoundError):  # commit 6200432 leaves weights as they are
        import_module("commands.backends.hydra._packed").pack(net)
    plain = as_loaded(model, tokenizer)._replace(end_ids=ends)
    headed = LoadedHydra(net, N_HEADS, tokenizer, model.device, ends, None)
    who = entrant("random", max_new_tokens=N_NEW)
    heads = hydra(heads_depth=3, security=shards("security", N_HEADS))
    sampled = replace(who, temperature=1.0)
    return {
        "greedy, 32 rows": random_job(plain, who, 32, 48),
        "sampled, 32 rows": random_job(plain, sampled, 32, 48),
        "Hydra, 12 rows": random_job(headed, replace(sampled, hydra=heads), 12, 36),
    }


def random_job(loaded: Loaded, who: Entrant, n_rows: int, n_prompts: int) -> Job:
    """Return prompts to answer, so many at a time."""
    texts = [f"Patient {n:03} asks about a dose of the drug" for n in range(n_prompts)]
    widest = max(len(ids) for ids in loaded.tokenizer(texts)["input_ids"]) + 1 + N_NEW
    generator = HfGenerator(n_rows * widest, "cpu", load=lambda _, __: loaded)
    return Job(generator, tasks_of(who, texts, PLAIN))


def tasks_of(
    who: Entrant, texts: Sequence[str], options: GenerationOptions = CHAT
) -> list[GenerationTask]:
    """Return a task for each text, the seeds counting up."""
    return [
        GenerationTask(key(f"{n}"), who, text, n, options=options) for n, text in enumerate(texts)
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
