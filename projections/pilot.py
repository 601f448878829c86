"""The pilot: a small stratified subset of the bank, the same for everybody."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ledger.events.registration import Prompt
from ledger.identity import PromptId

PILOT_SEED: Final = 20260427


def proportional_strata(prompts: Sequence[Prompt], size: int) -> dict[str, int]:
    """Share a size among the sources as the bank does (largest remainder, then bank order)."""
    counts = Counter(prompt.source for prompt in prompts)  # sources in bank order
    strata = {source: size * n // len(prompts) for source, n in counts.items()}
    by_remainder = sorted(counts, key=lambda source: -(size * counts[source] % len(prompts)))
    for source in by_remainder[: size - sum(strata.values())]:
        strata[source] += 1
    return strata


def pilot_prompts(
    prompts: Sequence[Prompt], strata: Mapping[str, int], *, seed: int = PILOT_SEED
) -> tuple[PromptId, ...]:
    """Draw each stratum without replacement from one generator; the result is in bank order.

    Strata are drawn in the order given, as the customer's orchestrator does.

    Raises:
        ValueError: A stratum asks for more prompts than its source has.
    """
    rng = np.random.default_rng(seed)
    chosen: set[PromptId] = set()
    for source, size in strata.items():
        candidates = [prompt.prompt_id for prompt in prompts if prompt.source == source]
        if size > len(candidates):
            raise ValueError(
                f"the pilot asks for {size} prompts of source {source!r},"
                f" the bank has {len(candidates)}; lower [pilot] size or strata"
            )
        drawn = rng.choice(len(candidates), size=size, replace=False)
        chosen.update(candidates[i] for i in drawn)
    return tuple(prompt.prompt_id for prompt in prompts if prompt.prompt_id in chosen)


def recorded_pilot(prompts: Sequence[Prompt], configuration: str) -> frozenset[PromptId]:
    """Return the prompts that a recorded configuration draws from the bank, if it has a pilot."""
    pilot = json.loads(configuration).get("pilot")
    if pilot is None:
        return frozenset()
    strata = pilot["strata"] or proportional_strata(prompts, pilot["size"])
    try:
        return frozenset(pilot_prompts(prompts, strata, seed=pilot["seed"]))
    except ValueError:  # the bank has too few: no pilot was run
        return frozenset()
