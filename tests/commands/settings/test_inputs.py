"""Prompt banks, rubrics and instructions: read from files, and as they ship."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import rubrics
from commands.errors import ConfigurationError
from commands.evaluating.registry import SHIPPED
from commands.settings.inputs import (
    read_bank,
    read_instructions,
    read_rubric,
    read_scoring_rubric,
    shipped_data,
)
from commands.settings.reader import read_settings
from commands.settings.sections import EntrantSection, HfSection
from ledger.events.registration import Instructions, Prompt, Rubric
from ledger.identity import Dimension, digest_of_bytes
from projections.verdicts.queries import system_text
from tests.support.builders.commands import record, write_bank, write_rubric

ASKED_BY_THE_DEMO: Final = {
    "factuality": "8b23b380af612e4e5b5f514087145c0a5b22dc7308c1ba0ce1893da6de40f396",
    "calibration": "282be61ea81f3e8cf1090f4072d9588a7433681f8b20096fb18f065da5ee62fb",
    "clinical_utility": "fc91887204da7a6bbe8d49f1e6e6d644538462d65e58a2197b033ab98cfd175d",
}
"""Digests of the system text by dimension."""
FOLDER: Final = Path(rubrics.__path__[0])
FACTUALITY: Final = Dimension("factuality")
READERS: Final[dict[str, Callable[[Path], object]]] = {
    "prompt bank": read_bank,
    "rubric": lambda path: read_rubric(path, FACTUALITY),
    "file of instructions": read_instructions,
}


def read_as_bank(folder: Path, *lines: str) -> tuple[Prompt, ...]:
    """Write lines as a bank and read it."""
    path = folder / "bank.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_bank(path)


def faults(folder: Path, *lines: str) -> tuple[str, ...]:
    """Return what is wrong, each place without its folder."""
    with pytest.raises(ConfigurationError) as caught:
        read_as_bank(folder, *lines)
    return tuple(fault.removeprefix(f"{folder}/") for fault in caught.value.faults)


def line(prompt_id: str = "p1", **fields: object) -> str:
    """Return a line of a bank."""
    return json.dumps(record(prompt_id, **fields))


def test_prompts_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    """It is that of matches and of the pilot; blank lines and other line ends say nothing."""
    second = line("p1", tags=["dose"], expected_behavior="hedge", gold_answer=" Vitamin K\n")

    prompts = read_as_bank(tmp_path, "", line("p2") + "\r", "   ", second, "")

    assert [prompt.prompt_id for prompt in prompts] == ["p2", "p1"]
    assert prompts[1].tags == ("dose",)
    assert prompts[1].expected_behavior == "hedge"
    assert prompts[1].gold_answer == " Vitamin K\n"  # its digest names queries that were paid for
    again = read_bank(write_bank(tmp_path / "again.jsonl", (each.fields for each in prompts)))
    assert again == prompts


def test_the_mark_of_an_editor_on_windows_is_no_part_of_a_text(tmp_path: Path) -> None:
    """The version on the first line is there for all to see, and every text is as without it."""
    bank = write_bank(tmp_path / "bank.jsonl", [record("p1")])
    rubric, instructions = write_rubric(tmp_path / "factuality.md"), tmp_path / "judge.md"
    instructions.write_text("<!-- version: 1 -->\n\nJudge.\n", encoding="utf-8")
    files = dict(zip(READERS, (bank, rubric, instructions), strict=True))
    without = [read(files[what]) for what, read in READERS.items()]

    for file in files.values():
        file.write_text(file.read_text(encoding="utf-8"), encoding="utf-8-sig")

    assert [read(files[what]) for what, read in READERS.items()] == without


def test_a_note_of_provenance_is_not_part_of_the_prompt(tmp_path: Path) -> None:
    """Rewording a note must not ask every entrant again."""
    with_note, without = read_as_bank(tmp_path, line("p1", _provenance={"by": "us"}), line("p2"))

    assert with_note.text == "Question p1?"
    assert with_note.fields.keys() == without.fields.keys()


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (line(gold="aspirin"), "unknown field 'gold'; did you mean 'gold_answer'?"),
        (line(promt="Why?"), "unknown field 'promt'; did you mean 'prompt'?"),
        (line(prompt="Why?"), "the question stands twice, as 'prompt' and as 'text'; keep one"),
        (line(zzz=1), "unknown field 'zzz'; known here: prompt_id, source, subject, text, tags, "),
        ('{"gold_answer": "t", "source": "s"}', "'text' is missing"),
        ('{"promt": "x"}', "unknown field 'promt'; did you mean 'prompt'?"),
        ('{"txt": "x"}', "unknown field 'txt'; did you mean 'text'?"),
        (line(text=""), "'text': must not be empty"),
        (line(expected_behavior="guess"), "'expected_behavior': 'guess' is none of its values"),
        (line(text=None, source=3), "'source': must be a text, not a whole number"),
        ('{"prompt_id": "p1",', "not JSON: Expecting property name enclosed in double quotes at"),
        ("[" * 100_000, "nested too deeply"),
        (line(text=1).replace("1", "1" * 5_000), "a number has too many digits"),
        ('["p1"]', "a prompt is a JSON object, this is a list"),
        (line(text="half a pair: \ud800"), r"'text' has '\ud800', half of a surrogate pair"),
        (line(tags=["dose", "\udc00"]), r"'tags' has '\udc00', half of a surrogate pair"),
        (json.dumps({"text": "Why?", "system": "Be brief."}), "unknown field 'system'; write the"),
        ("7", "a prompt is a JSON object, this is a number"),
        ("null", "a prompt is a JSON object, this is null"),
        ("false", "a prompt is a JSON object, this is true or false"),
        (line("p0", text="Another?"), "prompt_id 'p0' is taken by line 1; give each prompt its"),
    ],
)
def test_a_line_that_is_no_prompt_is_told_with_its_number(
    tmp_path: Path, wrong: str, fault: str
) -> None:
    """Half a surrogate pair, too: it could never be written to the ledger as UTF-8."""
    (found,) = faults(tmp_path, line("p0"), wrong)

    assert found.startswith(f"bank.jsonl:2: {fault}")


@pytest.mark.parametrize("wrong", ["guess", "", 3, ["hedge"]])
def test_a_field_of_few_values_names_them(tmp_path: Path, wrong: object) -> None:
    """Whoever writes a bank by hand does not know them by heart."""
    (found,) = faults(tmp_path, line(expected_behavior=wrong))

    assert found.startswith("bank.jsonl:1: 'expected_behavior': ")
    assert found.endswith(", it is one of 'hedge', 'answer', 'abstain'")


ARRAY = """
[
  {"text": "Why?"}, {"text":
     "Who?", "tags": ["a"]},

  {"text": "When?"}
]
"""


def test_a_json_array_is_a_bank(tmp_path: Path) -> None:
    """Most programs write one; a fault has the line on which its prompt begins."""
    lines = read_as_bank(tmp_path, *(json.dumps(each) for each in json.loads(ARRAY)))

    assert read_as_bank(tmp_path, ARRAY) == lines
    assert len(lines) == 3
    assert faults(tmp_path, ARRAY.replace('"Why?"', "3").replace('"When?"', '""')) == (
        "bank.jsonl:3: 'text': must be a text, not a whole number",
        "bank.jsonl:6: 'text': must not be empty",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n", "the prompt bank is empty; it holds one JSON object a line"),
        (" [ ]", "the prompt bank is empty; it holds one JSON object a line"),
        ('[{"text": "Why?"},\n {"text": }]', "not JSON: Expecting value at line 2, column 11"),
        ('[{"text": "Why?"}]\n{"text": "Who?"}', "not JSON: Extra data at line 2, column 1"),
        ("[" * 100_000, "nested too deeply"),
        ('{"prompts":\n [{"text": "Why?"}]}', "one JSON object over several lines; write one "),
        ('{\n "text": "Why?"\n}', "one JSON object over several lines; write one object a line, "),
    ],
)
def test_a_bank_that_is_none_is_told_once(tmp_path: Path, text: str, why: str) -> None:
    """Not once for each of its lines; a tournament on nothing would look as if it went well."""
    (found,) = faults(tmp_path, text)

    assert found.startswith(f"bank.jsonl: {why}")


def test_one_fault_on_many_lines_is_told_once_beside_the_others(tmp_path: Path) -> None:
    """A misspelt field is on every line; a bank of hundreds is not mended one line a run."""
    wrong = [line(f"p{n}").replace("prompt_id", "promt_id") for n in range(18)]

    found = faults(tmp_path, *wrong, line("p19", text=""), "{", line("p20", text=""))

    lines = "(on 18 lines: 1, 2, 3, 4, 5 and 13 more)"
    assert found[:2] == (
        f"bank.jsonl:1: unknown field 'promt_id'; did you mean 'prompt_id'? {lines}",
        "bank.jsonl:19: 'text': must not be empty (on 2 lines: 19, 21)",
    )
    assert [each.partition(": ")[0] for each in found[2:]] == ["bank.jsonl:20"]


def test_a_prompt_alone_is_enough(tmp_path: Path) -> None:
    """Its id follows from the text, wherever the line stands; `prompt` is another name of it."""
    first, second = '{"prompt": "Why?"}', '{"text": "Who?", "gold_answer": "Ann"}'

    why, who = read_as_bank(tmp_path, first, second)

    assert (why.text, why.source, why.subject) == ("Why?", "own", "general")
    assert who.gold_answer == "Ann"
    assert why.prompt_id != who.prompt_id
    assert read_as_bank(tmp_path, second, first) == (who, why)
    remedy = "remove one of them, or give each a prompt_id to ask both"
    assert faults(tmp_path, first, second, first, first) == (
        f"bank.jsonl:3: the text is that of line 1; {remedy} (on 2 lines: 3, 4)",
    )


@pytest.mark.parametrize("blank", ["", "\t\n", "\u00a0"])
def test_a_blank_gold_answer_is_none(tmp_path: Path, blank: str) -> None:
    """A spreadsheet or a script leaves one behind; a judge would compare with nothing."""
    (found,) = read_as_bank(tmp_path, line("p1", gold_answer=blank))
    (none,) = read_as_bank(tmp_path, line("p1", gold_answer=None))

    assert found == none
    assert found.gold_answer is None


@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "{file}: there is no such {what}; correct ["),
        (b'{"text": "caf\xe9"}', "{file}: the {what} cannot be read: 'utf-8' codec can't decode"),
        ("x".encode("utf-16"), "{file}: the {what} cannot be read: it is UTF-16; save it as UTF-8"),
        ("x".encode("utf-16-le"), "{file}: the {what} cannot be read: it is UTF-16; save it as"),
        ("x".encode("utf-16-be"), "{file}: the {what} cannot be read: it is UTF-16; save it as"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_its_path(
    tmp_path: Path, what: str, content: bytes | None, why: str
) -> None:
    """A wrong path in the settings, or another encoding, as Windows saves it."""
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigurationError, match=re.escape(why.format(file=file, what=what))):
        READERS[what](file)
    with pytest.raises(ConfigurationError, match=f"the {what} cannot be read: Is a directory"):
        READERS[what](tmp_path)


def test_further_samples_follow_the_whole_bank(tmp_path: Path) -> None:
    """A design that draws pairs prompt by prompt keeps those of the first samples."""
    bank = tmp_path / "bank.jsonl"
    write_bank(bank, [{"prompt_id": "a", "text": "A?"}, {"prompt_id": "b", "text": "B?"}])

    prompts = read_bank(bank, 3)

    assert [each.prompt_id for each in prompts] == ["a", "b", "a#2", "b#2", "a#3", "b#3"]
    assert [each.text for each in prompts] == ["A?", "B?"] * 3

    write_bank(bank, [{"prompt_id": "a", "text": "A?"}, {"prompt_id": "a#2", "text": "B?"}])
    assert len(read_bank(bank)) == 2
    with pytest.raises(ConfigurationError, match="'a#2' names a sample of another prompt"):
        read_bank(bank, 2)


def test_the_shipped_bank_has_gold_answers_exactly_where_one_exists() -> None:
    """A curated prompt has a right behaviour instead; calibration is compared on these."""
    shipped = read_bank(shipped_data() / "bank.jsonl")
    curated = [prompt for prompt in shipped if prompt.source == "curated"]

    assert Counter(prompt.source for prompt in shipped) == {
        "recall": 24,
        "vignette": 69,
        "curated": 50,
    }
    assert len({prompt.text for prompt in shipped}) == len(shipped)
    assert Counter(prompt.expected_behavior for prompt in curated) == {
        "hedge": 20,
        "answer": 20,
        "abstain": 10,
    }
    assert Counter(prompt.category for prompt in curated) == {
        "genuinely_uncertain": 16,
        "misleading_premise": 13,
        "boundary_of_knowledge": 8,
        "high_stakes": 13,
    }
    for prompt in shipped:
        has_gold = prompt.source != "curated"

        assert bool(prompt.gold_answer) == has_gold
        assert (prompt.expected_behavior is None) == has_gold
        assert (prompt.category is None) == has_gold


def read_as_rubric(folder: Path, text: str) -> Rubric:
    """Write a rubric and read it."""
    path = folder / "factuality.md"
    path.write_text(text, encoding="utf-8")
    return read_rubric(path, FACTUALITY)


def test_a_rubric_is_kept_whole_with_its_version(tmp_path: Path) -> None:
    """The judge is shown the file as it is, and its digest names the version line too."""
    front = "needs_gold = true\nshows_expected_behavior = true"
    text = f"<!-- version: 2.1 -->\n+++\n{front}\n+++\n\n# Factuality\n"

    rubric = read_as_rubric(tmp_path, text)

    assert rubric == Rubric(
        dimension=FACTUALITY,
        version="2.1",
        needs_gold=True,
        shows_expected_behavior=True,
        text=text,
    )


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("# Factuality\n", ["1: a rubric begins with its version, as in <!-- version: 1 -->"]),
        ("\n# Factuality\n", ["2: front matter is missing: +++, then needs_gold = true or false"]),
        ("\n+++\nneeds_gold yes\n+++\n", ["2: the front matter is not TOML: Expected '='"]),
        (
            "\n+++\nneeds_gold = 'maybe'\n+++\n",
            ["2: front matter: 'needs_gold' is 'maybe': must be true or false"],
        ),
        (
            "\n+++\nneeds_gold = true\nshow_expected_behaviour = true\n+++\n",
            ["2: front matter: unknown key 'show_expected_behaviour'; did you mean 'shows_"],
        ),
        (
            "\n+++\nneeds_glod = true\n+++\n",
            [
                "2: front matter: 'needs_gold' is missing; say needs_gold = true or false",
                "2: front matter: unknown key 'needs_glod'; did you mean 'needs_gold'?",
            ],
        ),
        ("\n+++\n\n+++\n", ["2: front matter: 'needs_gold' is missing; say needs_gold = true"]),
        ("\n+++\n+++", ["2: front matter: 'needs_gold' is missing; say needs_gold = true"]),
    ],
)
def test_a_rubric_that_lacks_its_beginning_is_refused(
    tmp_path: Path, text: str, faults: list[str]
) -> None:
    """Verdicts are quoted with its version; whether gold is needed has no default.

    Each fault has one line of its own, without the libraries' links.
    """
    with pytest.raises(ConfigurationError) as caught:
        read_as_rubric(tmp_path, f"<!-- version: 1 -->{text}" if text[0] == "\n" else text)

    for found, fault in zip(caught.value.faults, faults, strict=True):
        assert found.startswith(f"{tmp_path}/factuality.md:{fault}")
        assert "\n" not in found


@pytest.mark.parametrize(
    ("dimension", "needs_gold", "shows_expected_behavior"),
    [
        ("factuality", True, False),
        ("clinical_utility", False, False),
        ("calibration", False, True),
    ],
)
def test_the_shipped_rubrics_read_well(
    dimension: str, needs_gold: bool, shows_expected_behavior: bool
) -> None:
    """Gold answers would bias a judge on every dimension but factuality.

    One changed byte would ask every query of the demo and of the 7B example again.
    """
    rubric = read_rubric(FOLDER / f"{dimension}.md", Dimension(dimension))

    text = system_text(read_instructions(FOLDER / "judge_medical.md"), rubric, "line")
    assert rubric.version == "1"
    assert rubric.needs_gold is needs_gold
    assert rubric.shows_expected_behavior is shows_expected_behavior
    assert "## How to compare" in rubric.text
    assert digest_of_bytes(text.encode()) == ASKED_BY_THE_DEMO[dimension]


def told(folder: Path, text: str) -> Instructions:
    """Write instructions and read them."""
    path = folder / "judge.md"
    path.write_text(text, encoding="utf-8")
    return read_instructions(path)


def test_instructions_are_kept_whole_and_shown_without_their_version(tmp_path: Path) -> None:
    """The version is a label for people; a judge that saw it would wonder what it means."""
    text = "<!-- version: 2.1 -->\n\n# Compare\n\nBe brief.\n\n"

    instructions = told(tmp_path, text)

    assert instructions == Instructions(version="2.1", text=text)
    assert instructions.guidance == "# Compare\n\nBe brief."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "judge.md: the file of instructions is empty; write what the judge must do, or"),
        ("<!-- version: 1 -->\n \n", "judge.md: the file of instructions is empty; write what"),
        ("Be brief.\n", "judge.md:1: the judge's instructions begin with their version, as in <!"),
        (
            "<!-- version: 1 -->\n+++\n+++\nJudge.",
            "judge.md: the judge would read the front matter",
        ),
    ],
)
def test_instructions_that_say_nothing_or_have_no_version_are_refused(
    tmp_path: Path, text: str, why: str
) -> None:
    """A judge without instructions would be paid for replies that mean nothing."""
    with pytest.raises(ConfigurationError, match=re.escape(f"{tmp_path}/{why}")):
        told(tmp_path, text)


def test_the_seven_billions_show_evaluations_that_can_be_asked_for(tmp_path: Path) -> None:
    """They are comments there: who takes the marks away has tables that are right."""
    lines = (shipped_data() / "olmo2-7b" / "tournament.toml").read_text("utf-8").splitlines()
    start = lines.index("# [[evaluations]]")
    text = "\n".join([*lines[:start], *(line.removeprefix("#").strip() for line in lines[start:])])
    (tmp_path / "tournament.toml").write_text(text, encoding="utf-8")

    shown = read_settings(tmp_path / "tournament.toml", {}).evaluations

    assert [each.uses for each in shown] == ["bank-rollout", "bank-choices", "choices"]
    assert {each.uses for each in shown} < SHIPPED.keys()


def test_the_four_entrants_of_the_seven_billions_are_ready_to_be_run() -> None:
    """Each differs from the one before it in one thing, so that a difference can be told.

    Its paths are those of the folder that a user copies bank and rubrics to.
    """
    shipped = read_settings(shipped_data() / "olmo2-7b" / "tournament.toml", {})

    base, security, robust, jury = shipped.entrants
    one_head = {"bypass_jury": True, "temperature": 0.98}
    assert [each.id for each in shipped.entrants] == [
        "base_olmo",
        "security_only",
        "security_plus_robustness",
        "full_poe",
    ]
    assert isinstance(base, HfSection)
    assert base.temperature is None
    assert said(security) == {"rob_checkpoint": None, **one_head}
    assert said(robust) == {"rob_checkpoint": -1, **one_head}
    assert said(jury) == {"rob_checkpoint": -1, **one_head, "bypass_jury": False}
    assert len({each.model_dump()["weights"] for each in shipped.entrants}) == 1
    assert {each.path for each in shipped.rubrics} == {
        Path("rubrics") / f"{name}.md" for name in ASKED_BY_THE_DEMO
    }
    assert shipped.judge.provider == "anthropic-batch"
    assert shipped.judge.instructions == Path("rubrics/judge_medical.md")


def said(section: EntrantSection) -> dict[str, object]:
    """Return what tells one Hydra from another, once the defaults of all are seen to hold."""
    assert section.model_dump(include={"beta"}) == {"beta": 1.0}
    return section.model_dump(include={"rob_checkpoint", "bypass_jury", "temperature"})


@pytest.mark.parametrize(
    ("front", "limits"),
    [("score = [1, 10]", (1.0, 10.0)), ('score = "pass/fail"', None)],
)
def test_a_rubric_of_scores_says_which_there_are(
    tmp_path: Path, front: str, limits: tuple[float, float] | None
) -> None:
    """And whether the judge sees the expected answer."""
    path = write_rubric(tmp_path / "r.md", front=f"needs_gold = false\n{front}")

    rubric = read_scoring_rubric(path, "recall")

    assert rubric.scale
    assert (rubric.dimension, rubric.needs_gold, rubric.scale.limits) == ("recall", False, limits)


@pytest.mark.parametrize(
    ("front", "says"),
    [
        ("needs_gold = true", 'say score = "pass/fail", or the lowest and the highest as'),
        ("needs_gold = true\nscore = [10, 1]", "or the lowest and the highest as score = [1, 10]"),
        ("needs_gold = true\nscore = [-1, 1]", "neither below 0"),
        ('needs_gold = true\nscore = "good"', 'say score = "pass/fail"'),
        ("score = [1, 10]", "'needs_gold' is missing; say needs_gold = true or false"),
        ("needs_gold = true\nscore = [1, 10]\nscor = 1", "unknown key 'scor'"),
    ],
)
def test_a_rubric_without_a_scale_is_told_how_to_say_it(
    tmp_path: Path, front: str, says: str
) -> None:
    """In one line, that of the front matter."""
    path = write_rubric(tmp_path / "r.md", front=front)

    with pytest.raises(ConfigurationError) as caught:
        read_scoring_rubric(path, "recall")

    (fault,) = caught.value.faults
    assert fault.startswith(f"{path}:2: front matter: ")
    assert says in fault
