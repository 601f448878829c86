"""The prompts of a bank: their samples, the pilot, what can be judged, and each judge's share.

As the strong judge of a cascade, a judge may be asked on a share of the prompts. Each prompt draws
a number by the seed, whoever else is in the bank, and a judge is asked on those whose number is
below its share. So a larger share asks all that a smaller one does, and a further prompt leaves the
earlier ones as they were. All pairs of a prompt are asked about, or none: prompts are what
intervals are clustered by.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ledger.events.registration import JudgeSettings, Prompt, Rubric
from ledger.identity import JudgeId, PromptId, drawn_by
from projections.tournament.state import Tournament

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


def share_of(tournament: Tournament, judge: JudgeSettings) -> float | None:
    """Return the share of the prompts that a judge is asked on; None: all of them."""
    jury = tournament.configuration.get("jury", ())
    shares = {juror["id"]: juror.get("share") for juror in jury}
    return shares.get(judge.judge_id)


def asked_prompts(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Collection[PromptId]:
    """Return those of some prompts that a judge is asked on."""
    share, opening = share_of(tournament, judge), tournament.opening
    if share is None or opening is None:
        return prompts
    chosen = frozenset(prompts)
    return frozenset(
        prompt.prompt_id
        for prompt in tournament.bank
        if prompt.prompt_id in chosen and _number(prompt.text, opening.generation_seed) < share
    )


def _number(text: str, seed: int) -> float:
    """Draw a prompt's number, in [0, 1)."""
    return drawn_by(["share", seed, text]) / 2.0**64


def stronger_judges(tournament: Tournament, judge: JudgeSettings) -> tuple[JudgeId, ...]:
    """Return the other judges that have a share of the prompts: each may correct this one."""
    others = (other for other in tournament.panel if other.judge_id != judge.judge_id)
    return tuple(other.judge_id for other in others if share_of(tournament, other) is not None)


def without_shares(tournament: Tournament) -> Tournament:
    """Return a tournament where every judge is asked on all prompts, whatever the settings say."""
    jury = tournament.configuration.get("jury", ())
    if all(juror.get("share") is None for juror in jury):
        return tournament  # with all that was computed of it
    return tournament.configured_as("jury", [juror | {"share": None} for juror in jury])


def outside_share(tournament: Tournament, judge: JudgeSettings) -> tuple[str, ...]:
    """Return a sentence on the prompts that a judge is not asked on, if it has a share."""
    share = share_of(tournament, judge)
    if share is None:
        return ()
    bank = [prompt.prompt_id for prompt in tournament.bank]
    n_asked = len(asked_prompts(tournament, bank, judge))
    asked = f"{judge.judge_id} is asked on {n_asked} of {len(bank)} prompts"
    return (f"share = {share:g}: {asked}, drawn by the seed; the others are not planned for it",)
