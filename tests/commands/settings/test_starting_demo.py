"""The demo is laid out whole, and over nothing that is there."""

import shutil
from pathlib import Path

import pytest

from commands.backends.wiring import READERS
from commands.errors import ConfigurationError
from commands.evaluating.registry import EvaluationSources, table_evaluations
from commands.settings.inputs import read_bank, shipped_data
from commands.settings.reader import read_settings
from commands.settings.starting import lay_out_demo


def names(folder: Path) -> set[str]:
    """Return the files directly in a folder."""
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_the_demonstration_is_a_tournament_that_can_be_run(tmp_path: Path) -> None:
    """What its settings name was laid out; what the weights were trained on was not."""
    lay_out_demo(tmp_path)

    settings = read_settings(tmp_path / "tournament.toml", {})
    bank = read_bank(tmp_path / settings.prompts.bank)
    sources = EvaluationSources(tmp_path, bank, READERS)
    made = [each for table in settings.evaluations for each in table_evaluations(table, sources)]

    assert names(tmp_path) == {"tournament.toml", "bank.jsonl", "distractors.jsonl"}
    assert "train.py" in names(shipped_data() / "quickstart")
    assert len(bank) == 143
    assert all((tmp_path / rubric.path).is_file() for rubric in settings.rubrics)
    assert settings.judge.instructions == Path("rubrics/judge_medical.md")
    assert (tmp_path / settings.judge.instructions).is_file()
    assert [each.kind for each in made] == ["rollout", "rollout", "perplexity"]
    n_items = [
        len(each.samples(section.options))
        for each, section in zip(made, settings.evaluations, strict=True)
    ]
    assert n_items == [24, 69, 6]


def test_a_tournament_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """A second `tourney demo` goes on with the first one's ledger."""
    (tmp_path / "tournament.toml").write_text("mine", encoding="utf-8")

    lay_out_demo(tmp_path)

    assert names(tmp_path) == {"tournament.toml"}


def test_without_weights_the_entrants_are_recorded_answers(tmp_path: Path) -> None:
    """A first look needs neither PyTorch nor the weights; it rates the same four entrants."""
    lay_out_demo(tmp_path / "weights")
    lay_out_demo(tmp_path / "look", weights=False)

    generating, recorded = (
        read_settings(tmp_path / name / "tournament.toml", {}) for name in ("weights", "look")
    )

    assert names(tmp_path / "look") == {
        "tournament.toml",
        "answers.csv",
        "bank.jsonl",
        "distractors.jsonl",
    }
    assert [each.id for each in recorded.entrants] == [each.id for each in generating.entrants]
    assert {each.loader for each in recorded.entrants} == {"recorded"}
    assert (recorded.judge, recorded.elo) == (generating.judge, generating.elo)


def test_what_is_no_such_demo_is_refused(tmp_path: Path) -> None:
    """One without weights holds other entrants; nobody wants a tournament among photographs."""
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    (photographs / "one.jpg").touch()
    lay_out_demo(tmp_path / "look", weights=False)

    with pytest.raises(ConfigurationError, match="is a demo without weights; name a new folder"):
        lay_out_demo(tmp_path / "look")
    with pytest.raises(ConfigurationError, match="exists and is not a demo; name a new folder"):
        lay_out_demo(photographs)

    assert names(photographs) == {"one.jpg"}


def test_a_demo_holds_no_code_that_pip_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a wheel the scripts that trained the weights lie beside them, and are compiled."""
    shipped = shutil.copytree(shipped_data(), tmp_path / "shipped")
    compiled = shipped / "quickstart" / "__pycache__"
    compiled.mkdir(exist_ok=True)
    (compiled / "train.cpython-311.pyc").write_bytes(b"compiled")
    monkeypatch.setattr("commands.settings.starting.shipped_data", lambda: shipped)

    lay_out_demo(tmp_path / "demo")

    assert (tmp_path / "demo" / "tournament.toml").exists()
    assert not list((tmp_path / "demo").rglob("*.pyc"))
