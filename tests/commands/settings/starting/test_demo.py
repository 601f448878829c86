"""The demo is laid out whole, and over nothing that is there."""

import shutil
from pathlib import Path

import pytest

from commands.backends.wiring import READERS
from commands.errors import ConfigurationError
from commands.evaluating.registry import EvaluationSources, table_evaluations
from commands.settings.inputs import read_bank, shipped_data
from commands.settings.reader import read_settings
from commands.settings.starting.demo import lay_out_demo


def names(folder: Path) -> set[str]:
    """Return the files directly in a folder."""
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_the_demonstration_is_a_tournament_that_can_be_run(tmp_path: Path) -> None:
    """Its settings name what was laid out beside them."""
    lay_out_demo(tmp_path / "demo")

    settings = read_settings(tmp_path / "demo" / "tournament.toml", {})

    assert len(read_bank(tmp_path / "demo" / settings.prompts.bank)) == 143
    assert all((tmp_path / "demo" / rubric.path).is_file() for rubric in settings.rubrics)
    assert settings.judge.instructions == Path("rubrics/judge_medical.md")
    assert (tmp_path / "demo" / settings.judge.instructions).is_file()


def test_the_demonstrations_evaluations_can_be_made(tmp_path: Path) -> None:
    """What they read was laid out, too; they are small enough for a demo."""
    lay_out_demo(tmp_path)
    settings = read_settings(tmp_path / "tournament.toml", {})
    bank = read_bank(tmp_path / settings.prompts.bank)

    sources = EvaluationSources(tmp_path, bank, READERS)
    made = [each for table in settings.evaluations for each in table_evaluations(table, sources)]

    assert [each.kind for each in made] == ["rollout", "rollout", "perplexity"]
    n_items = [
        len(each.samples(section.options))
        for each, section in zip(made, settings.evaluations, strict=True)
    ]
    assert n_items == [24, 69, 6]


def test_what_the_weights_were_trained_on_is_not_laid_out(tmp_path: Path) -> None:
    """A user who runs the demonstration has no use for it."""
    lay_out_demo(tmp_path / "demo")

    assert names(tmp_path / "demo") == {
        "tournament.toml",
        "bank.jsonl",
        "distractors.jsonl",
    }
    assert "train.py" in names(shipped_data() / "quickstart")


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


def test_a_demo_without_weights_does_not_become_one_with_them(tmp_path: Path) -> None:
    """Its ledger holds other entrants."""
    lay_out_demo(tmp_path, weights=False)

    with pytest.raises(ConfigurationError, match="is a demo without weights; name a new folder"):
        lay_out_demo(tmp_path)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    """Nobody wants a tournament among their photographs."""
    (tmp_path / "photograph.jpg").touch()

    with pytest.raises(ConfigurationError, match="exists and is not a demo; name a new folder"):
        lay_out_demo(tmp_path)

    assert names(tmp_path) == {"photograph.jpg"}


def test_a_demo_holds_no_code_that_pip_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a wheel the scripts that trained the weights lie beside them, and are compiled."""
    shipped = shutil.copytree(shipped_data(), tmp_path / "shipped")
    compiled = shipped / "quickstart" / "__pycache__"
    compiled.mkdir(exist_ok=True)
    (compiled / "train.cpython-311.pyc").write_bytes(b"compiled")
    monkeypatch.setattr("commands.settings.starting.demo.shipped_data", lambda: shipped)

    lay_out_demo(tmp_path / "demo")

    assert (tmp_path / "demo" / "tournament.toml").exists()
    assert not list((tmp_path / "demo").rglob("*.pyc"))
