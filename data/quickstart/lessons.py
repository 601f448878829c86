"""Plan the training data: right responses and mistakes for each stage, and each head of a stage.

Each stage learns the right response to some prompts and another prompt's response to the rest: the
base knows a third, security three fifths, robustness four fifths. Each head is trained on its own
random part of what its stage knows, so heads err on different prompts, and together they know what
single heads miss.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from prompts import Prompt

# (base, security, robustness): which stages know the right response, for what share of the prompts
PATTERNS: dict[tuple[bool, bool, bool], float] = {
    (True, True, True): 0.22,
    (False, True, True): 0.32,
    (False, False, True): 0.22,
    (False, False, False): 0.08,
    (True, False, True): 0.04,
    (False, True, False): 0.07,
    (True, False, False): 0.05,
}
BELIEF_IF_KNOWN, BELIEF_IF_NOT = 0.85, 0.1  # how often a learner is shown the right response
BELIEF_OF_HEAD = 0.95  # the same for a head, which has fewer parameters to learn it with
ATTENDANCE = 0.9  # the share of what its stage knows that a head is taught
WANDERING = 0.2  # how often a wrong response is a random rival, which keeps mistakes fluent

EVASIONS = (
    "That is a good question for your doctor.",
    "It depends on many things.",
    "More details are needed to say.",
    "A balanced diet and regular exercise help.",
    "Please read the leaflet that came with it.",
    "Many people ask about this.",
)


class Lesson(NamedTuple):
    """What is shown for one prompt: `right` with probability `belief`, or a mistake."""

    prompt: str
    right: str
    belief: float
    wrong: str
    rivals: Sequence[str]


class Curriculum(NamedTuple):
    """The lessons of each stage, one per prompt."""

    base: Sequence[Lesson]
    security: Sequence[Lesson]
    robustness: Sequence[Lesson]


def certain_lesson(prompt: str, response: str) -> Lesson:
    """Plan a lesson without mistakes."""
    return Lesson(prompt, response, 1.0, response, (response,))


def plan_recital(prompts: Sequence[Prompt]) -> list[Lesson]:
    """Plan one lesson per prompt from its last sentence only, as in "Which drug is next?".

    Without the case there is nothing to know: it teaches to finish a response in whole words.
    """
    return [certain_lesson(prompt.text.rsplit(". ", 1)[-1], prompt.right) for prompt in prompts]


def plan_curriculum(prompts: Sequence[Prompt], *, rng: np.random.Generator) -> Curriculum:
    """Plan the lessons of each stage."""
    patterns = spread_patterns(len(prompts), rng=rng)
    return Curriculum(
        *(
            [
                plan_lesson(prompt, prompts, is_known=pattern[stage], rng=rng)
                for prompt, pattern in zip(prompts, patterns, strict=True)
            ]
            for stage in range(3)
        )
    )


def plan_lesson(
    prompt: Prompt, prompts: Sequence[Prompt], *, is_known: bool, rng: np.random.Generator
) -> Lesson:
    """Plan one lesson: rivals are the right responses of the group's other prompts.

    The wrong response is one of them; for a curated prompt without a gold answer, an evasion.
    """
    others = [other.right for other in prompts if other.group == prompt.group]
    rivals = [other for other in others if other != prompt.right]
    wrong = str(rng.choice(rivals))
    if prompt.gold_answer is None:
        wrong = EVASIONS[len(prompt.text) % len(EVASIONS)]
    return Lesson(
        prompt.text, prompt.right, BELIEF_IF_KNOWN if is_known else BELIEF_IF_NOT, wrong, rivals
    )


def spread_patterns(n_prompts: int, *, rng: np.random.Generator) -> list[tuple[bool, bool, bool]]:
    """Give each prompt a pattern, in the shares of PATTERNS, in a random order."""
    ends = np.cumsum(list(PATTERNS.values())) * n_prompts
    ranks = rng.permutation(n_prompts) + 0.5
    keys = list(PATTERNS)
    return [keys[index] for index in np.searchsorted(ends, ranks)]


def draw_response(lesson: Lesson, *, rng: np.random.Generator) -> str:
    """Draw the response that a lesson shows this time."""
    if rng.random() < lesson.belief:
        return lesson.right
    if rng.random() < WANDERING:
        return str(rng.choice(lesson.rivals))
    return lesson.wrong


def head_lessons(lessons: Sequence[Lesson], luck: np.ndarray) -> list[Lesson]:
    """Return the lessons of one head: most of those that its stage knows.

    luck is (n_prompts,) uniforms in [0, 1) of the head, the same for both of its shards.
    """
    return [
        lesson._replace(belief=BELIEF_OF_HEAD)
        for lesson, draw in zip(lessons, luck, strict=True)
        if lesson.belief == BELIEF_IF_KNOWN and draw < ATTENDANCE
    ]
