"""Registering: everything that the settings name is read and checked, then opened at once."""

import json
from pathlib import Path

import pytest

from commands.decisions.commands import OpenTournament
from commands.errors import ConfigurationError
from commands.runs.workspace import notes_on_twins, opening_of
from commands.settings.inputs import read_instructions
from commands.settings.schema import JudgeSection, Settings
from ledger.events.registration import Instructions
from ledger.events.values import type_name
from ledger.identity import Digest
from projections.tournament.matches import planned_responses
from tests.support.builders.commands import (
    LORA_SHAPES,
    P1,
    P2,
    entrant_section,
    lay_out,
    record,
    settings,
    write_bank,
    write_rubric,
    write_weights,
)
from tests.support.specification import after

VERSIONS = [("tourney", "0.1.0")]
"""What these settings were recorded as when there were none to be configured."""


def opening(folder: Path, chosen: Settings | None = None) -> OpenTournament:
    """Read a folder as the settings say."""
    return opening_of(chosen or settings(), folder, VERSIONS)


def faults(folder: Path, chosen: Settings | None = None) -> tuple[str, ...]:
    """Return what is wrong, without the folder's name."""
    with pytest.raises(ConfigurationError) as caught:
        opening(folder, chosen)
    return tuple(fault.replace(f"{folder}/", "") for fault in caught.value.faults)


def response_keys(command: OpenTournament) -> list[Digest]:
    """Return the keys of all responses that an opening wants."""
    state = after(command.opening, *command.registrations)
    return [cell.response_key for cell in planned_responses(state, [P1, P2])]


def test_everything_that_the_settings_name_is_registered(tmp_path: Path) -> None:
    """The opening refers to each thing by label and content, in the order of the settings."""
    command = opening(lay_out(tmp_path))

    assert [type_name(event) for event in command.registrations] == [
        "PromptRegistered",
        "PromptRegistered",
        "RubricRegistered",
        "EntrantRegistered",
        "EntrantRegistered",
        "JudgeRegistered",
    ]
    registered = tuple(event.reference for event in command.registrations)
    named = command.opening
    assert registered == (*named.prompts, *named.rubrics, *named.entrants, *named.judges)


def test_the_opening_keeps_the_whole_configuration(tmp_path: Path) -> None:
    """The file may be edited later; what was run must still be told."""
    named = opening(lay_out(tmp_path)).opening

    configuration = json.loads(named.configuration)
    assert configuration["judge"] == JudgeSection().model_dump(mode="json")
    assert configuration["judge"].items() >= {"provider": "reference", "retries": 1}.items()
    assert configuration["entrants"][0]["weights"] == "weights/base"
    assert named.versions == (("tourney", "0.1.0"),)


def test_the_opening_keeps_the_instructions_whole(tmp_path: Path) -> None:
    """The file may be edited later; each query must still be built as it was asked."""
    text = "<!-- version: 3 -->\n\nSay which answer is funnier.\n"
    (lay_out(tmp_path) / "rubrics" / "judge.md").write_text(text, encoding="utf-8")

    named = opening(tmp_path, settings(judge={"instructions": "rubrics/judge.md"})).opening

    assert named.instructions == Instructions(version="3", text=text)


def test_instructions_that_nobody_names_are_the_shipped_ones(tmp_path: Path) -> None:
    """They speak of no subject, so they fit every bank."""
    assert opening(lay_out(tmp_path)).opening.instructions == read_instructions(None)


def test_an_entrant_is_registered_with_its_adapters(tmp_path: Path) -> None:
    """Adapters are merged in the order of the settings, so the order is part of the entrant."""
    write_weights(lay_out(tmp_path) / "lora", LORA_SHAPES)
    adapted = entrant_section("adapted", weights="weights/base", adapters=["lora"])

    command = opening(tmp_path, settings(entrants=[entrant_section("base"), adapted]))

    entrants = after(command.opening, *command.registrations).roster
    assert [adapter.path for adapter in entrants[1].adapters] == [str(tmp_path / "lora")]
    assert entrants[0].weights_digest == entrants[1].weights_digest
    assert entrants[0].digest != entrants[1].digest


