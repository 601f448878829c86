"""A bank of a table or of the Hub, whatever its columns are called."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.answer_tables import PromptTable, read_table
from commands.importing.bank import bank_named
from commands.importing.formats.rows import Record, Sheet
from commands.settings.hub_dataset import HubDataset
from ledger.events.registration import Prompt


def read_prompts(file: Path) -> PromptTable:
    """Read a table that models answer."""
    found = read_table(file, n_named=2)
    assert isinstance(found, PromptTable)
    return found


def read_csv(tmp_path: Path, text: str) -> PromptTable:
    """Read prompts from a file of this text."""
    file = tmp_path / "prompts.csv"
    file.write_bytes(text.encode())
    return read_prompts(file)


@pytest.mark.parametrize("header", ["prompt", "\ufeffPrompt", " question ", "instruction", "text"])
def test_one_column_is_enough(tmp_path: Path, header: str) -> None:
    """Its id, source and subject get sensible values; a cell may hold lines and commas."""
    prompts, unused = read_csv(tmp_path, f'{header}\r\n"Why, in\ntwo lines?"\r\nWho?\r\n')

    assert [each["text"] for each in prompts] == ["Why, in\ntwo lines?", "Who?"]
    assert len({each["prompt_id"] for each in prompts}) == 2
    assert {(each["source"], each["subject"]) for each in prompts} == {("own", "general")}
    assert unused == ()


def test_what_else_is_there_is_taken_or_told(tmp_path: Path) -> None:
    """An empty cell is left out."""
    (first, second), unused = read_csv(
        tmp_path, "id,question,answer,topic,price\n1,Why?,Because,physics,3\n2,Who?,,,4\n"
    )

    assert first == {
        "prompt_id": "1",
        "source": "own",
        "subject": "physics",
        "text": "Why?",
        "gold_answer": "Because",
    }
    assert (second["subject"], "gold_answer" in second) == ("general", False)
    assert unused == ("price",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "csv: the file is empty"),
        ("a,b\n1,2\n", r"csv: it holds neither prompts nor answers: no column .*\(there: a, b\)"),
        (
            "prompt,id\nWhy?,1\n,2\nWho?,3\n ,4\n",
            "this row has no prompt; remove it .on 2 lines: 3, 5.",
        ),
        ("prompt\n", "csv: it holds no prompts below its header"),
        (
            "prompt,gold_answer\nWhy?,A\nWho?,B\nWhy?,C\n",
            r"csv:4: the prompt is that of line 2; remove one of them",
        ),
        ("id,prompt\na,Why?\na,Who?\n", "csv:3: the id 'a' is that of line 2; remove one "),
        ("prompt,prompt\nWhy?,Who?\n", "csv:1: there are 2 columns 'prompt'; rename all but the"),
        ("Prompt,x, prompt\nWhy?,1,Who?\n", "csv:1: there are 2 columns 'prompt'; rename all"),
        ("prompt,gold,gold\nWhy?,1,2\n", "csv:1: there are 2 columns 'gold'; rename all but the"),
        ('prompt\nWhy?\n"Who?\n', "csv:3: not CSV: unexpected end of data"),
        ("prompt,id\nWhy, now?,1\n", "csv:2: it has 3 cells, but the header has 2"),
    ],
)
def test_what_is_no_table_of_prompts_is_told(tmp_path: Path, text: str, why: str) -> None:
    """With its line."""
    with pytest.raises(ConfigurationError, match=why):
        read_csv(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the option that names it."""
    with pytest.raises(ConfigurationError, match=r"no such file or folder; correct --from$"):
        read_prompts(tmp_path / "none.csv")


def test_a_cell_may_hold_a_conversation_as_json(tmp_path: Path) -> None:
    """Beside rows with a text; the bank has it as it was given, under an id of its own."""
    (tmp_path / "prompts.csv").write_text(
        'prompt,turns,messages\nWhy?,,\n,"[""One?"", ""Two?""]",\n'
        ',,"[{""role"": ""system"", ""content"": ""Be brief.""}, {""role"": ""user"", ""content"":'
        ' ""One?""}]"\n',
        encoding="utf-8",
    )

    plain, turns, messages = read_prompts(tmp_path / "prompts.csv").prompts

    assert (plain["text"], turns["turns"]) == ("Why?", ["One?", "Two?"])
    assert messages["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
    ]
    assert not {"text", "messages"} & turns.keys()
    assert len({str(each["prompt_id"]) for each in (plain, turns, messages)}) == 3


