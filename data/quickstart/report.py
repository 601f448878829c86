"""Report what was trained: its files, and how good the tournament's responses are."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from commands.backends.huggingface.local import LocalModels
from commands.entrants.files import read_entrant
from commands.ports import GeneratedText, GenerationTask
from commands.settings.reader import read_settings
from commands.settings.sections import RecordedSection
from fitting import say
from ledger.events.registration import Entrant
from ledger.identity import digest_of
from lora import load_merged
from projections.tournament.matches import prompt_seed
from prompts import HERE, Prompt
from uncertainty import is_held_out

Responses = Sequence[tuple[Prompt, GeneratedText]]


def report_files(out: Path) -> None:
    """Report the parameter count, and each file's size and digest."""
    weights = load_merged(out / "weights")
    say(f"{weights.num_parameters():,} parameters in the base")
    paths = sorted(path for part in ("weights", "hydra") for path in (out / part).rglob("*.*"))
    for path in paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        say(f"{path.stat().st_size:>9,} bytes  {digest[:16]}  {path.relative_to(out)}")


def report_quality(prompts: Sequence[Prompt], out: Path) -> None:
    """Report how close each entrant of the tournament comes to the gold answers."""
    settings = read_settings(HERE / "tournament.toml", {})
    generator = LocalModels(settings.generation.batch_tokens, settings.generation.device)
    for section in settings.entrants:
        if isinstance(section, RecordedSection):
            continue
        entrant = read_entrant(section, settings.generation, out)
        responses = respond(generator, entrant, prompts)
        say(f"{entrant.entrant_id}: {closeness(responses)}{certainty(responses)}")


def respond(generator: LocalModels, entrant: Entrant, prompts: Sequence[Prompt]) -> Responses:
    """Generate the tournament's own response to each prompt, in the order of the prompts."""
    by_key = {digest_of(prompt.prompt_id): prompt for prompt in prompts}
    tasks = [
        GenerationTask(key, entrant, prompt.text, prompt_seed(prompt.prompt_id))
        for key, prompt in by_key.items()
    ]
    results = [each for batch in generator.generate(tasks) for each in batch]
    return [
        (by_key[each.response_key], each) for each in results if isinstance(each, GeneratedText)
    ]


def closeness(responses: Responses) -> str:
    """Return the mean sentence chrF against the gold answers, and the number of exact matches."""
    chrf = CHRF()
    gold = [(prompt.gold_answer, prompt.right, each.text) for prompt, each in responses]
    scores = [chrf.sentence_score(text, [answer]).score for answer, _, text in gold if answer]
    n_right = sum(text == right for answer, right, text in gold if answer)
    return f"mean chrF {np.mean(scores):.1f}, {n_right} of {len(scores)} word for word"


def certainty(responses: Responses) -> str:
    """Return the uncertainty head's Brier score on held-out prompts.

    The baseline beside it predicts the overall share of right responses for each.
    """
    rated = [
        (each.p_correct, each.text == prompt.right)
        for prompt, each in responses
        if each.p_correct is not None and is_held_out(prompt)
    ]
    if not rated:
        return ""
    p, is_right = np.array(rated).T
    brier, alone = np.mean((p - is_right) ** 2), np.var(is_right)
    return f"; Brier {brier:.3f} on {len(rated)} held out, by their share alone {alone:.3f}"
