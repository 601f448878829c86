"""`choices` and `rollout`: data sets of several layouts, asked without a line of Python."""

from pathlib import Path
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pytest
from pyarrow import parquet

from commands.evaluating.likelihoods import PerplexityComparisonEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import ObservedSample
from commands.evaluating.shipped.questions import last_number
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import ChoicesObserved
from tests.support.builders.evaluating import (
    answering,
    made,
    make_all,
    reading,
    refusals,
    write_lines,
)

MMLU: Final = {
    "question": "Which vitamin?",
    "choices": ["A", "B", "C", "D"],
    "answer": 2,
    "subject": "anatomy",
}
SHOWN: Final = "Which vitamin?\nA. A\nB. B\nC. C\nD. D"
HELLASWAG: Final = {"ctx": "A man", "endings": ["sits.", "flies.", "melts."], "label": "1"}


def choices(folder: Path, **parameters: object) -> PerplexityComparisonEvaluation:
    """Return the evaluation of rows.jsonl by log-likelihoods."""
    parameters = {"file": "rows.jsonl", **parameters}
    return made("choices", PerplexityComparisonEvaluation, folder, **parameters)  # type: ignore[type-abstract,arg-type]


def rollout(folder: Path, **parameters: object) -> RolloutEvaluation:
    """Return the evaluation of rows.jsonl by answers."""
    parameters = {"file": "rows.jsonl", **parameters}
    return made("rollout", RolloutEvaluation, folder, **parameters)  # type: ignore[type-abstract,arg-type]


TEXTS: Final = {"question": "ctx", "choices": "endings", "answer": "label", "answers": "texts"}
FIELDS: Final = {"choices": ["opa", "opb"], "answer": "{{1}}", "answers": "texts"}
CONSTANT: Final = {"choices": ["yes", "no"], "answers": "texts"}
AS_FIELDS: Final = {"question": "?", "opa": "x", "opb": "y", "answer": "no"}
AS_LIST: Final = {"question": "?", "choices": ["x", "y"]}
LETTERS: Final = ("?\nA. x\nB. y\nAnswer:", [" A", " B"], 1)


@pytest.mark.parametrize(
    ("row", "parameters", "item"),
    [
        (MMLU, {}, (f"{SHOWN}\nAnswer:", [" A", " B", " C", " D"], 2)),
        (HELLASWAG, TEXTS, ("A man", [" sits.", " flies.", " melts."], 1)),
        (AS_FIELDS, FIELDS, ("?", [" x", " y"], 1)),  # as MedMCQA
        (AS_FIELDS, CONSTANT, ("?", [" yes", " no"], 1)),  # as PubMedQA
        *((AS_LIST | {"answer": answer}, {}, LETTERS) for answer in (1, "1", "B")),
    ],
)
def test_choices_are_weighed_behind_the_question(
    tmp_path: Path, row: object, parameters: dict[str, object], item: object
) -> None:
    """Letters behind the listed choices, as of MMLU, or texts behind the question alone.

    An answer is an index or a letter: releases of one data set differ in this.
    """
    write_lines(tmp_path / "rows.jsonl", row)

    found = choices(tmp_path, **parameters)

    assert found.get(0) == item
    assert found.label(0) == "rows.jsonl:1"


def test_examples_are_turns_of_a_chat(tmp_path: Path) -> None:
    """The model's own turn then begins with the choice, without a space."""
    write_lines(tmp_path / "rows.jsonl", MMLU)
    shots = {"shots": 1, "shots_file": "rows.jsonl"}
    inference, reader = reading(lambda _: -1.0)
    answerer, generator = answering(lambda _: "C")

    choices(tmp_path, **shots)(inference, chat="turns", system="Short.")
    rollout(tmp_path, answers="letters", choices="choices", **shots)(answerer, chat="turns")

    turns = (("user", f"{SHOWN}\nAnswer:"), ("assistant", "C"), ("user", f"{SHOWN}\nAnswer:"))
    assert [each.messages for each in reader.asked] == [(("system", "Short."), *turns)] * 4
    assert [each.text for each in reader.asked] == ["A", "B", "C", "D"]
    assert {each.entrant.chosen.system for each in reader.asked} == {"Short."}
    asked = f"{SHOWN}\nAnswer with the letter alone."
    expected = (("user", asked), ("assistant", "2"), ("user", asked))
    assert [each.messages for each in generator.asked] == [expected]


def test_the_space_before_a_choice_is_no_part_of_its_length(tmp_path: Path) -> None:
    """`acc_norm` and `acc_bytes` divide by the choice alone, as lm-evaluation-harness does."""
    write_lines(tmp_path / "rows.jsonl", HELLASWAG)
    found = choices(tmp_path, **TEXTS)
    options = EvaluationOptions()

    [[seen]] = found.observe(reading(lambda _: -1.0)[0], found.samples(options), options)

    assert isinstance(seen, ObservedSample)
    assert isinstance(seen.observation, ChoicesObserved)
    assert [each.n_chars for each in seen.observation.choices] == [5, 6, 6]


def test_a_parquet_file_is_read_as_json_lines_are(tmp_path: Path) -> None:
    """Data sets are published as either."""
    write_lines(tmp_path / "rows.jsonl", MMLU)
    parquet.write_table(pa.Table.from_pylist([MMLU]), tmp_path / "rows.parquet")

    assert choices(tmp_path).get(0) == choices(tmp_path, file="rows.parquet").get(0)