def test_a_cell_that_no_entrant_could_answer_is_refused(tmp_path: Path) -> None:
    """With its line, as in a bank."""
    (tmp_path / "prompts.csv").write_text('turns\n"[""One?"", """"]"\n', encoding="utf-8")

    with pytest.raises(ConfigurationError, match=r"prompts.csv:2: turn 2 of 'turns' says nothing"):
        read_prompts(tmp_path / "prompts.csv")


def test_json_lines_are_a_table_too(tmp_path: Path) -> None:
    """A bank that another program wrote, conversations included."""
    file = tmp_path / "mine.jsonl"
    file.write_text('{"query": "Why?", "ground_truth": "So."}\n{"turns": ["Who?", "When?"]}\n')

    prompts, _ = read_prompts(file)

    assert prompts[0]["text"] == "Why?"
    assert prompts[0]["gold_answer"] == "So."
    assert prompts[1]["turns"] == ["Who?", "When?"]


def test_references_to_several_turns_are_one_gold_answer(tmp_path: Path) -> None:
    """As in MT-bench's own question.jsonl; what is no list of texts is none."""
    file = tmp_path / "question.jsonl"
    row = '{"question_id": 111, "turns": ["Area?", "Of both?"], "reference": %s}\n'
    file.write_text(
        row % '["It is 3.", "It is 6."]' + row.replace("Area", "Sum") % '["", "It is 7."]'
    )

    (both, second), unused = read_prompts(file)

    assert both["gold_answer"] == "It is 3.\n\nIt is 6."
    assert second["gold_answer"] == "It is 7."
    assert unused == ("question_id",)
    file.write_text(row % "[3]")
    with pytest.raises(ConfigurationError, match="'gold_answer' is a list, not a text"):
        read_prompts(file)


SET = "hf://datasets/org/set"
ROW = {"Question": "Why?", "answer": "So.", "hint": ["a", "b"], "level": 2}


def read(query: str = "", *rows: dict[str, object], samples: int = 1) -> tuple[Prompt, ...]:
    """Read the bank of some rows."""
    rows = rows or (ROW,)

    def opened(dataset: HubDataset) -> Sheet:
        assert dataset.name == "org/set"
        return Sheet([*rows[0]], (Record(n, row) for n, row in enumerate(rows, start=1)))

    return bank_named(SET + query, Path(), opened, samples)


def test_the_usual_columns_are_a_prompts_fields() -> None:
    """The data set is the source; a pilot draws in proportion to it."""
    (prompt,) = read()

    assert (prompt.text, prompt.gold_answer, prompt.source) == ("Why?", "So.", "org/set")


def test_the_address_says_other_columns_or_none() -> None:
    """A column that is said to be one field is no other."""
    (prompt,) = read("?text=answer&category=level&source=hint", {**ROW, "hint": "mine"})
    (other,) = read("?gold_answer=")

    assert (prompt.text, prompt.gold_answer, prompt.category) == ("So.", None, "2")
    assert prompt.source == "mine"
    assert other.gold_answer is None


def test_turns_are_a_conversation_and_samples_follow() -> None:
    """As in a file of the same content: the same text is the same prompt wherever it is from."""
    first, second = read("?turns=hint", samples=2)

    assert [content for _, content in first.turns] == ["a", "b"]
    assert second.prompt_id == f"{first.prompt_id}#2"


@pytest.mark.parametrize(
    ("query", "rows", "why"),
    [
        ("?text=Q", (ROW,), r"no column 'Q', which text= names \(there: Question, answer,"),
        ("", ({"q": "Why?"},), r"say which, as &text=COLUMN \(there: q\)"),
        ("?text=hint", (ROW,), "'text' is a list, not a text"),
        ("", (ROW, ROW), ":2: the prompt is that of line 1"),
        ("?category=level", ({"prompt": "Why?", "level": "x\udc00"},), "half of a surrogate"),
    ],
)
def test_rows_that_are_no_prompts_are_refused(
    query: str, rows: tuple[dict[str, object], ...], why: str
) -> None:
    """With the address and the row."""
    with pytest.raises(ConfigurationError, match=rf"^{SET}.*{why}"):
        read(query, *rows)
