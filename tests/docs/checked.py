"""The tournament in which the page on judges checks one: judged twice, and voted on by three."""

import csv
from pathlib import Path

import numpy as np

from ledger.events.registry import Event
from ledger.store import Ledger
from tests.support.builders.events import (
    STREAM,
    entrant,
    instructions,
    known,
    opened,
    prompt,
    responses,
)
from tests.support.builders.worlds import TIE, A, B, Said, heard, matches_of

_PROMPTS = 60
_SAID: dict[str, Said] = {"model_a": A, "model_b": B, "tie": TIE}
_RIGHT = 0.85  # of all votes and verdicts


def lay_out(folder: Path) -> None:
    """Record verdicts under two wordings of the instructions, and write people's votes beside."""
    rng = np.random.default_rng(5)
    first = _opening(1, "Compare.")
    answered: tuple[Event, ...] = (*first, *responses(known(*first)))
    truth = [*rng.choice([*_SAID], p=[0.5, 0.4, 0.1], size=_PROMPTS * 3)]
    before = heard(answered, [_SAID[said] for said in _read(rng, truth)])
    after = heard(
        (*before, *_opening(2, "Compare well.")), [_SAID[said] for said in _read(rng, truth)]
    )
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, after)
    places = [each.pairing for each in matches_of(known(*answered))]
    with (folder / "votes.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["question_id", "model_a", "model_b", "winner", "source", "judge_model"])
        for who in ("ann", "bob", "cy"):
            for pairing, said in zip(places, _read(rng, truth), strict=True):
                names = pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id
                lines.writerow([pairing.prompt.prompt_id, *names, said, "human", who])


def _opening(number: int, told: str) -> tuple[Event, ...]:
    return opened(
        prompts=[prompt(f"p{n:02}") for n in range(_PROMPTS)],
        entrants=[entrant("small-3b"), entrant("large-32b"), entrant("tuned-3b")],
        opening=number,
        told=instructions(told),
    )


def _read(rng: np.random.Generator, truth: list[str]) -> list[str]:
    """Return what somebody says who is right as a rule."""
    is_right = rng.random(len(truth)) < _RIGHT
    others = rng.choice([*_SAID], size=len(truth))
    return [
        str(np.where(right, said, other))
        for right, said, other in zip(is_right, truth, others, strict=True)
    ]
