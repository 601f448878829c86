"""The training and the step that the label of a checkpoint names."""

import re
from typing import Final, NamedTuple

_NUMBERED: Final = re.compile(
    r"(?P<training>.*?)[-_/ ]?(?:(?:global_?)?step|checkpoint)[-_ ]?(?P<step>\d+)"
    r"(?P<asked> \[.*\])?",  # how `tourney evaluate` asked it, if not as by default
    re.DOTALL,
)


class NumberedLabel(NamedTuple):
    """What a label such as `olmo_step_50` says: a training, and a step of it."""

    training: str
    step: int


def numbered_label(label: str) -> NumberedLabel | None:
    """Return the training and the step that a label names; None: it names no step."""
    found = _NUMBERED.fullmatch(label)
    return (
        None
        if found is None
        else NumberedLabel(f"{found['training']}{found['asked'] or ''}", int(found["step"]))
    )
