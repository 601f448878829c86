"""Random texts to weigh."""

from collections.abc import Hashable, Mapping
from math import exp, log
from typing import Final

import numpy as np

from commands.backends.weights.windows import Window

N_TOKENS: Final = 256  # of the smallest vocabulary that is measured
N_CHOICES: Final = 4
CHOICE_LENGTHS: Final = (1, 12)  # tokens, at least and at most
SHORTEST: Final = 8  # tokens

Labelled = Mapping[Window, Hashable]


def questions(rng: np.random.Generator, n_questions: int, *, n_context: int) -> Labelled:
    """Return each question's choices, labelled with the question."""
    labelled = {}
    for question in range(n_questions):
        context = _ids(rng, n_context)
        for _ in range(N_CHOICES):
            choice = _ids(rng, int(rng.integers(*CHOICE_LENGTHS, endpoint=True)))
            labelled[Window(context + choice, n_context)] = question
    return labelled


def documents(rng: np.random.Generator, n_documents: int, longest: int) -> Labelled:
    """Return texts with labels of their own: as many twice as long as there are half as long."""
    spread = log(longest / SHORTEST)
    lengths = [round(SHORTEST * exp(rng.uniform(0.0, spread))) for _ in range(n_documents)]
    return {Window(_ids(rng, n + 1), 1): place for place, n in enumerate(lengths)}


def _ids(rng: np.random.Generator, n_ids: int) -> tuple[int, ...]:
    return tuple(rng.integers(N_TOKENS, size=n_ids).tolist())
