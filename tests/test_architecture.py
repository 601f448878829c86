"""What the folders promise, checked on the running program."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer

from commands.cli.app import COMMANDS, command_line

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
HEAVY = ("torch", "transformers", "peft", "ray", "anthropic", "openai", "sacrebleu")


def modules_after(*lines: str, folder: Path) -> set[str]:
    """Run command lines in a fresh interpreter and return what they imported."""
    code = (
        "import sys\nfrom commands.cli.app import main\n"
        f"for line in {lines!r}:\n"
        "    sys.argv = ['tourney', *line.split()]\n"
        "    try:\n        main()\n    except SystemExit:\n        pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines())


def test_a_reading_command_imports_no_heavy_package(tmp_path: Path) -> None:
    """Help and projections answer at once because they never wait for torch or an SDK."""
    imported = modules_after("--help", "project elo --k 16", "verify", "log", folder=tmp_path)

    assert {"commands.cli.project.elo", "commands.cli.audit"} <= imported
    assert not {package for package in HEAVY if package in imported}


def test_a_list_of_commands_imports_none_of_them(tmp_path: Path) -> None:
    """What there is to choose from is shown without importing what it needs."""
    imported = modules_after("--help", "project --help", folder=tmp_path)

    assert "commands.cli.app" in imported
    assert not {name for name in imported if name.startswith(("projections", "numpy", "pydantic"))}


def test_status_waits_for_no_arithmetic(tmp_path: Path) -> None:
    """Counting events needs neither arrays nor the schema of the settings."""
    imported = modules_after("status", folder=tmp_path)

    assert "commands.cli.project.status" in imported
    assert imported.isdisjoint({"numpy", "pydantic", "sqlite_utils"})


def test_a_report_waits_for_no_settings(tmp_path: Path) -> None:
    """What checks settings files takes a third as long to import as all else that it needs."""
    imported = modules_after("report", folder=tmp_path)

    assert "commands.report.page" in imported
    assert imported.isdisjoint({"pydantic", "commands.backends.wiring", "commands.settings.schema"})


def test_elo_waits_for_no_other_projection(tmp_path: Path) -> None:
    """The imports of its neighbours would be a tenth of its start."""
    imported = modules_after("project elo", folder=tmp_path)

    assert "commands.cli.project.elo" in imported
    assert imported.isdisjoint(
        {
            "projections.ratings.bradley_terry.rate",
            "projections.evaluations.metrics",
            "commands.spending.offer",
            "sqlite_utils",
        }
    )


def test_every_command_has_help_with_an_example() -> None:
    """Help is the documentation that is at hand when a command is needed."""
    helps = dict(leaves(whole()))

    assert len(helps) > len(ENTRIES)
    assert not [name for name, text in helps.items() if "Example: tourney" not in text]


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
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


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


def whole() -> typer.core.TyperGroup:
    """Return the command line with every command imported."""
    group = typer.main.get_command(command_line())
    assert isinstance(group, typer.core.TyperGroup)
    return group


def leaves(group: typer.core.TyperGroup, words: str = "") -> list[tuple[str, str]]:
    """List the commands of a group and below it, with their help."""
    found = []
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            found += leaves(command, f"{words}{name} ")
        else:
            found.append((f"{words}{name}", " ".join((command.help or "").split())))
    return found


def is_docstring_only(source: str) -> bool:
    """Say whether a module is one string in triple quotes."""
    return re.fullmatch(r'"""[^"]*"""\n', source) is not None
