"""Votes of arenas: LMArena's in three layouts, and orq-arena's."""

from pathlib import Path

import pytest

from commands.importing.formats.rows import BadRow, Fields
from ledger.events.imports import ImportedBattle, JurorSaid, JurorVote, Winner
from tests.support.builders.formats import battles_of_rows, read_rows, read_text, why_not

_CSV = """\
id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie
30192,gpt-4,claude-1,"[""Say
hello""]","[""Hello""]","[""Hi""]",1,0,0
53567,koala-13b,gpt-4,"[""Why?""]","[""So""]","[""Thus""]",0,1,0
65089,vicuna-13b,gpt-4,"[""1 + 1""]","[""2""]","[""2""]",0,0,1
96401,llama-2,gpt-4,"[""2 + 2""]","[""4""]","[""4""]",1,0,1
"""


def vote(question_id: str, a: str, b: str, winner: Winner) -> ImportedBattle:
    """Return what somebody preferred."""
    return ImportedBattle(a, b, winner, None, question_id, "human", None)


def row_55k(**flags: object) -> Fields:
    """Return a row with these flags."""
    return {"id": 1, "model_a": "x", "model_b": "y"} | flags


def row_140k(**fields: object) -> Fields:
    """Return a row that x won."""
    return {"id": "u1", "model_a": "x", "model_b": "y", "winner": "model_a"} | fields


def test_the_flag_that_is_set_names_the_winner_and_two_name_none(tmp_path: Path) -> None:
    """A vote for both is a damaged row: calling it a tie would make one up."""
    read = read_text("lmarena-55k", tmp_path / "train.csv", _CSV)

    assert read[:3] == [
        vote("30192", "gpt-4", "claude-1", "model_a")._replace(length_a=5, length_b=2),
        vote("53567", "koala-13b", "gpt-4", "model_b")._replace(length_a=2, length_b=4),
        vote("65089", "vicuna-13b", "gpt-4", "tie")._replace(length_a=1, length_b=1),
    ]
    assert read[3:] == [
        BadRow(
            6,  # a prompt above goes over two lines
            "winner_model_a '1', winner_model_b '0', winner_tie '1': one must be 1, the others 0",
        )
    ]


@pytest.mark.parametrize(
    "flags",
    [
        {"winner_model_a": 0, "winner_model_b": 0, "winner_tie": 0},
        {"winner_model_a": 1, "winner_model_b": 0},
        {"winner_model_a": 1, "winner_model_b": 0, "winner_tie": None},
        {"winner_model_a": 2, "winner_model_b": 0, "winner_tie": 0},
    ],
)
def test_flags_that_are_not_one_of_three_are_told(flags: Fields) -> None:
    """A row without a vote says nothing, not even a tie."""
    assert why_not("lmarena-55k", row_55k(**flags)).endswith("one must be 1, the others 0")


def test_flags_mean_the_same_as_numbers_as_text_and_as_truths() -> None:
    """Whoever reads the CSV and writes it as JSON or Parquet changes their type."""
    as_numbers = row_55k(winner_model_a=0, winner_model_b=1, winner_tie=0)
    as_text = row_55k(winner_model_a="0", winner_model_b="1.0", winner_tie="0")
    as_truths = row_55k(winner_model_a=False, winner_model_b=True, winner_tie=False)

    assert (
        battles_of_rows("lmarena-55k", as_numbers, as_text, as_truths)
        == [vote("1", "x", "y", "model_b")] * 3
    )


@pytest.mark.parametrize("winner", ["model_a", "model_b", "tie", "tie (bothbad)"])
def test_the_100k_layout_names_the_winner_in_our_words(winner: Winner) -> None:
    """Columns of the conversation are not looked at."""
    row = {"question_id": "q7", "model_a": "x", "model_b": "y", "winner": winner, "turn": 3}

    assert battles_of_rows("lmarena-100k", row) == [vote("q7", "x", "y", winner)]


