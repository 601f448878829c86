"""A data set by its address: the real package asks a fake Hub on loopback, or its own cache."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from commands.backends.wiring import open_dataset
from commands.cli.shared.workspace import workspace
from commands.errors import ConfigurationError
from commands.importing.formats.parquet import parquet_content
from commands.importing.formats.rows import Record
from commands.settings.hub_dataset import hub_dataset
from tests.providers.hub import MAIN, FakeHub, Repository
from tests.support.builders.commands import write_rubric

SET = "hf://datasets/org/set"
CLIENTS = ("huggingface_hub.constants", "datasets.config")


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    """Give a data set of two splits on the Hub; the package reads its variables when imported."""
    with warnings.catch_warnings(action="ignore"):
        import_module("datasets.packaged_modules.cache.cache")
    with FakeHub() as hub:
        resolved = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        for name, value in {
            **{f"{each}.HF_HUB_OFFLINE": False for each in CLIENTS},
            "huggingface_hub.constants.ENDPOINT": hub.endpoint,
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE": resolved,
            "huggingface_hub.constants.HF_HUB_CACHE": str(tmp_path / "hub"),
            "datasets.config.HF_ENDPOINT": hub.endpoint,
            "datasets.config.HF_DATASETS_CACHE": tmp_path / "datasets",
        }.items():
            monkeypatch.setattr(name, value)
        yield hub.repositories.setdefault("org/set", Repository())


def parquet(*questions: str) -> bytes:
    """Return the content of a file of questions."""
    return parquet_content({"question": str}, ({"question": each} for each in questions))


def questions(query: str) -> list[object]:
    """Return the questions that an address chooses."""
    wanted = hub_dataset(SET + query)
    assert wanted is not None
    rows = open_dataset(wanted).rows
    return [row.fields["question"] for row in rows if isinstance(row, Record)]


def go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid the clients to ask anybody."""
    for each in CLIENTS:
        monkeypatch.setattr(f"{each}.HF_HUB_OFFLINE", True)


def test_split_and_revision_are_those_of_the_address(repository: Repository) -> None:
    """A slice of a split is one, too: a bank need not be the whole data set."""
    repository.commit({"train.parquet": parquet("A?"), "test.parquet": parquet("B?", "C?")}, "v1")
    repository.commit({"train.parquet": parquet("D?")}, MAIN)

    assert questions("@v1?split=test") == ["B?", "C?"]
    assert questions("@v1?split=test[:1]") == ["B?"]
    assert questions("") == ["D?"]
    for query, why in {
        "@v1": r"it has the splits train, test; choose one, as \?split=test",
        "@v1?split=tset": "Unknown split",
        "@v2": "Revision 'v2' doesn't exist",
    }.items():
        with pytest.raises(ConfigurationError, match=why):
            questions(query)
    with pytest.raises(ConfigurationError, match="doesn't exist on the Hub"):
        questions("2")


def test_the_cache_answers_without_a_network_but_never_with_another_revision(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package takes the newest that it has: a pinned bank would change without a word."""
    pinned = repository.commit({"test.parquet": parquet("B?")}, "v1", MAIN)
    assert questions("@v1?split=test") == ["B?"]
    go_offline(monkeypatch)

    assert questions(f"@{pinned}?split=test") == questions("?split=test") == ["B?"]
    for revision in ("v1", "0" * 40):
        with pytest.raises(ConfigurationError, match=f"has commit {pinned}; connect, or name"):
            questions(f"@{revision}?split=test")


def test_a_tournament_has_the_prompts_of_a_data_set_and_its_address(
    repository: Repository, tmp_path: Path
) -> None:
    """They are content like any other; their source is the data set."""
    asked = parquet_content({"ask": str, "answer": str}, [{"ask": "Why?", "answer": "So."}])
    repository.commit({"test.parquet": asked}, "v1")
    address = f"{SET}@v1?split=test&text=ask"
    settings = tmp_path / "tournament.toml"
    entrants = "".join(
        f'[[entrants]]\nid = "{each}"\nloader = "recorded"\nresponses = "answers.csv"\n'
        for each in ("terse", "wordy")
    )
    settings.write_text(
        f'[tournament]\nid = "hub"\n[prompts]\nbank = "{address}"\n{entrants}'
        '[[rubrics]]\ndimension = "factuality"\npath = "rubric.md"\n'
    )
    write_rubric(tmp_path / "rubric.md")
    (tmp_path / "answers.csv").write_text("prompt,response\nWhy?,So.\n")

    opening = workspace(settings, None).opening

    assert [(each.text, each.gold_answer, each.source) for each in opening.bank] == [
        ("Why?", "So.", "org/set")
    ]
    assert address in opening.opening.configuration
