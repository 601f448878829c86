"""The device is chosen before anything is loaded."""

import pytest
import torch

from commands.backends.device import pick_device
from commands.errors import ConfigurationError


def test_auto_picks_the_best_device_that_is_here() -> None:
    """A GPU that lies idle is the most common costly mistake."""
    if torch.cuda.is_available():
        best = "cuda"
    elif torch.backends.mps.is_available():
        best = "mps"
    else:
        best = "cpu"

    assert pick_device("auto") == torch.device(best)


@pytest.mark.parametrize("name", ["tpu", "cuda:x", ""])
def test_a_device_that_is_not_here_is_refused_by_name(name: str) -> None:
    """The user should read what can be chosen, not a traceback of torch's."""
    with pytest.raises(ConfigurationError, match=r"use auto or one of: .*cpu"):
        pick_device(name)