@pytest.mark.parametrize(
    ("answers", "length"),
    [('["So", null, "it"]', 4), ("[]", 0), ("not JSON", None), ("7", None), (None, None)],
)
def test_the_characters_of_a_conversations_answers_are_counted(
    answers: object, length: int | None
) -> None:
    """An answer may be null; texts that are no list have no length, and their vote counts."""
    flags = {"winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0}

    (battle,) = battles_of_rows("lmarena-55k", row_55k(**flags, response_b=answers))

    assert battle == vote("1", "x", "y", "model_a")._replace(length_b=length)


def test_the_newer_layouts_say_language_categories_and_tokens() -> None:
    """The flags that are set, of every group of them; a score is no flag."""
    about = {
        "language": "Polish",
        "is_code": True,
        "category_tag": {
            "criteria_v0.1": {"complexity": False, "creativity": True},
            "if_v0.1": {"if": True, "score": 4},
            "math_v0.1": {"math": False},
        },
        "conv_metadata": {"sum_assistant_a_tokens": 120, "sum_assistant_b_tokens": 7, "turns": 1},
    }
    expected = vote("u1", "x", "y", "model_a")._replace(
        categories=("creativity", "if", "code"), language="Polish", length_a=120, length_b=7
    )

    (newest,) = battles_of_rows("lmarena-140k", {**row_140k(), **about})
    (before,) = battles_of_rows("lmarena-100k", {**row_140k(question_id="u1"), **about})
    (bad,) = battles_of_rows("lmarena-140k", row_140k(winner="both_bad"))

    assert newest == before == expected
    assert bad.winner == "tie (bothbad)"


def test_a_winner_that_is_not_known_is_no_tie() -> None:
    """Rating programs have read it as a draw, which a slip of spelling then becomes."""
    assert why_not("lmarena-140k", row_140k(winner="both bad")) == (
        "winner is 'both bad', but must be one of model_a, model_b, tie, tie (bothbad), both_bad"
    )


OPEN = "not blind (anony is not true); FastChat leaves such votes out, too"
TOO_OFTEN = "a prompt asked too often (dedup_tag is not sampled), as in LMArena's ratings"


@pytest.mark.parametrize("name", ["lmarena-100k", "lmarena-140k"])
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, None),
        ({"anony": True}, None),
        ({"anony": "True"}, None),
        ({"anony": 1.0}, None),
        ({"anony": False}, OPEN),
        ({"anony": "false"}, OPEN),
        ({"anony": None}, OPEN),
        ({"anony": False, "dedup_tag": {"sampled": False}}, OPEN),
        ({"dedup_tag": {"high_freq": False, "sampled": True}}, None),
        ({"dedup_tag": {"high_freq": True, "sampled": False}}, TOO_OFTEN),
        ({"dedup_tag": {"high_freq": True}}, TOO_OFTEN),
        ({"dedup_tag": {}}, TOO_OFTEN),
        ({"dedup_tag": "{'high_freq': False, 'sampled': True}"}, None),
        ({"dedup_tag": '{"high_freq": true, "sampled": false}'}, TOO_OFTEN),
        ({"dedup_tag": None}, None),
        ({"dedup_tag": ""}, None),
    ],
)
def test_a_vote_that_the_arena_does_not_rate_is_left_out(
    name: str, said: Fields, why: str | None
) -> None:
    """Counted, open votes of a model's fans move its rating by hundreds of points."""
    row = row_140k(question_id="u1", **said)

    (found,) = read_rows(name, row)

    assert found == (
        vote("u1", "x", "y", "model_a") if why is None else BadRow(1, why, is_unrated=True)
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"anony": "yes"}, "anony is 'yes', but must be true or false"),
        ({"dedup_tag": "sampled"}, "dedup_tag is 'sampled', but must be as {\"sampled\": true}"),
        ({"dedup_tag": [1]}, 'dedup_tag is [1], but must be as {"sampled": true}'),
        ({"dedup_tag": "[1]"}, "dedup_tag is '[1]', but must be as {\"sampled\": true}"),
        ({"dedup_tag": {"sampled": "no"}}, "sampled is 'no', but must be true or false"),
    ],
)
def test_what_decides_whether_a_vote_counts_is_not_guessed(said: Fields, why: str) -> None:
    """It is a bad row, neither counted nor left out unsaid."""
    (found,) = read_rows("lmarena-100k", row_140k(question_id="u1", **said))

    assert found == BadRow(1, why)


def test_a_vote_without_an_id_gets_one_that_follows_from_its_row() -> None:
    """FastChat's public files have none: yet a file that has grown is taken in once."""
    public = {name: each for name, each in row_140k(tstamp=1.5, judge="u1").items() if name != "id"}

    first, again, later, other = battles_of_rows(
        "lmarena-100k",
        public | {"turn": 1, "language": "en"},
        public | {"turn": 1, "language": "en", "is_code": False},
        public | {"turn": 1, "language": "en", "tstamp": 2.5},
        public | {"turn": 1, "language": "en", "judge": "u2"},
    )

    assert first == again
    assert len({first.question_id, later.question_id, other.question_id, None}) == 4


def test_votes_without_id_and_time_are_too_much_alike_for_one() -> None:
    """One id for all wins of x over y would make one prompt of them."""
    bare = {"model_a": "x", "model_b": "y", "winner": "model_a"}

    (battle,) = battles_of_rows("lmarena-100k", bare)

    assert battle.question_id is None


