"""Where a key stands in a TOML text, and what is read of one without the schema."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings import toml as environment
from commands.settings.toml import (
    Location,
    TournamentLocation,
    allows_network,
    line_of,
    read_toml,
    tournament_location,
)

TOO_MUCH = [
    ("[" * 10_000, "nested too deeply"),
    ("{a=" * 10_000, "nested too deeply"),
    ("1" * 5_000, "a number has too many digits"),
]

TEXT = '''\
title = "x"
[tournament]
id = "main"
description = """
[elo]
k = 1
"""
"quoted" = 1
'literal' = 2

[elo]
k_sweep = [
  1,
  "x",
]
k = 2

[[entrants]]
id = "base"

  [[ entrants ]]
  id = "tuned"
  weights = "w"

[pilot]
strata = { recall = 1 }
[pilot . inner]
size = 3
'''


def found(*location: int | str, text: str = TEXT) -> str:
    """Return the text of the line where something stands."""
    place: Location = location
    return text.split("\n")[line_of(text, place) - 1].strip()


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("title",), 'title = "x"'),
        (("tournament", "id"), 'id = "main"'),
        (("tournament", "quoted"), '"quoted" = 1'),
        (("tournament", "literal"), "'literal' = 2"),
        (("elo", "k"), "k = 2"),
        (("elo", "permutations"), "[elo]"),  # the table is the place to add it
        (("elo", "k_sweep", 1), "k_sweep = ["),
        (("entrants", 0, "id"), 'id = "base"'),
        (("entrants", 1, "id"), 'id = "tuned"'),
        (("entrants", 1, "adapters"), "[[ entrants ]]"),
        (("pilot", "strata", "recall"), "strata = { recall = 1 }"),
        (("pilot", "inner", "size"), "size = 3"),
    ],
)
def test_a_key_is_found_in_its_own_table(location: Location, line: str) -> None:
    """Several tables may have a key of the same name, however each is written."""
    assert found(*location) == line


def test_a_header_inside_a_long_text_is_no_header() -> None:
    """A description may quote a configuration; what is nowhere is told at the first line."""
    assert line_of(TEXT, ("elo",)) == TEXT.split("\n").index("k_sweep = [")
    assert found("entrants", 3, text="\nentrants = []") == "entrants = []"
    assert line_of(TEXT, ("rubrics",)) == 1


@pytest.mark.parametrize(("value", "why"), TOO_MUCH)
def test_more_than_settings_say_is_no_toml(tmp_path: Path, value: str, why: str) -> None:
    """Such a file is somebody else's, or broken; in a variable it is a text like any other."""
    path = tmp_path / "tournament.toml"
    path.write_text(f"k = {value}")

    with pytest.raises(ConfigurationError) as caught:
        read_toml(path)

    assert str(caught.value) == f"{path}: not TOML: {why}"
    assert environment.value(value) == value


def test_the_mark_of_an_editor_is_no_part_of_the_settings(tmp_path: Path) -> None:
    """Editors on Windows write one; PowerShell another encoding, which is told its remedy."""
    path = tmp_path / "tournament.toml"
    path.write_text("k = 1\n", encoding="utf-8-sig")

    assert read_toml(path) == ("k = 1\n", {"k": 1})
    path.write_text("k = 1\n", encoding="utf-16")
    with pytest.raises(ConfigurationError, match=r"cannot be read: .*; save it as UTF-8$"):
        read_toml(path)


def kept(folder: Path, text: str, **environ: str) -> TournamentLocation:
    """Return where settings keep the tournament."""
    path = folder / "tournament.toml"
    path.write_text(text, encoding="utf-8")
    return tournament_location(path, environ)


@pytest.mark.parametrize(
    ("added", "environ", "file"),
    [
        ("", {}, "tournament.db"),
        ('ledger = "y.db"\n[elo]\nk = "much"\n[[entrants]]\n', {}, "y.db"),
        ("", {"TOURNEY_TOURNAMENT_LEDGER": "7"}, "7"),
    ],
    ids=["usual", "others under repair", "environment"],
)
def test_a_ledger_is_found_without_the_other_sections(
    tmp_path: Path, added: str, environ: dict[str, str], file: str
) -> None:
    """Standings are looked at while somebody edits the entrants of the next run."""
    found = kept(tmp_path, f'[tournament]\nid = "x"\n{added}', **environ)

    assert found == TournamentLocation("x", tmp_path / file)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[tournament]\nledger = 3\nid = "x"', r"toml:2: 'tournament\.ledger' must be a text"),
        ("", r"tournament\.toml:1: 'tournament\.id' is missing"),
        ("[tournament", r"tournament\.toml: not TOML"),
        ("tournament = 3", r"tournament\.toml:1: 'tournament' must be a table"),
        ('[[tournament]]\nid = "x"', r"tournament\.toml:1: 'tournament' must be a table"),
    ],
)
def test_a_tournament_that_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str, fault: str
) -> None:
    """The user is in the editor already."""
    with pytest.raises(ConfigurationError, match=fault):
        kept(tmp_path, text)


@pytest.mark.parametrize(("said", "allows"), [("true", True), ("1", True), ("no", False)])
def test_a_machine_may_allow_a_ledger_on_its_network(said: str, *, allows: bool) -> None:
    """It is no matter of the tournament."""
    assert allows_network({"TOURNEY_NETWORK_LEDGER": said}) is allows
    assert not allows_network({})
