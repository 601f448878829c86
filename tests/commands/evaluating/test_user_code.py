"""Faults in the code of evaluations."""

import sys

import pytest

from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.user_code import blame_evaluation


def test_a_fault_is_told_with_evaluation_item_and_line() -> None:
    """Who wrote the evaluation can put it right; nobody else can."""
    with pytest.raises(EvaluationFault) as caught, blame_evaluation("doses", "getting item 3"):
        int("three")

    said = str(caught.value)
    assert said.startswith("evaluation 'doses' failed at getting item 3: ValueError: invalid")
    assert f"({__file__}:" in said
    assert caught.value.exit_code == 2


def test_what_a_user_can_put_right_otherwise_passes() -> None:
    """Tourney's own errors name their own place."""
    with (
        pytest.raises(ConfigurationError, match=r"^no such file$"),
        blame_evaluation("doses", "reading"),
    ):
        raise ConfigurationError(["no such file"])


@pytest.mark.parametrize("code", [0, 1, None])
def test_an_exit_in_an_evaluations_own_code_is_its_fault(code: int | None) -> None:
    """The command would end without a word, and with 0 as if all were done."""
    with pytest.raises(EvaluationFault) as caught, blame_evaluation("doses", "scoring item 3"):
        sys.exit(code)

    said = str(caught.value)
    assert f"failed at scoring item 3: RuntimeError: it calls sys.exit({code}) ({__file__}:" in said


def test_an_interrupt_is_nobodys_fault() -> None:
    """Ctrl-C while an evaluation reads its data."""
    with pytest.raises(KeyboardInterrupt), blame_evaluation("doses", "reading"):
        raise KeyboardInterrupt
