"""Faults in the code of evaluations."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.user_code import (
    blame_evaluation,
    class_in_file,
    class_in_module,
    code_digest,
)
from ledger.identity import digest_of


def test_what_a_user_can_put_right_otherwise_passes() -> None:
    """Tourney's own errors name their own place."""
    with (
        pytest.raises(ConfigurationError, match=r"^no such file$"),
        blame_evaluation("doses", "reading"),
    ):
        raise ConfigurationError(["no such file"])


@pytest.mark.parametrize("code", [0, 1, None])
def test_an_exit_in_an_evaluations_own_code_is_its_fault(code: int | None) -> None:
    """The command would end without a word, and with 0 as if all were done."""
    with pytest.raises(EvaluationFault) as caught, blame_evaluation("doses", "scoring item 3"):
        sys.exit(code)

    said = str(caught.value)
    assert f"failed at scoring item 3: RuntimeError: it calls sys.exit({code}) ({__file__}:" in said


def test_an_interrupt_is_nobodys_fault() -> None:
    """Ctrl-C while an evaluation reads its data."""
    with pytest.raises(KeyboardInterrupt), blame_evaluation("doses", "reading"):
        raise KeyboardInterrupt


def package_of(folder: Path, **files: str) -> None:
    """Write modules into a package, which is imported anew."""
    name = folder.name
    for each in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[each]
    folder.mkdir(exist_ok=True)
    for file, code in {"__init__": "", **files}.items():
        (folder / f"{file}.py").write_text(code, encoding="utf-8")
    importlib.invalidate_caches()


def digest(folder: Path, name: str = "Mine") -> str:
    """Return the digest of a class of the package's module `mine`."""
    kind = class_in_module(f"{folder.name}.mine", name)
    assert isinstance(kind, type)
    return code_digest(kind, "commands.evaluating")


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        ({}, False),
        ({"mine": "from . import near\nclass Mine:\n    x = near.X + 1\nclass Other: pass"}, True),
        ({"near": "from .far import X\n"}, True),
        ({"far": "X = 12\n"}, True),
        ({"unused": "X = 12\n"}, False),
    ],
)
def test_code_is_that_of_the_module_and_of_what_it_imports_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], *, is_other: bool
) -> None:
    """The rule that was corrected may stand two files away."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / f"package_{digest_of(sorted(changed))[:8]}"
    files = {
        "mine": "from . import near\nclass Mine:\n    x = near.X\nclass Other: pass",
        "near": "from .far import X as X\n",
        "far": "X = 1\n",
        "unused": "X = 1\n",
    }
    package_of(folder, **files)
    before, of_other = digest(folder), digest(folder, "Other")

    package_of(folder, **{**files, **changed})

    assert (digest(folder) != before) == is_other
    assert of_other != before


def test_a_file_may_put_what_is_no_module_among_the_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As settings that are read by `import`; they need not have a hash."""
    monkeypatch.delitem(sys.modules, "own_settings", raising=False)
    (tmp_path / "mine.py").write_text(
        "import sys\nfrom types import SimpleNamespace\n"
        "sys.modules['own_settings'] = SimpleNamespace(x=1)\n"
        "import own_settings\nclass Mine:\n    x = own_settings.x\n",
        encoding="utf-8",
    )

    kind = class_in_file(tmp_path / "mine.py", "Mine")

    assert isinstance(kind, type)
    assert code_digest(kind, "commands.evaluating")
    del sys.modules["own_settings"]


def test_code_that_is_in_no_file_has_a_digest_too() -> None:
    """It was typed into a notebook: constants count as instructions do."""
    digests = []
    for limit in ("20", "20", "30"):
        module = sys.modules["typed_in"] = ModuleType("typed_in")
        code = f"class Mine:\n    def check(self, y, y_hat):\n        return len(y_hat) > {limit}\n"
        exec(code, vars(module))  # noqa: S102  # ours
        digests.append(code_digest(module.Mine, "commands.evaluating"))
    del sys.modules["typed_in"]

    assert digests[0] == digests[1] != digests[2]
