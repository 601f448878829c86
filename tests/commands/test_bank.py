"""Reading a prompt bank, and the bank that ships."""

import json
from collections import Counter
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings.inputs import read_bank, shipped_data
from ledger.events.registration import Prompt
from tests.commands.builders import record, write_bank


def read(folder: Path, *lines: str) -> tuple[Prompt, ...]:
    """Write lines as a bank and read it."""
    path = folder / "bank.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_bank(path)


def faults(folder: Path, *lines: str) -> tuple[str, ...]:
    """Return what is wrong, each place without its folder."""
    with pytest.raises(ConfigurationError) as caught:
        read(folder, *lines)
    return tuple(fault.removeprefix(f"{folder}/") for fault in caught.value.faults)


def line(prompt_id: str = "p1", **fields: object) -> str:
    """Return a line of a bank."""
    return json.dumps(record(prompt_id, **fields))


def test_prompts_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Bank order is the order of matches and of the pilot."""
    prompts = read(tmp_path, line("p2"), line("p1", tags=["dose"], expected_behavior="hedge"))

    assert [prompt.prompt_id for prompt in prompts] == ["p2", "p1"]
    assert prompts[1].tags == ("dose",)
    assert prompts[1].expected_behavior == "hedge"


def test_blank_lines_and_other_line_ends_are_tolerated(tmp_path: Path) -> None:
    """Editors add them, and they say nothing."""
    prompts = read(tmp_path, "", line("p1") + "\r", "   ", line("p2"), "")

    assert [prompt.prompt_id for prompt in prompts] == ["p1", "p2"]


def test_a_note_of_provenance_is_not_part_of_the_prompt(tmp_path: Path) -> None:
    """Rewording a note must not ask every entrant again."""
    with_note, without = read(tmp_path, line("p1", _provenance={"by": "us"}), line("p2"))

    assert with_note.text == "Question p1?"
    assert with_note.fields.keys() == without.fields.keys()


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (line(gold="aspirin"), "Object contains unknown field gold"),
        (line(text=""), "'text': Expected str of length >= 1"),
        (line(expected_behavior="guess"), "'expected_behavior': Invalid enum value 'guess'"),
        (line(text=None, source=3), "'source': Expected str, got int"),
        ('{"prompt_id": "p1",', "not JSON: Expecting property name enclosed in double quotes at"),
        ('["p1"]', "a prompt is a JSON object, this is list"),
        (line(text="half a pair: \ud800"), r"'utf-8' codec can't encode character '\ud800'"),
        (line(text="the other half: \udc00"), r"'utf-8' codec can't encode character '\udc00'"),
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


@pytest.mark.parametrize(
    "wrong", [line(text=""), line(tags=[3]), line(gold_answer=3), line(more=1)]
)
def test_a_field_of_any_text_names_no_values(tmp_path: Path, wrong: str) -> None:
    """There is no list to choose from."""
    (found,) = faults(tmp_path, wrong)

    assert "it is one of" not in found


def test_an_id_that_is_taken_names_both_lines(tmp_path: Path) -> None:
    """Responses go by the id, so two prompts under one would be mixed up."""
    (found,) = faults(tmp_path, line("p1"), line("p2"), line("p1", text="Another?"))

    assert found == "bank.jsonl:3: prompt_id 'p1' is taken by line 1; give each prompt its own"


def test_all_faulty_lines_are_told_at_once(tmp_path: Path) -> None:
    """A bank of hundreds is not mended one line a run."""
    found = faults(tmp_path, "{", line("p1"), "3", line("p1"))

    assert [fault.split(": ")[0] for fault in found] == [
        "bank.jsonl:1",
        "bank.jsonl:3",
        "bank.jsonl:4",
    ]


def test_an_empty_bank_is_a_fault(tmp_path: Path) -> None:
    """A tournament on nothing would end at once and look as if it went well."""
    (found,) = faults(tmp_path, "", "")

    assert found == "bank.jsonl: the prompt bank is empty; it holds one JSON object a line"


def test_a_bank_that_cannot_be_read_is_told_by_its_path(tmp_path: Path) -> None:
    """A wrong path in the settings, or a file of another encoding."""
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"text": "caf\xe9"}')

    for path in (tmp_path / "none.jsonl", latin):
        with pytest.raises(ConfigurationError, match=f"{path.name}: the prompt bank cannot be"):
            read_bank(path)


def test_a_bank_that_was_written_out_is_read_again(tmp_path: Path) -> None:
    """Users build banks by programs, through the same fields."""
    prompts = read(tmp_path, line("p1"), line("p2", gold_answer=None))

    again = read_bank(write_bank(tmp_path / "again.jsonl", (each.fields for each in prompts)))

    assert again == prompts


@pytest.fixture(scope="module")
def shipped() -> tuple[Prompt, ...]:
    """Give the bank that ships."""
    return read_bank(shipped_data() / "bank.jsonl")


def test_the_shipped_bank_has_the_size_of_the_customers(shipped: tuple[Prompt, ...]) -> None:
    """The pilot's strata and the cost of a headline run follow from these counts."""
    assert Counter(prompt.source for prompt in shipped) == {
        "recall": 24,
        "vignette": 69,
        "curated": 50,
    }


def test_the_shipped_curated_prompts_expect_each_behaviour(shipped: tuple[Prompt, ...]) -> None:
    """Calibration is compared on them, so each behaviour and category must be there enough."""
    curated = [prompt for prompt in shipped if prompt.source == "curated"]

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


def test_the_shipped_bank_has_gold_answers_exactly_where_one_exists(
    shipped: tuple[Prompt, ...],
) -> None:
    """A curated prompt has a right behaviour instead of a right answer, the others no category."""
    for prompt in shipped:
        has_gold = prompt.source in {"recall", "vignette"}

        assert bool(prompt.gold_answer) == has_gold
        assert (prompt.expected_behavior is None) == has_gold
        assert (prompt.category is None) == has_gold


def test_no_shipped_prompt_is_there_twice(shipped: tuple[Prompt, ...]) -> None:
    """A doubled prompt would count twice in every rating."""
    assert len({prompt.prompt_id for prompt in shipped}) == 143
    assert len({prompt.text for prompt in shipped}) == 143
