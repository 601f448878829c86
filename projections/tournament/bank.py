"""The prompts of a bank: their samples, the pilot's part of them, and what can be judged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ledger.events.registration import Prompt, Rubric
from ledger.identity import PromptId

PILOT_SEED: Final = 20260427
PILOT_SIZE: Final = 50
"""How many prompts a pilot has where the settings do not say, unless the bank is smaller."""


def proportional_strata(prompts: Sequence[Prompt], size: int) -> dict[str, int]:
    """Divide a size among the sources in proportion (largest remainder, then bank order)."""
    counts = Counter(prompt.source for prompt in prompts)  # sources in bank order
    strata = {source: size * n // len(prompts) for source, n in counts.items()}
    by_remainder = sorted(counts, key=lambda source: -(size * counts[source] % len(prompts)))
    for source in by_remainder[: size - sum(strata.values())]:
        strata[source] += 1
    return strata


def pilot_size(n_prompts: int) -> int:
    """Return the size of a pilot where the settings do not say: of a small bank, a fifth."""
    return PILOT_SIZE if n_prompts >= PILOT_SIZE else max(1, n_prompts // 5)


def first_samples(prompts: Sequence[Prompt], n_samples: int) -> Sequence[Prompt]:
    """Return the prompts of a bank once; further samples of all of them follow the first."""
    return prompts[: len(prompts) // n_samples]


def pilot_prompts(
    prompts: Sequence[Prompt],
    strata: Mapping[str, int],
    *,
    seed: int = PILOT_SEED,
    n_samples: int = 1,
) -> tuple[PromptId, ...]:
    """Draw each stratum without replacement from one generator; return prompts in bank order.

    Strata are drawn in the order given, as the customer's orchestrator does. Where the bank has
    several samples of each prompt, all second ones behind all first, prompts are drawn with all
    of them.

    Raises:
        ValueError: A stratum asks for more prompts than its source has.
    """
    rng = np.random.default_rng(seed)
    firsts = first_samples(prompts, n_samples)
    chosen: set[PromptId] = set()
    for source, size in strata.items():
        candidates = [prompt.prompt_id for prompt in firsts if prompt.source == source]
        if size > len(candidates):
            raise ValueError(
                f"the pilot asks for {size} prompts of source {source!r},"
                f" the bank has {len(candidates)}; lower [pilot] size or strata"
            )
        drawn = rng.choice(len(candidates), size=size, replace=False)
        chosen.update(candidates[i] for i in drawn)
    return tuple(
        prompt.prompt_id
        for n, prompt in enumerate(prompts)
        if firsts[n % len(firsts)].prompt_id in chosen
    )


def recorded_samples(configuration: Mapping[str, Any]) -> int:
    """Return how many samples of each prompt a recorded configuration asks for."""
    n_samples: int = configuration.get("generation", {}).get("samples", 1)
    return n_samples


def recorded_pilot(
    prompts: Sequence[Prompt], configuration: Mapping[str, Any]
) -> frozenset[PromptId]:
    """Return the pilot prompts of a recorded configuration; none if it has no pilot."""
    pilot, n_samples = configuration.get("pilot"), recorded_samples(configuration)
    if pilot is None:
        return frozenset()
    firsts = first_samples(prompts, n_samples)
    # the record says 50 where the settings said nothing; 50 that were asked for were in the bank
    size = pilot_size(len(firsts)) if pilot["size"] == PILOT_SIZE else pilot["size"]
    strata = pilot["strata"] or proportional_strata(firsts, size)
    try:
        return frozenset(pilot_prompts(prompts, strata, seed=pilot["seed"], n_samples=n_samples))
    except ValueError:  # the bank has too few: no pilot was run
        return frozenset()


def is_eligible(rubric: Rubric, prompt: Prompt) -> bool:
    """Say whether a prompt can be judged on a rubric's dimension."""
    return prompt.gold_answer is not None or not rubric.needs_gold
