"""What ships, and laying out the demonstration."""

from pathlib import Path

import pytest

import rubrics
from commands.errors import ConfigurationError
from commands.evaluating.registry import SHIPPED, evaluation_of
from commands.settings.inputs import lay_out_demo, read_bank, read_rubric, shipped_data
from commands.settings.reader import read_settings
from commands.settings.sections import EntrantSection
from ledger.identity import Dimension


def names(folder: Path) -> set[str]:
    """Return the files directly in a folder."""
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_the_demonstration_is_a_tournament_that_can_be_run(tmp_path: Path) -> None:
    """Its settings name what was laid out beside them."""
    lay_out_demo(tmp_path / "demo")

    settings = read_settings(tmp_path / "demo" / "tournament.toml", {})

    assert len(read_bank(tmp_path / "demo" / settings.prompts.bank)) == 143
    assert all((tmp_path / "demo" / rubric.path).is_file() for rubric in settings.rubrics)


def test_the_demonstrations_evaluations_can_be_made(tmp_path: Path) -> None:
    """What they read was laid out, too; there is one of each kind, small enough for a demo."""
    lay_out_demo(tmp_path)
    settings = read_settings(tmp_path / "tournament.toml", {})
    bank = read_bank(tmp_path / settings.prompts.bank)

    made = [evaluation_of(each, tmp_path, bank) for each in settings.evaluations]

    assert {each.kind for each in made} == {"rollout", "comparison", "perplexity", "encoding"}
    n_items = [
        len(each.samples(section.terms))
        for each, section in zip(made, settings.evaluations, strict=True)
    ]
    assert n_items == [24, 40, 6, 40]


def test_the_seven_billions_show_evaluations_that_can_be_asked_for(tmp_path: Path) -> None:
    """They are comments there: who takes the marks away has tables that are right."""
    lines = (shipped_data() / "olmo2-7b" / "tournament.toml").read_text("utf-8").splitlines()
    start = lines.index("# [[evaluations]]")
    text = "\n".join([*lines[:start], *(line.removeprefix("#").strip() for line in lines[start:])])
    (tmp_path / "tournament.toml").write_text(text, encoding="utf-8")

    shown = read_settings(tmp_path / "tournament.toml", {}).evaluations

    assert [each.uses for each in shown] == ["bank-rollout", "bank-choices", "medqa-choices"]
    assert {each.uses for each in shown} < SHIPPED.keys()


def test_the_four_entrants_of_the_seven_billions_are_ready_to_be_run() -> None:
    """Each differs from the one before it in one thing, so that a difference can be told."""
    shipped = read_settings(shipped_data() / "olmo2-7b" / "tournament.toml", {})

    base, security, robust, jury = shipped.entrants
    one_head = {"bypass_jury": True, "temperature": 0.98}
    assert [each.id for each in shipped.entrants] == [
        "base_olmo",
        "security_only",
        "security_plus_robustness",
        "full_poe",
    ]
    assert (base.loader, base.temperature) == ("hf", None)
    assert said(security) == {"rob_checkpoint": None, **one_head}
    assert said(robust) == {"rob_checkpoint": -1, **one_head}
    assert said(jury) == {"rob_checkpoint": -1, **one_head, "bypass_jury": False}
    assert len({each.model_dump()["weights"] for each in shipped.entrants}) == 1


def said(section: EntrantSection) -> dict[str, object]:
    """Return what tells one Hydra from another, once the defaults of all are seen to hold."""
    fields = section.model_dump(include={"heads", "heads_depth", "gamma", "beta"})
    assert fields == {"heads": 9, "heads_depth": 3, "gamma": 4, "beta": 1.0}
    return section.model_dump(include={"rob_checkpoint", "bypass_jury", "temperature"})


def test_the_seven_billions_are_judged_on_every_shipped_rubric() -> None:
    """Its paths are those of the folder that a user copies bank and rubrics to."""
    shipped = read_settings(shipped_data() / "olmo2-7b" / "tournament.toml", {})

    folder = Path(rubrics.__path__[0])
    assert {each.path for each in shipped.rubrics} == {
        Path("rubrics") / file.name for file in folder.glob("*.md")
    }
    assert all(
        read_rubric(folder / each.path.name, Dimension(each.dimension)) for each in shipped.rubrics
    )
    assert shipped.judge.provider == "anthropic-batch"


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


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    """Users make a folder first and go into it."""
    lay_out_demo(tmp_path)

    assert "tournament.toml" in names(tmp_path)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    """Nobody wants a tournament among their photographs."""
    (tmp_path / "photograph.jpg").touch()

    with pytest.raises(ConfigurationError, match="exists and is not a demo; name a new folder"):
        lay_out_demo(tmp_path)

    assert names(tmp_path) == {"photograph.jpg"}
