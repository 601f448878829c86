"""Generate the Hydras' responses with their first states, and whether each is correct."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import torch

from commands.backends.hydra.answers import ResponseState
from commands.backends.hydra.decoding import HydraDecoding, decode
from commands.backends.hydra.rows import HydraRow, start_row
from commands.backends.hydra.weights import LoadedHydra, load_hydra
from commands.backends.weights.answers import Ending
from commands.backends.weights.chat import decode_text, encode_prompt
from commands.entrants.files import read_entrant
from commands.settings.reader import read_settings
from commands.settings.sections import HydraSection
from ledger.events.registration import Entrant, Hydra
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
    decoding = HydraDecoding(
        temperature=entrant.temperature,
        max_new_tokens=entrant.max_new_tokens,
        ending=Ending(loaded.end_ids),
        beta=heads.beta,
    )
    for sample in samples:
        for start in range(0, len(prompts), BATCH_SIZE):
            batch = prompts[start : start + BATCH_SIZE]
            rows = start_rows(loaded, batch, sample=sample, bypass_jury=heads.bypass_jury)
            decode(loaded.net, rows, decoding)
            yield from (rate(prompt, row, loaded) for prompt, row in zip(batch, rows, strict=True))


def start_rows(
    loaded: LoadedHydra, prompts: Sequence[Prompt], *, sample: int, bypass_jury: bool
) -> list[HydraRow]:
    """Start responses like the tournament, but with another sample number."""
    return [
        start_row(
            encode_prompt(loaded.tokenizer, prompt.text),
            seed=prompt_seed(prompt.prompt_id, sample=sample),
            n_heads=loaded.n_heads,
            bypass_jury=bypass_jury,
        )
        for prompt in prompts
    ]


def rate(prompt: Prompt, row: HydraRow, loaded: LoadedHydra) -> RatedResponse:
    """Return a response, and whether it matches the right one exactly."""
    text = decode_text(loaded.tokenizer, row.tokens)
    witness = cast("torch.Tensor", row.first_state).clone()  # inference tensors allow no gradients
    return RatedResponse(ResponseState(prompt.text, text, witness), is_correct=text == prompt.right)