def test_examples_are_of_the_subject_of_the_question(tmp_path: Path) -> None:
    """MMLU's five examples are those of its subject."""
    shots = [
        MMLU | {"question": f"{n}?", "subject": (n % 2 and "law") or "anatomy"} for n in range(4)
    ]
    write_lines(tmp_path / "dev.jsonl", *shots)
    write_lines(tmp_path / "rows.jsonl", MMLU)

    found = choices(tmp_path, subject="subject", shots=2, shots_file="dev.jsonl")

    context = found.get(0)[0]
    assert context.startswith("0?\nA. A\nB. B\nC. C\nD. D\nAnswer: C\n\n2?\n")
    assert context.endswith(f"\n\n{SHOWN}\nAnswer:")


def test_subjects_are_evaluations_that_share_the_samples_of_the_whole(tmp_path: Path) -> None:
    """Each is a row of the metrics, and nothing is asked twice."""
    rows = [MMLU | {"question": f"{n}?", "subject": f"s{n % 2}"} for n in range(6)]
    write_lines(tmp_path / "rows.jsonl", *rows)

    whole, *parts = make_all("rollout", tmp_path, file="rows.jsonl", choices="choices",
                             answers="letters", subject="subject")  # fmt: skip

    inference = answering(lambda _: "C")[0]
    drawn = [each.samples(EvaluationOptions(length=2)) for each in (whole, *parts)]
    assert [each.id for each in (whole, *parts)] == ["one", "one.s0", "one.s1"]
    assert {s.item for s in drawn[0]} == {s.item for part in drawn[1:] for s in part}
    assert len(drawn[0]) == 4
    assert (
        len({str(each.settings(inference, EvaluationOptions())) for each in (whole, *parts)}) == 1
    )


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("B", "B"),
        (" (b) B12", "B"),
        ("**C.** C, of course", "C"),
        ("I think that the answer is: D.", "D"),
        ("The answer is a vitamin", ""),
        ("Vitamin C", ""),
        ("", ""),
    ],
)
def test_the_letter_is_read_where_an_answer_gives_one(
    tmp_path: Path, said: str, letter: str
) -> None:
    """Entrants wrap it in words and marks; an article is no letter."""
    write_lines(tmp_path / "rows.jsonl", MMLU)
    asked = rollout(tmp_path, choices="choices", answers="letters")

    assert asked.get(0) == (f"{SHOWN}\nAnswer with the letter alone.", "C")
    assert asked.clean(said) == letter
    assert asked.check("C", letter) is (letter == "C")


def test_the_last_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    """GSM8K's solutions end in `#### 1,234`; an answer may say 1234.0 dollars."""
    row = {"question": "How many?", "answer": "3 * 4 = 12\n#### 1,234"}
    write_lines(tmp_path / "rows.jsonl", row)

    asked = rollout(tmp_path, answers="numbers")

    assert asked.get(0) == ("How many?", "1234")
    assert asked(answering(lambda _: "First 7, so it is $1,234.00.")[0]) == 1.0
    assert asked(answering(lambda _: "none")[0]) == 0.0
    assert [last_number(each) for each in ("-0.50", "10", "a")] == ["-0.5", "10", ""]


def test_a_text_is_right_if_it_holds_the_expected_words(tmp_path: Path) -> None:
    """Free answers are whole sentences."""
    write_lines(tmp_path / "rows.jsonl", {"question": "Which?", "answer": "vitamin C"})

    asked = rollout(tmp_path)

    assert asked(answering(lambda _: "It is Vitamin C.")[0]) == 1.0
    assert asked(answering(lambda _: "It is B.")[0]) == 0.0


@pytest.mark.parametrize(
    ("row", "parameters", "why"),
    [
        (MMLU | {"answer": 4}, {}, "rows.jsonl:1: the answer 4 is none of the choices"),
        (MMLU | {"answer": -1}, {}, "rows.jsonl:1: the answer -1 is none of the choices"),
        (MMLU | {"choices": ["A"]}, {}, "rows.jsonl:1: there are 1 choices; it takes 2 to 26"),
        (MMLU | {"choices": ["A", ""]}, {}, "rows.jsonl:1: a choice is empty"),
        (MMLU | {"choices": ["B", "A"], "answer": "A"}, {},
         "rows.jsonl:1: the answer 'A' fits several of"),
        (MMLU, {"question": "questoin"}, "rows.jsonl:1: no field 'questoin'; did you mean 'quest"),
        (MMLU, {"choices": ["question", "nothing"]}, "rows.jsonl:1: no field 'nothing'; the f"),
        (MMLU, {"shots": 2}, "shots is 2; say shots_file, which has examples"),
        (MMLU, {"shots": 2, "shots_file": "rows.jsonl"},
         "rows.jsonl:1: shots is 2, but rows.jsonl has 1 examples"),
        (MMLU, {"file": "none.jsonl"}, "none.jsonl: there is no such file or folder"),
        (MMLU, {"anwser": "x"}, "evaluation 'one': parameters.anwser is 'x': it is not known"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_its_line(
    tmp_path: Path, row: object, parameters: dict[str, object], why: str
) -> None:
    """It would be scored, and against the wrong choice."""
    write_lines(tmp_path / "rows.jsonl", row)

    found = refusals("choices", tmp_path, **{"file": "rows.jsonl", **parameters})  # type: ignore[arg-type]

    assert found[0].startswith(why)