def test_moving_the_weights_keeps_the_response_keys(tmp_path: Path) -> None:
    """A larger disk is no reason to generate everything again."""
    before = opening(lay_out(tmp_path))
    (tmp_path / "weights").rename(tmp_path / "moved")
    moved = [entrant_section(name, weights=f"moved/{name}") for name in ("base", "tuned")]

    now = opening(tmp_path, settings(entrants=moved))

    assert now.opening.entrants != before.opening.entrants
    assert response_keys(now) == response_keys(before)


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """A user who mends one fault a run sees the same screen five times."""
    lay_out(tmp_path)
    write_bank(tmp_path / "bank.jsonl", [record("p1"), record("p1")])
    wrong_rubrics = [{"dimension": name, "path": f"{name}.md"} for name in ("a", "b")]
    wrong_entrants = [entrant_section("x"), entrant_section("base"), entrant_section("y")]

    wrong_judge = {"instructions": "none.md", "prices": "none.toml"}

    chosen = settings(rubrics=wrong_rubrics, entrants=wrong_entrants, judge=wrong_judge)
    found = faults(tmp_path, chosen)

    assert [fault.partition(" ")[0] for fault in found] == [
        "bank.jsonl:2:",
        "a.md:",
        "b.md:",
        "none.md:",
        "entrant",
        "entrant",
        "none.toml:",
    ]
    beside = " (paths start beside the settings)"
    assert [fault.partition(": ")[2] for fault in (found[1], found[3], found[6])] == [
        f"there is no such rubric; correct [[rubrics]] path{beside}",
        f"there is no such file of instructions; correct [judge] instructions{beside}",
        f"there is no such price table; correct [judge] prices{beside}",
    ]
    assert found[4].startswith("entrant 'x': weights/x: there is no such folder")
    assert found[5].startswith("entrant 'y': weights/y: there is no such folder")


def test_a_price_table_that_is_none_is_told_with_the_rest(tmp_path: Path) -> None:
    """It would be found only when the first query is to be paid."""
    lay_out(tmp_path)
    (tmp_path / "prices.toml").write_text("date = 2026-01-01\n")

    found = faults(tmp_path, settings(judge={"prices": "prices.toml"}))

    lacking = ("batch_factor", "cache_write_5m_factor", "cache_write_1h_factor", "models")
    assert found == ("\n".join(f"prices.toml: {key!r} is missing" for key in lacking),)


def test_entrants_that_are_alike_are_noted(tmp_path: Path) -> None:
    """Whoever copied a table and forgot to change it learns it before anything is paid."""
    alike = entrant_section("third", weights="weights/base")
    chosen = settings(entrants=[entrant_section("base"), entrant_section("tuned"), alike])

    notes = [*notes_on_twins(opening(lay_out(tmp_path), chosen))]

    (note,) = notes
    assert note == (
        "third has the same configuration as base, so it gets the same responses;"
        " change it, or remove it"
    )


def test_the_offline_judge_refuses_a_dimension_without_gold(tmp_path: Path) -> None:
    """It compares letters with the gold answer; without one it would have to invent a verdict."""
    write_rubric(lay_out(tmp_path) / "rubrics" / "calibration.md", front="needs_gold = false")
    both = [
        {"dimension": name, "path": f"rubrics/{name}.md"} for name in ("factuality", "calibration")
    ]

    (found,) = faults(tmp_path, settings(rubrics=both))

    assert found == (
        "[[rubrics]] 'calibration' does not use gold answers, but provider 'reference' of"
        " [judge] needs them; set needs_gold = true in the rubric, or set another `provider` in"
        " [judge] ('reference' is the default)"
    )


def test_a_juror_that_compares_with_gold_refuses_the_dimension_too(tmp_path: Path) -> None:
    """A juror's provider left out is the offline one, which was asked all the same, and fell."""
    rubric = write_rubric(lay_out(tmp_path) / "rubrics" / "style.md", front="needs_gold = false")
    judge = {"provider": "endpoint", "base_url": "http://localhost:8000/v1"}
    chosen = settings(
        rubrics=[{"dimension": "style", "path": f"rubrics/{rubric.name}"}],
        judge=judge,
        jury=[{"id": "second", "model": "org/judge", **judge}, {"id": "third", "model": "chrF2"}],
    )

    (found,) = faults(tmp_path, chosen)

    assert found.startswith(
        "[[rubrics]] 'style' does not use gold answers, but provider 'reference' of"
        " [[jury]] 'third' needs them; "
    )
