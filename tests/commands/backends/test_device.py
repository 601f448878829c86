"""The device is chosen before anything is loaded."""

import pytest
import torch

from commands.backends.weights.loaded import prepare_device
from commands.errors import ConfigurationError


def test_auto_picks_the_best_device_that_is_here() -> None:
    """A GPU that lies idle is the most common costly mistake."""
    if torch.cuda.is_available():
        best = "cuda"
    elif torch.backends.mps.is_available():
        best = "mps"
    else:
        best = "cpu"

    assert prepare_device("auto", None) == torch.device(best)


@pytest.mark.parametrize("name", ["tpu", "cuda:x", ""])
def test_a_device_that_is_not_here_is_refused_by_name(name: str) -> None:
    """The user should read what can be chosen, not a traceback of torch's."""
    with pytest.raises(ConfigurationError, match=r"use auto or one of: .*cpu"):
        prepare_device(name, None)


def test_as_many_threads_compute_as_are_asked_for() -> None:
    """On a machine that others use torch's own choice is too many; left out, none is made."""
    before = torch.get_num_threads()
    try:
        for asked, found in ((2, 2), (None, 2)):
            assert prepare_device("cpu", asked) == torch.device("cpu")
            assert torch.get_num_threads() == found
    finally:
        torch.set_num_threads(before)
