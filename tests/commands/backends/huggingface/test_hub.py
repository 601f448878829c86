"""Weights by name: the real client of the Hub asks a fake on loopback, or its own cache."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from commands.backends.huggingface.hub import fetch_snapshot
from commands.entrants.weights import folder_digest
from commands.errors import NotFetched
from tests.providers.hub import MAIN, FakeHub, Repository, files_of
from tests.support.builders.commands import write_olmo

NAME = "org/olmo"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """Give a Hub on loopback, and an empty cache; the client reads its variables when imported."""
    with FakeHub() as fake:
        monkeypatch.setattr(constants, "ENDPOINT", fake.endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{fake.endpoint}/{_RESOLVED}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # theirs
        yield fake


_RESOLVED = "{repo_id}/resolve/{revision}/{filename}"


@pytest.fixture
def olmo(hub: FakeHub, tmp_path: Path) -> Repository:
    """Give a model on the Hub, of the files of the folder `local` here, and of others."""
    files = files_of(write_olmo(tmp_path / "local"))
    others = {"pytorch_model.bin": b"pickle", "README.md": b"#", "onnx/config.json": b"{}"}
    repository = hub.repositories[NAME] = Repository()
    repository.commit(files | others, MAIN)
    return repository


def go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid the client to ask anybody."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # theirs


def test_weights_by_name_have_the_digest_of_the_same_folder(
    hub: FakeHub, olmo: Repository, tmp_path: Path
) -> None:
    """Whoever has downloaded them is asked nothing again; a pickle is not even fetched."""
    found = fetch_snapshot(NAME, None)

    assert found.commit == olmo.at(MAIN)
    assert folder_digest(found.folder) == folder_digest(tmp_path / "local")
    assert sorted(hub.fetched) == ["config.json", "model.safetensors"]


def test_a_revision_is_the_commit_that_it_names(olmo: Repository) -> None:
    """A branch moves on; a tag and a commit stay."""
    first = olmo.at(MAIN)
    assert first
    olmo.refs["v1"] = first
    second = olmo.commit({"config.json": b"{}"}, MAIN)

    named = [fetch_snapshot(NAME, each).commit for each in (None, MAIN, "v1", first, second)]

    assert named == [second, second, first, first, second]


def test_the_cache_answers_if_the_hub_cannot_or_may_not_be_asked(
    hub: FakeHub, olmo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that is down is noticed without a variable; HF_HUB_OFFLINE says so beforehand."""
    before = fetch_snapshot(NAME, None)
    olmo.commit({}, MAIN)
    hub.fetched.clear()
    go_offline(monkeypatch)

    assert fetch_snapshot(NAME, None) == fetch_snapshot(NAME, before.commit) == before
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    assert fetch_snapshot(NAME, None) == before
    assert hub.fetched == []


@pytest.mark.parametrize(
    ("name", "revision", "why"),
    [
        ("org/none", None, "the Hub has no org/none, or it is private; .* log in with `hf auth"),
        ("org/gated", None, "org/gated on the Hub is gated, and you have no access; ask for"),
        (NAME, "v9", "org/olmo on the Hub has no revision 'v9'; name a branch"),
        ("org/o--n", None, "org/o--n can be no name on the Hub; correct the path"),
    ],
)
@pytest.mark.usefixtures("olmo")
def test_what_the_hub_does_not_give_is_told_in_a_line(
    hub: FakeHub, name: str, revision: str | None, why: str
) -> None:
    """The client's own messages have many lines, and addresses."""
    hub.repositories["org/gated"] = Repository(is_gated=True)

    with pytest.raises(NotFetched, match=why) as told:
        fetch_snapshot(name, revision)

    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize("revision", [None, "v1"])
@pytest.mark.usefixtures("hub")
def test_an_empty_cache_without_a_network_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, revision: str | None
) -> None:
    """With the reason, as the variable may be forgotten in a profile."""
    at = f" at revision {revision!r}" if revision else ""
    command = f"hf download {NAME}{' --revision v1' if revision else ''}"
    once = f"correct the path, or connect to the Hub once, as by `{command}`"
    rest = f"and its cache has no {NAME}{at}; {once}"
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")

    with pytest.raises(NotFetched, match=re.escape(f"the Hub cannot be reached {rest}")):
        fetch_snapshot(NAME, revision)

    go_offline(monkeypatch)
    with pytest.raises(NotFetched, match=re.escape(f"HF_HUB_OFFLINE is set {rest}")):
        fetch_snapshot(NAME, revision)


def test_a_fetch_that_breaks_off_is_told_in_a_line(
    olmo: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was fetched stays in the cache, and the same command goes on."""
    olmo.is_withheld = True

    with pytest.raises(NotFetched, match=f"{NAME} cannot be fetched from the Hub: 403 For") as told:
        fetch_snapshot(NAME, None)

    assert len(str(told.value).splitlines()) == 1
    olmo.is_withheld = False
    assert fetch_snapshot(NAME, None).commit == olmo.at(MAIN)
    assert capsys.readouterr() == ("", "")  # no bar, as this is no terminal
