"""Generate the Hydras' responses with their first states, and whether each is correct."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import torch

from commands.backends.hydra.answers import ResponseState
from commands.backends.hydra.decoding import HydraRow, HydraSteps
from commands.backends.hydra.weights import load_hydra
from commands.backends.weights.answers import Ending, PromptRow
from commands.backends.weights.chat import decode_text, encode_prompt
from commands.backends.weights.decoding import follow
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import SamplingSettings
from commands.entrants.files import read_entrant
from commands.settings.reader import read_settings
from commands.settings.sections import HydraSection
from ledger.events.registration import Entrant, Hydra
from ledger.identity import digest_of
from projections.tournament.matches import prompt_seed
from prompts import HERE, Prompt

CPU = torch.device("cpu")
BATCH_SIZE = 16


class RatedResponse(NamedTuple):
    """A response for the uncertainty head, and the correct prediction."""

    response: ResponseState
    is_correct: bool


def gather_responses(
    out: Path, prompts: Sequence[Prompt], *, samples: Iterable[int]
) -> list[RatedResponse]:
    """Generate every Hydra's response to every prompt, once for each sample."""
    settings = read_settings(HERE / "tournament.toml", {})
    gathered: list[RatedResponse] = []
    for section in settings.entrants:
        if isinstance(section, HydraSection):
            unrated = section.model_copy(update={"needs_uncertainty": False})
            entrant = read_entrant(unrated, settings.generation, out)
            gathered += responses_of(entrant, prompts, samples=samples)
    return gathered


def responses_of(
    entrant: Entrant, prompts: Sequence[Prompt], *, samples: Iterable[int]
) -> Iterator[RatedResponse]:
    """Generate one Hydra's responses in batches."""
    heads = cast("Hydra", entrant.hydra)
    loaded = load_hydra(entrant, heads, CPU)
    ending, how = Ending(loaded.end_ids), SamplingSettings(entrant.temperature)
    for sample in samples:
        for start in range(0, len(prompts), BATCH_SIZE):
            batch = prompts[start : start + BATCH_SIZE]
            rows = start_rows(loaded, batch, entrant, sample=sample)
            follow(HydraSteps(loaded.model, rows, how, heads.beta), rows, ending)
            yield from (rate(prompt, row, loaded) for prompt, row in zip(batch, rows, strict=True))


def start_rows(
    loaded: LoadedWeights, prompts: Sequence[Prompt], entrant: Entrant, *, sample: int
) -> list[HydraRow]:
    """Start responses like the tournament, but with another sample number."""
    heads = cast("Hydra", entrant.hydra)
    rows = [
        PromptRow(
            digest_of(prompt.prompt_id),
            encode_prompt(loaded.tokenizer, prompt.text),
            entrant.max_new_tokens,
            prompt_seed(prompt.prompt_id, sample=sample),
        )
        for prompt in prompts
    ]
    n_heads = loaded.model.n_heads
    return [HydraRow.start(row, n_heads, bypass_jury=heads.bypass_jury) for row in rows]


def rate(prompt: Prompt, row: HydraRow, loaded: LoadedWeights) -> RatedResponse:
    """Return a response, and whether it matches the right one exactly."""
    text = decode_text(loaded.tokenizer, row.tokens)
    witness = cast("torch.Tensor", row.first_state).clone()  # inference tensors allow no gradients
    return RatedResponse(ResponseState(prompt.text, text, witness), is_correct=text == prompt.right)