_LOG = """\
{"schema_version": 2, "prompt_hash": "b6a6", "prompt_text": "?", "model_a": "mini", \
"model_b": "pro", "judge_votes": [{"model": "anthropic/haiku", "vote": "B", "flipped": false, \
"completed": true, "replacement": false, "explanation": ""}, {"model": "google/lite", "vote": \
null, "flipped": true, "completed": true}], "majority_verdict": "B", "winner": "pro", \
"damage_dealt": 20, "hp_a_before": 100, "hp_a_after": 80, "error": null}
{"schema_version": 3, "prompt_hash": "b6a6", "prompt_text": "?", "prompt_metadata": {"l": "x"}, \
"model_a": "mini", "model_b": "pro", "judge_votes": [], "majority_verdict": "inconclusive", \
"winner": "void", "error": "stream failed twice", "round_number": 2}
"""


def battle_round(**fields: object) -> Fields:
    """Return a round that was tied."""
    return {
        "schema_version": 3,
        "prompt_hash": "b6a6",
        "model_a": "mini",
        "model_b": "pro",
        "judge_votes": [{"model": "j1"}, {"model": "j2"}],
        "majority_verdict": "tie",
        "winner": "tie",
    } | fields


def test_both_schemas_are_read_and_a_void_round_has_no_verdict(tmp_path: Path) -> None:
    """A stream that failed says nothing of the models, and nobody judged it."""
    read = read_text("orq-arena", tmp_path / "battles.jsonl", _LOG)

    jury = "anthropic/haiku+google/lite"
    votes = (JurorVote("anthropic/haiku", "model_b"), JurorVote("google/lite", "inconsistent"))
    decided = ImportedBattle("mini", "pro", "model_b", None, "b6a6", "llm-judge", jury, votes=votes)
    assert read == [decided, decided._replace(winner="no verdict", judge_model=None, votes=())]


@pytest.mark.parametrize(
    ("verdict", "winner", "meaning"),
    [
        ("A", "mini", "model_a"),
        ("B", "pro", "model_b"),
        ("tie", "tie", "tie"),
        ("inconclusive", "inconclusive", "no verdict"),
        ("inconclusive", "void", "no verdict"),
    ],
)
def test_the_jurys_majority_decides(verdict: str, winner: str, meaning: Winner) -> None:
    """A jury that could not decide has not found the two equal."""
    (battle,) = battles_of_rows("orq-arena", battle_round(majority_verdict=verdict, winner=winner))

    votes = (JurorVote("j1", "no verdict"), JurorVote("j2", "no verdict"))
    expected = ImportedBattle("mini", "pro", meaning, None, "b6a6", "llm-judge", "j1+j2")
    assert battle == expected._replace(votes=votes)


@pytest.mark.parametrize(
    ("vote", "said"),
    [
        ({"vote": "A", "flipped": False}, "model_a"),
        ({"vote": "B"}, "model_b"),
        ({"vote": "tie"}, "tie"),
        ({"vote": None, "flipped": True}, "inconsistent"),
        ({"vote": None, "completed": False}, "no verdict"),
    ],
)
def test_each_jurors_vote_is_kept(vote: Fields, said: JurorSaid) -> None:
    """So that kappa can be computed; one that flipped is told from one that failed."""
    (battle,) = battles_of_rows("orq-arena", battle_round(judge_votes=[{"model": "j1", **vote}]))

    assert battle.votes == (JurorVote("j1", said),)


def test_the_category_and_the_length_of_both_answers_are_kept() -> None:
    """In characters, which orq-arena compares answers by; the texts are left out."""
    texts = {"response_a": "no", "response_b": "h\u00e9 oui", "prompt_category": "coding"}

    (battle,) = battles_of_rows("orq-arena", battle_round(**texts))

    assert (battle.length_a, battle.length_b, battle.categories) == (2, 6, ("coding",))


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (battle_round(schema_version=4), "schema_version is 4, but must be 2 or 3"),
        (battle_round(schema_version=None), "schema_version is None, but must be 2 or 3"),
        (
            battle_round(majority_verdict="A", winner="pro"),
            "winner is 'pro', but majority_verdict is 'A'",
        ),
        (battle_round(winner="other"), "winner is 'other', but majority_verdict is 'tie'"),
        (
            battle_round(majority_verdict="AB"),
            "majority_verdict is 'AB', but must be one of A, B, tie, ",
        ),
        (battle_round(judge_votes=None), "judge_votes: must be a list, not null"),
        (battle_round(judge_votes=[{}]), "model is None, but must be a text"),
        (
            battle_round(judge_votes=[{"model": "j", "vote": "C"}]),
            "vote is 'C', but must be one of A, B, ",
        ),
    ],
)
def test_a_row_that_is_no_round_is_told(log: Fields, why: str) -> None:
    """A winner beside another verdict, say, or a schema that may mean something else."""
    assert why_not("orq-arena", log).startswith(why)
