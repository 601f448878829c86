"""An entrant is put to work by what its loader needs, and loaded once for all of it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.backends.wiring import make_inference_factory
from commands.errors import ConfigurationError
from commands.ports import Continuation, ContinuationLikelihood, GeneratedText, GenerationTask
from ledger.events.registration import Entrant
from tests import builders
from tests.commands.builders import settings

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from commands.backends.wiring import make_inference_factory
from tests.builders import entrant
from tests.commands.builders import settings
inference = make_inference_factory(settings())(entrant())
for make in (inference.make_generator, inference.make_likelihood_model):
    try:
        make()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_what_answers_and_what_reads_share_one_load(
    entrant: Callable[..., Entrant],
    tasks: Callable[..., list[GenerationTask]],
    weights: Path,
    copied: Callable[[Path], Path],
) -> None:
    """From one evaluation to the next: real weights take minutes, and once is enough."""
    folder = copied(weights)
    inference = make_inference_factory(settings(generation={"device": "cpu"}))
    one = inference(entrant(folder=folder))
    owed = tasks(one.entrant, ["a dose"])
    ((answer,),) = one.make_generator().generate(owed)
    shutil.rmtree(folder)  # nothing is read there any more

    reader = one.require_likelihoods("perplexity")
    ((read,),) = reader().log_likelihoods([Continuation("p", one.entrant, "a", " dose")])
    ((again,),) = one.make_generator().generate(owed)

    assert isinstance(read, ContinuationLikelihood)
    assert isinstance(answer, GeneratedText)
    assert isinstance(again, GeneratedText)
    assert answer.text == again.text


def test_an_endpoint_answers_and_does_not_read() -> None:
    """It serves no log-likelihoods of a text; that is known before anything is paid for."""
    served = builders.entrant(loader="endpoint")

    inference = make_inference_factory(settings())(served)

    with pytest.raises(ConfigurationError, match="needs log-likelihoods"):
        inference.require_likelihoods("perplexity")


def test_planning_needs_no_torch_and_running_names_the_missing_extra() -> None:
    """What an evaluation costs is asked on a laptop, and paid for elsewhere."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True
    )

    refusal = (
        "MissingExtra package 'torch' is not installed; pip install 'tourney-ledger[models]'\n"
    )
    assert done.stdout == 2 * refusal
