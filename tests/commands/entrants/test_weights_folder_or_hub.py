"""What a setting of weights stands for: a folder here, or a name on the Hub."""

import re
from pathlib import Path

import pytest

from commands.entrants.weights import (
    FoundWeights,
    HubSnapshot,
    find_weights,
    name_of_weights,
)
from commands.errors import MissingExtra, NotFetched, WeightsError

NAMED = Path("org/tune-step_50")
NO_CLIENT = MissingExtra("huggingface_hub", "models")
COMMIT = "c0ffee" * 6 + "step"


class ScriptedHub:
    """Has one model, or what it raises instead; remembers what it was asked."""

    def __init__(self, folder: Path, fault: Exception | None = None) -> None:
        """Take where the model lies."""
        self._snapshot, self._fault = HubSnapshot(folder, COMMIT), fault
        self.asked: list[tuple[str, str | None]] = []

    def __call__(self, name: str, revision: str | None) -> HubSnapshot:
        """Return the model, whatever its name."""
        self.asked.append((name, revision))
        if self._fault:
            raise self._fault
        return self._snapshot


@pytest.mark.parametrize("revision", [None, "v1", "refs/pr/1"])
def test_a_name_without_a_folder_is_fetched(tmp_path: Path, revision: str | None) -> None:
    """Its label is the name, as a commit says nothing of a training."""
    hub = ScriptedHub(tmp_path)
    named = NAMED if revision is None else Path(f"{NAMED}@{revision}")

    found = find_weights(named, tmp_path, hub)

    assert found == FoundWeights(tmp_path.resolve(), "tune-step_50", COMMIT)
    assert hub.asked == [(str(NAMED), revision)]
    assert name_of_weights(named, tmp_path) == "tune-step_50"


@pytest.mark.parametrize("named", [NAMED, Path(f"{NAMED}@v1")], ids=str)
def test_a_folder_goes_before_a_name(tmp_path: Path, named: Path) -> None:
    """What somebody put there is what they mean, and nobody is asked."""
    (tmp_path / named).mkdir(parents=True)
    hub = ScriptedHub(tmp_path)

    assert find_weights(named, tmp_path, hub) == FoundWeights(
        (tmp_path / named).resolve(), named.name
    )
    assert hub.asked == []
    assert name_of_weights(named, tmp_path) == named.name


def test_a_revision_of_a_folder_is_refused(tmp_path: Path) -> None:
    """It would be ignored without a word."""
    (tmp_path / NAMED).mkdir(parents=True)

    with pytest.raises(WeightsError, match=r"@v1 is for names on the Hub, and org/tune-step_50 is"):
        find_weights(Path(f"{NAMED}@v1"), tmp_path, ScriptedHub(tmp_path))


@pytest.mark.parametrize("named", ["base", "./org/a/b", "../org/name", "/org/name", "a/b/c", "ö/b"])
def test_what_is_clearly_a_path_is_not_asked_for(tmp_path: Path, named: str) -> None:
    """The names of somebody's folders are nobody else's business."""
    hub = ScriptedHub(tmp_path)

    assert find_weights(Path(named), tmp_path, hub).folder == (tmp_path / named).resolve()
    assert find_weights(NAMED, tmp_path, None).folder == (tmp_path / NAMED).resolve()
    assert hub.asked == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (NotFetched("the Hub has no it", "correct it"), ", and the Hub has no it; correct it"),
        (NO_CLIENT, f"; correct the path; {NAMED} is not looked up on the Hub: {NO_CLIENT}"),
    ],
)
def test_neither_a_folder_nor_a_name_is_told_both_ways(
    tmp_path: Path, fault: Exception, told: str
) -> None:
    """Only the user knows which of the two was meant."""
    whole = f"{tmp_path / NAMED}: there is no such folder of weights{told}"

    with pytest.raises(WeightsError, match=f"^{re.escape(whole)}$"):
        find_weights(NAMED, tmp_path, ScriptedHub(tmp_path, fault))
