"""From tables to evaluations: what is found by what name, and what is refused."""

import re
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from commands.backends.wiring import READERS
from commands.errors import ConfigurationError, EvaluationFault, MissingExtra
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.likelihoods import PerplexityEvaluation
from commands.evaluating.registry import SHIPPED, STANDALONE, EvaluationSources, table_evaluations
from commands.evaluating.user_code import class_in_file
from commands.settings.sections import EvaluationSection
from tests.support.builders.evaluating import make, make_all, refusals

DOCUMENTS = """
from commands.evaluating.likelihoods import PerplexityEvaluation

class Documents(PerplexityEvaluation):
    def __init__(self, text, times=1, **others):
        self.texts = [text] * times

    def __len__(self):
        return len(self.texts)

    def get(self, index):
        return self.texts[index]

class Placed(Documents):
    def __init__(self, *, folder, bank):
        self.texts = [folder.name, *bank]

class Named(Documents):
    def __init__(self):
        self.members = self.parts = self.texts = ["abc"]

class Otherwise(Documents):
    @property
    def name(self):
        return "two"

class Unfinished(PerplexityEvaluation):
    pass

class Failing(Documents):
    def __init__(self):
        raise KeyError("reference")
"""
HERE = Path()


def documents(uses: str, folder: Path, **parameters: object) -> PerplexityEvaluation:
    """Return an evaluation of documents that a table names."""
    evaluation = make(uses, folder, (), **parameters)
    assert isinstance(evaluation, PerplexityEvaluation)
    return evaluation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with evaluations of a user's own."""
    (tmp_path / "mine.py").write_text(DOCUMENTS, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", SHIPPED)
def test_what_needs_a_table_is_known(name: str, folder: Path) -> None:
    """Weights by themselves have no parameters and no bank."""
    section = EvaluationSection(id="one", uses=name)
    try:
        (found,) = table_evaluations(section, EvaluationSources(folder, (), READERS))
        is_alone = len(found) > 0
    except ConfigurationError:
        is_alone = False

    assert is_alone == (name in STANDALONE)


def test_a_class_in_a_file_beside_the_settings_is_made_with_its_parameters(folder: Path) -> None:
    """A researcher writes one file and one table, and names what it holds as they like.

    Folder and bank are known: a constructor is given those that it asks for by name.
    """
    mine = documents("mine.py:Documents", folder, text="abc", times=2, odd=1)

    assert [mine.get(index) for index in range(len(mine))] == ["abc", "abc"]
    assert documents("mine.py:Placed", folder).get(0) == folder.name
    assert documents("mine.py:Named", folder).get(0) == "abc"


def test_a_class_of_a_module_is_found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Packages of evaluations are imported as any other."""
    monkeypatch.syspath_prepend(folder)

    mine = documents("mine:Documents", HERE, text="abc")

    assert mine.get(0) == "abc"


def test_an_installed_package_offers_evaluations(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """By entry points, so that settings name no module."""
    offered = folder / "mine-1.0.dist-info" / "entry_points.txt"
    offered.parent.mkdir()
    offered.write_text("[tourney.evaluations]\ndocs = mine:Documents\n", encoding="utf-8")
    offered.with_name("METADATA").write_text("Name: mine\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)

    assert documents("docs", HERE, text="abc").get(0) == "abc"
    assert "did you mean 'docs'" in refusals("doc", HERE)[0]


@pytest.mark.parametrize(
    ("uses", "why"),
    [
        ("coping", "evaluation 'one': no evaluation is called 'coping'; did you mean 'copying'?"),
        (
            "x-y-z",
            "evaluation 'one': no evaluation is called 'x-y-z'; choose one of bank-choices, bank-",
        ),
        ("yours.py:A", "yours.py: there is no such file; "),
        ("mine.py:Other", "mine.py has no class 'Other'; its classes are PerplexityEval"),
        ("no_such_module:A", "module 'no_such_module' cannot be imported: "),
        ("math:A", "module math has no class 'A'; it has no classes"),
        ("pathlib:Path", "evaluation 'one': uses 'pathlib:Path', which is not a subclass of "),
        (
            "mine.py:Unfinished",
            "evaluation 'one': uses 'mine.py:Unfinished', which does not define",
        ),
    ],
)
def test_what_is_no_evaluation_is_told(folder: Path, uses: str, why: str) -> None:
    """With what there is, so that the right name is at hand."""
    (found,) = refusals(uses, folder)

    assert found.startswith(why)


def test_a_task_without_lm_evaluation_harness_names_the_extra(folder: Path) -> None:
    """A name might be another evaluation's; a task file is nothing else."""
    extra = r"pip install 'tourney-ledger\[lm-eval\]'"
    (found,) = refusals("hellaswag", folder)

    assert re.search(extra, found)
    with pytest.raises(MissingExtra, match=extra):
        make_all("mmlu.yaml", folder)


def test_all_wrong_parameters_are_told_at_once(folder: Path) -> None:
    """Against the constructor, before anything is read."""
    parameters: dict[str, JsonValue] = {"paths": "texts", "folder": "here"}
    section = EvaluationSection(id="one", uses="text-perplexity", parameters=parameters)

    with pytest.raises(ConfigurationError) as caught:
        table_evaluations(section, EvaluationSources(folder, (), READERS))

    assert [each.removeprefix("evaluation 'one': ") for each in caught.value.faults] == [
        "unknown parameter 'paths'; it takes path",
        "parameters.folder is filled in by tourney; leave it out",
        "parameter 'path' is missing",
    ]


def test_values_of_another_type_are_told_at_once(folder: Path) -> None:
    """A settings file has no types of its own."""
    found = refusals("copying", folder, n_items="many", seed=-1)

    assert [each.partition(": must")[0] for each in found] == [
        "evaluation 'one': parameters.n_items is 'many'",
        "evaluation 'one': parameters.seed is -1",
    ]
    assert refusals("choices", folder) == ("evaluation 'one': parameter 'file' is missing",)


@pytest.mark.parametrize("kind", ["Documents", "Otherwise"])
def test_a_table_names_its_evaluation(folder: Path, kind: str) -> None:
    """Two tables may use one class, whatever that calls itself."""
    mine = documents(f"mine.py:{kind}", folder, text="abc")

    assert (mine.id, mine.label(0), mine.prefix()) == ("one", "one[0]", "one_")


def test_without_a_table_the_class_gives_the_name(folder: Path) -> None:
    """Its own, or that of the class; nobody has to write one."""
    kinds = (class_in_file(folder / "mine.py", each) for each in ("Otherwise", "Documents"))
    mine = [cast("type[Evaluation]", kind)(text="abc") for kind in kinds]  # type: ignore[call-arg]

    assert [each.id for each in mine] == ["two", "documents"]


def test_a_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    """As a script does; two folders may each have helpers of that name."""
    found = []
    for n in range(2):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        (folder / "neighbour_of_mine.py").write_text(f"TEXT = 'text {n}'\n", encoding="utf-8")
        code = DOCUMENTS.replace("folder.name", "neighbour_of_mine.TEXT")
        (folder / "mine.py").write_text(f"import neighbour_of_mine\n{code}", encoding="utf-8")
        found.append(documents("mine.py:Placed", folder).get(0))

    assert found == ["text 0", "text 1"]


def test_a_constructor_that_fails_is_named_with_its_line(folder: Path) -> None:
    """The fault is its author's: a traceback of ours would hide it."""
    with pytest.raises(EvaluationFault, match="evaluation 'one' failed at using") as caught:
        documents("mine.py:Failing", folder)

    line = DOCUMENTS.splitlines().index('        raise KeyError("reference")') + 1
    assert f"KeyError: 'reference' ({folder}/mine.py:{line})" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_is_no_python_is_named(folder: Path) -> None:
    """As a constructor's fault is."""
    (folder / "bad.py").write_text("class", encoding="utf-8")

    with pytest.raises(EvaluationFault, match=r"SyntaxError: .*bad\.py, line 1"):
        documents("bad.py:A", folder)
