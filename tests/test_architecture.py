"""What the folders promise, checked on the running program."""

import ast
import gc
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from commands.cli.app import COMMANDS
from tests.docs.command_line import leaves

ROOT = Path(__file__).parent.parent
ENTRIES = [entry for entries in COMMANDS.values() for entry in entries]
CALLED_BY_LIBRARIES = {
    "_repr_html_",
    "format_commands",
    "get_seq_length",
    "on_broken_pipe",
    "log_message",
    "version_string",
}
HEAVY = ("torch", "transformers", "peft", "ray", "anthropic", "openai", "sacrebleu", "pyarrow")


LINES = ("--help", "project --help", "status", "project elo --k 16", "report", "verify", "log")
CODE = f"""
import sys
from commands.cli.app import main
for line in {LINES}:
    sys.argv = ["tourney", *line.split()]
    try:
        main()
    except SystemExit:
        pass
    print(line, *sys.modules, sep="\\t", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Give what a fresh interpreter has imported after each command line, and those before it."""
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=tmp_path_factory.mktemp("empty"),
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line.split("\t") for line in done.stderr.splitlines() if "\t" in line]
    return {line: set(modules) for line, *modules in told}


def test_a_reading_command_imports_no_heavy_package(imported: dict[str, set[str]]) -> None:
    """Help and projections answer at once because they never wait for torch or an SDK."""
    assert {"commands.cli.project.elo", "commands.cli.audit"} <= imported["log"]
    assert imported["log"].isdisjoint(HEAVY)


def test_a_list_of_commands_imports_none_of_them(imported: dict[str, set[str]]) -> None:
    """What there is to choose from is shown without importing what it needs."""
    found = imported["project --help"]

    assert "commands.cli.app" in found
    assert not {name for name in found if name.startswith(("projections", "numpy", "pydantic"))}


def test_status_waits_for_no_arithmetic(imported: dict[str, set[str]]) -> None:
    """Counting events needs neither arrays nor the schema of the settings."""
    assert "commands.cli.project.status" in imported["status"]
    assert imported["status"].isdisjoint({"numpy", "pydantic", "sqlite_utils"})


def test_elo_waits_for_no_other_projection(imported: dict[str, set[str]]) -> None:
    """The imports of its neighbours would be a tenth of its start."""
    found = imported["project elo --k 16"]

    assert "commands.cli.project.elo" in found
    assert found.isdisjoint(
        {
            "projections.ratings.bradley_terry.rate",
            "projections.evaluations.metrics",
            "commands.spending.budget",
            "sqlite_utils",
        }
    )


def test_a_report_waits_for_no_settings(imported: dict[str, set[str]]) -> None:
    """What checks settings files takes a third as long to import as all else that it needs."""
    found = imported["report"]

    assert "commands.report.page" in found
    assert found.isdisjoint({"pydantic", "commands.backends.wiring", "commands.settings.schema"})


def test_every_command_has_help_with_an_example() -> None:
    """Help is the documentation that is at hand when a command is needed."""
    found = leaves()

    assert len(found) > len(ENTRIES)
    assert not [leaf.name for leaf in found if "Example: tourney" not in (leaf.command.help or "")]


def test_packages_export_nothing_from_their_init() -> None:
    """Re-exports are how import cycles begin."""
    inits = [
        path
        for package in ("ledger", "projections", "commands", "rubrics")
        for path in (ROOT / package).rglob("__init__.py")
    ]

    assert inits
    assert not [path for path in inits if not is_docstring_only(path.read_text(encoding="utf-8"))]


def test_a_private_module_is_imported_inside_its_package_only() -> None:
    """A leading underscore closes a module to other rooms; a plain name is a door."""
    strangers = [
        f"{path}: {module}"
        for path, module in imported_modules()
        if "._" in module and not path.startswith(module.rpartition("._")[0].replace(".", "/"))
    ]

    assert not strangers


def test_a_class_name_stands_once() -> None:
    """Who reads a name in a message or a trace finds the one class that has it."""
    names = Counter(
        node.name for path in sources() for node in nodes_of(path) if isinstance(node, ast.ClassDef)
    )

    assert not {name for name, n in names.items() if n > 1}


def test_what_has_a_name_is_used() -> None:
    """What only its tests call is dead; what users call stands in a document."""
    nodes = [node for path in [*sources(), ROOT / "tourney.py"] for node in nodes_of(path)]
    pages = [path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")]
    used = {*map(used_name, nodes), *re.findall(r"\w+", "".join(pages)), *CALLED_BY_LIBRARIES}

    assert not {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.decorator_list  # its decorator uses what is decorated
        and not node.name.startswith("__")
        and node.name not in used
    }


def test_a_test_file_lies_where_its_module_does() -> None:
    """A module's tests are found by its name; a topic of its own is named after the module's."""
    modules = {path.relative_to(ROOT).with_name(path.stem.lstrip("_")) for path in sources()}
    files = [
        file.relative_to(ROOT / "tests")
        for package in ("ledger", "projections", "commands")
        for file in (ROOT / "tests" / package).rglob("test_*.py")
    ]
    names = {file: file.stem.removeprefix("test_").split("_") for file in files}

    assert files
    assert not [
        file
        for file, words in names.items()
        if modules.isdisjoint(file.with_name("_".join(words[:n])) for n in range(1, len(words) + 1))
    ]


def used_name(node: ast.AST) -> str | None:
    """Return the name that a node takes from elsewhere, be it as a text."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
        case ast.Constant(value=str(name)):
            return name
        case _:
            return None


def sources() -> list[Path]:
    """List the modules that are the product."""
    packages = ("ledger", "projections", "commands", "rubrics")
    return [path for package in packages for path in (ROOT / package).rglob("*.py")]


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """List the nodes of a module's syntax."""
    gc.disable()  # all of them stay
    nodes = tuple(ast.walk(ast.parse(path.read_text("utf-8"))))
    gc.enable()
    return nodes


def imported_modules() -> Iterator[tuple[str, str]]:
    """Yield each module's path with each name that it imports from, and what it takes there."""
    for path in sources():
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from (
                    (str(path.relative_to(ROOT)), f"{node.module}.{name.name}")
                    if f"{name.name}".startswith("_")
                    else (str(path.relative_to(ROOT)), node.module)
                    for name in node.names
                )


def is_docstring_only(source: str) -> bool:
    """Say whether a module is one string in triple quotes."""
    return re.fullmatch(r'"""[^"]*"""\n', source) is not None
