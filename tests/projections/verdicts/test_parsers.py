"""Reading replies: verdicts, marks for both sides, and whether a gold answer is there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.judging import Verdict
from projections.verdicts.parsers import (
    BLIND_TO_STOPS,
    LENIENT_PARSER,
    PARSER,
    PARSER_OF,
    PARSERS,
    JudgeScores,
    holds_gold,
    is_gold,
    newest_parser,
    parse_bare_json,
    parse_bare_line,
    parse_json_verdict,
    parse_judge_scores,
    parse_leniently,
    parse_score_verdict,
    parse_verdict,
)
from tests.support.patience import at_once


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("It is the ASPIRIN.", "Aspirin"),
        ("Give clopidogrel/aspirin today", "aspirin"),
        ("a beta blocker", "beta-blocker"),
        ("delivery of baby, and the placenta", "Delivery of the baby and placenta"),
        ("Crohn\u2019s disease", "Crohn's disease"),
        ("karyotype 47, XXY", "47,XXY"),
        ("\uff21spirin: 10\u00a0mg", "aspirin 10 mg"),
        ("STRASSE", "Stra\u00dfe"),
        ("not aspirin", "aspirin"),
    ],
)
def test_a_gold_answer_is_found_by_its_words(response: str, gold: str) -> None:
    """Case, punctuation, two articles and ways to write a letter are no part of an answer."""
    assert holds_gold(response, gold) is True


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("aspirins", "aspirin"),
        ("albumin infusion of human origin", "human albumin infusion"),
        ("acquired haemophilia", "Acquired haemophilia A"),
        ("vitamin D", "vitamin A"),
        ("", "aspirin"),
    ],
)
def test_other_words_are_not_the_gold_answer(response: str, gold: str) -> None:
    """Part of a word, another order, or a name without its letter would be other answers."""
    assert holds_gold(response, gold) is False


@pytest.mark.parametrize("gold", [None, "", " - ", "The"])
def test_a_gold_answer_without_words_is_none(gold: str | None) -> None:
    """Nothing would be found in every response, and all of them be right."""
    assert holds_gold("The aspirin", gold) is None


@pytest.mark.parametrize(
    ("answer", "is_it"),
    [("The ASPIRIN!", True), ("Give aspirin", False), ("aspirin aspirin", False), ("", False)],
)
def test_an_answer_is_the_gold_answer_if_it_says_nothing_else(answer: str, *, is_it: bool) -> None:
    """An exact match is stricter than finding it; how it is written matters in neither."""
    assert is_gold(answer, "aspirin") is is_it
    assert is_gold(answer, " - ") is None


@given(before=st.text(), gold=st.text(), after=st.text())
def test_whatever_surrounds_a_gold_answer_it_is_found(before: str, gold: str, after: str) -> None:
    """Any text can come before and behind it, in any script."""
    assert holds_gold(f"{before} | {gold} | {after}", gold) in {True, None}


READ: list[tuple[str, JudgeScores]] = [
    ("score_A: 7\nscore_B: 9", (7, 9)),
    ("score_A: 8.5\nscore_B: 9/10", (8, 9)),
    ("Score of Assistant A: 0\nScore of Assistant B: 10", (0, 10)),
    ("**score_A**: 7\n**score_B**: 6", (7, 6)),
    ("Scores: A 7 B 9", (7, 9)),
    ('{"score_a": 3, "score_b": -1}', (3, -1)),
    ("score_A:\n\n  4\nscore_B:\n5", (4, 5)),
    ("score_B: 1\nscore_A: 2", (2, 1)),
    ("SCORE_A: 1\nSCORE_B: 1\nscore_A: 9", (1, 1)),
    ("What a score: both at least 5.\nscore_A: 6\nscore_B: 5", (6, 5)),
    ("score_A: \u0667\nscore_B: 9", (7, 9)),
]
UNREADABLE_MARKS = [
    "",
    "score_A: 7",
    "score_B: 7",
    "score_A = 7\nscore_B = 9",
    "score_A: <8>\nscore_B: <9>",
    "score_A: seven\nscore_B: nine",
    "A: 7\nB: 9",
    "score\nA: 7 B: 9",
    "\u017fcore_A: 7\n\u017fcore_B: 9",
    f"score_A: {'9' * 5000}\nscore_B: 9",
]
THOUGHTS: list[tuple[str, JudgeScores | None]] = [
    ("<think>score_A: 1 score_B: 2</think>score_A: 3 score_B: 4", (3, 4)),
    ("score_A: 1 score_B: 2</think>score_A: 3 score_B: 4", (3, 4)),
    ("score_A: 5 <think>score_A: 1</think> score_B: 6 <think></think>", (5, 6)),
    ("<think>a</think>score_A: 1 score_B: 2</think>score_A: 3 score_B: 4", (3, 4)),
    ("<think>score_A: 1 score_B: 2</think>", None),
    ("<think>score_A: 1 score_B: 2", (1, 2)),
]
LONG_MARKS = [
    "score" * 20_000,
    "score a " * 15_000,
    "score " + "a " * 50_000,
    "score a" + "\n" * 100_000,
    "score a:\n" * 10_000,
    "<think>" * 15_000,
    "</think>" * 12_000,
]


@pytest.mark.parametrize(("reply", "marks"), READ)
def test_the_first_mark_of_either_side_is_read(reply: str, marks: JudgeScores) -> None:
    """Replies judged elsewhere are to make the outcomes that they made there."""
    assert parse_judge_scores(reply) == marks


@pytest.mark.parametrize("reply", UNREADABLE_MARKS)
def test_without_both_marks_there_is_no_verdict(reply: str) -> None:
    """One mark says nothing of which side is better, and no tie may be made of that."""
    assert parse_judge_scores(reply) is None
    assert parse_score_verdict(reply) is None


@pytest.mark.parametrize(("reply", "marks"), THOUGHTS)
def test_what_a_judge_thought_does_not_count(reply: str, marks: JudgeScores | None) -> None:
    """It weighs marks there that it does not give in the end; its template may eat the tag."""
    assert parse_judge_scores(reply) == marks


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("score_A: 7\nscore_B: 9", "B"),
        ("score_A: 10\nscore_B: 9", "A"),
        ("score_A: 8.9\nscore_B: 8", "TIE"),
    ],
)
def test_the_higher_mark_wins(reply: str, verdict: Verdict) -> None:
    """Hard outcomes come of the same replies as soft ones."""
    assert parse_score_verdict(reply) == verdict


@given(
    reasoning=st.text().filter(lambda text: "score" not in text.lower()),
    a=st.integers(-(10**9), 10**9),
    b=st.integers(-(10**9), 10**9),
)
def test_marks_are_read_after_any_reasoning(reasoning: str, a: int, b: int) -> None:
    """A judge may say what it likes, short of the word, before it comes to its marks."""
    assert parse_judge_scores(f"{reasoning}\nscore_A: {a}\nscore_B: {b}") == (a, b)


@pytest.mark.parametrize("reply", LONG_MARKS, ids=range(len(LONG_MARKS)))
def test_a_long_reply_without_marks_is_given_up_at_once(reply: str) -> None:
    """A judge that loops fills its whole reply, and must not stop the run."""
    with at_once():
        marks = parse_judge_scores(reply)

    assert marks is None


READABLE: list[tuple[str, Verdict]] = [
    ("VERDICT: A", "A"),
    ("VERDICT: B", "B"),
    ("verdict:tie", "TIE"),
    ("VERDICT: A\nSo, once more:\nVERDICT: A", "A"),
    ("Both err.\nVERDICT: TIE\n\n  \n", "TIE"),
    ("VERDICT: B\r\n", "B"),
    ("**VERDICT: A**", "A"),
    ("**Verdict:** B", "B"),
    ("__VERDICT__: `TIE`", "TIE"),
    ("- VERDICT: A", "A"),
    ("* VERDICT: A", "A"),
    ("\u2022 VERDICT: A", "A"),
    ("> VERDICT: B", "B"),
    ("### VERDICT: B", "B"),
    ("VERDICT: [A]", "A"),
    ('"VERDICT: A".', "A"),
    ("'VERDICT: TIE'", "TIE"),
    ("VERDICT:\u00a0A\u2028", "A"),
]
UNREADABLE_VERDICTS = [
    "",
    " \n\t\n",
    "VERDICT: A wins",
    "VERDICT: A\nVERDICT: B\nthanks",
    "VERDICT: Both equal",
    "The answer is B",
    "VERDICT: A, B, or TIE",
    "VERDICT: A or B",
    "VERDICT: AB",
    "VERDICT: C",
    "VERDICT:",
    "VERDICT: A\nVERDICT: C",
    "My VERDICT: A",
    "VERDICT A",
    "VERDICT: T\u0130E",  # a Turkish capital i: the lower-case TIE of a Turkish locale
    "VERDICT: T\u0131E",
    "V\u0395RDICT: A",  # a Greek E
    "We compare\u2028VERDICT: A",
    "We compare\rVERDICT: A",
    "VERDICT: A\x00",
    "\x00",
    "VERDICT: \uff21",  # a full-width A
]
UNMARKED = [  # read by what they say, not by how
    "VERDICT: [[A]]",
    "VERDICT: (A)",
    "VERDICT: Response A",
    "VERDICT: **Response A**.",
    "VERDICT\uff1aA",
    "VERDICT: A\u3002",
    "VERDICT: \u200bA\u200b",
    "\ufeffVERDICT: A",
    "VERDICT: A<|im_end|>",
    "VERDICT: A</s>",
    "VERDICT: A\n<|eot_id|>",
    "VERDICT: A<|endoftext|>\n",
    "VERDICT: A<\uff5cend\u2581of\u2581sentence\uff5c>",
    "A is better.\n```\nVERDICT: A\n```",
    "VERDICT: A\n---",
    r"VERDICT: $\boxed{\text{A}}$",
    r"\boxed{VERDICT: A}",
    "So: $x$.\n$\\boxed{A}$",
    "\\[\n\\boxed{A}\n\\]",
    "[[A]]",
    "The first.\n**(A)**",
    "Response A",
    "**Response A**\nRight.\n**Response B**\nWrong.\n[[A]]",
    "<think>\nVERDICT: B\n</think>\n[[A]]",
]
TWO_VERDICTS = [
    "VERDICT: A\nOn reflection:\nVERDICT: B",
    "[[B]]\nVERDICT: A",
    "VERDICT: B\n[[A]]",
    "\\boxed{B}\nVERDICT: A",
    "VERDICT: TIE\nResponse A",
    "(B)\n(A)",
    "Response B\nWrong.\nResponse A\nResponse A",
    "VERDICT: A (B)",
    "VERDICT: A VERDICT: B",
]
NO_VERDICTS = [
    "# Response A",  # a heading, of a reply that ended there
    "Both are good.\n### Response A",
    "A",
    "**B**",
    "[A]",
    "The answer is (A)",
    "[[C]]",
    r"\not{A}",
    "VERDICT: not A",
    "VERDICT: A\nI hope that this helps.",
    "<think>\nVERDICT: A",
    "<think>VERDICT: A</think>",
]
NO_OBJECTS = [
    "",
    "VERDICT: A",
    '"A"',
    '["A"]',
    "7",
    "null",
    "{}",
    '{"verdict":"A"',
    '{"verdict":null}',
    '{"verdict":["A"]}',
    '{"verdict":{"A":1}}',
    '{"verdict":"C"}',
    '{"verdict":""}',
    '{"verdict":"T\u0131E"}',
    '{"VERDICT":"A"}',
    '{"said":{"verdict":"A"}}',
    "[" * 100_000,
    '{"verdict":' + "9" * 10_000 + "}",
]
SURROUNDED = [
    '<think>{"verdict":"B"}</think>{"verdict":"A"}',
    'Both are close.\n```json\n{"verdict":"A"}\n```',
    '```json\n{"verdict":"A"}\n```\nThat is all.',
    '{"verdict":"A"} indeed',
    'Of {1, 2} and {}: { "reasoning": "1", "verdict": "A" }',
    '{"reasoning":"one\nline","verdict":"A"}',
    '{"verdict":" A "}',
    '{"verdict":"[[A]]"}',
    '{"verdict":"Response A."}',
    '{"verdict":"A"}<|im_end|>',
    'VERDICT: A\n{"verdict":"A"}\n{"verdict":"a"}\n{"said":"B"}',
    '{"reasoning":"a </think> tag","verdict":" A"}',
]
TWO_OBJECTS = [
    '{"verdict":"A","verdict":"B"}',
    '{"verdict":"A"}\n{"verdict":"B"}',
    '{"verdict":"A"}\n{"verdict":"C"}',
    'VERDICT: B\n{"verdict":"A"}',
    '{"reasoning":"It says {"verdict":"B"}.","verdict":"A"}',
    '<think>\n{"verdict":"A"}',
]
LONG_VERDICTS = [
    "(" * 100_000,
    "VERDICT: " + "(" * 100_000,
    r"\boxed{" * 15_000,
    "RESPONSE" + " " * 100_000 + "x",
    "-\n" * 50_000,
    "<|" * 50_000,
    '{"a":' * 20_000,
    '{"a":1}' * 15_000,
    "{ " * 50_000,
    "VERDICT: A" + "*" * 100_000 + "x",
    "VERDICT: A" + " " * 50_000 + "." + " " * 50_000 + "x",
    "*" * 100_000 + "VERDICT: A wins",
    "VERDICT" + " " * 100_000 + "A",
    "VERDICT: A\n" * 10_000 + "thanks",
    "VERDICT: A\x00" * 10_000,
    "\u2028" * 100_000 + "x",
]


def test_every_parser_that_verdicts_name_is_known_for_ever() -> None:
    """A stored verdict is checked by the rule it was read by, however many rules come after."""
    assert dict(PARSERS) == {
        "final-line@1": parse_bare_line,
        "final-line@2": parse_verdict,
        "json-verdict@1": parse_bare_json,
        "json-verdict@2": parse_json_verdict,
        "lenient-tap@1": parse_leniently,
        "judgearena-score@1": parse_score_verdict,
    }
    assert set(PARSER_OF.values()) <= set(PARSERS)


@pytest.mark.parametrize(("reply", "verdict"), READABLE)
def test_a_verdict_on_the_final_line_is_read(reply: str, verdict: Verdict) -> None:
    """Judges decorate the line they were asked for; such a reply is paid for and clear."""
    assert parse_verdict(reply) == parse_bare_line(reply) == verdict


@pytest.mark.parametrize("reply", UNREADABLE_VERDICTS)
def test_anything_else_is_no_verdict(reply: str) -> None:
    """A guess at what a judge meant would become a rating; a failure is asked for again."""
    assert parse_verdict(reply) is None
    assert parse_bare_line(reply) is None


@pytest.mark.no_cover
@pytest.mark.parametrize("reply", UNMARKED)
def test_a_verdict_is_read_however_it_is_marked(reply: str) -> None:
    """Each was paid for and is clear; the rule that read replies before could read none."""
    assert parse_verdict(reply) == "A"
    assert parse_bare_line(reply) is None


@pytest.mark.parametrize("reply", TWO_VERDICTS)
def test_of_two_verdicts_neither_is_read(reply: str) -> None:
    """Which of them the judge meant would be a guess."""
    assert parse_verdict(reply) is None


@pytest.mark.parametrize("reply", NO_VERDICTS)
def test_a_letter_alone_is_no_verdict(reply: str) -> None:
    """It may be an article, a grade or a choice of the responses; half a thought is none either."""
    assert parse_verdict(reply) is None


@pytest.mark.parametrize(
    "reply", ["VERDICT: A\nOn reflection:\nVERDICT: B", "VERDICT: A\nVERDICT: B"]
)
def test_a_verdict_on_record_stays_as_its_own_rule_read_it(reply: str) -> None:
    """Ledgers hold such verdicts by the first rule, by which the last line counts alone."""
    assert PARSERS["final-line@1"](reply) == "B"


MARKS: list[tuple[str, str]] = [
    ("**", "**"),
    ("[[", "]]"),
    ("[", "]"),
    ("(", ")"),
    ("`", "`"),
    ("$", "$"),
    (r"\boxed{", "}"),
    (r"\text{", "}"),
    ('"', '"'),
    ("\u200b", ""),
]
AFTER = [
    "",
    "\n",
    "\n---",
    "\n```",
    "\n***\n\n",
    "<|im_end|>",
    "</s>",
    "\n<|eot_id|>",
    "\ufeff",
    "\u3002",
]
BEFORE = ["", "So.\n", "<think>VERDICT: B</think>", "VERDICT: B</think>\n", "```text\n", "> ", "**"]
SAID = st.sampled_from(("A", "B", "TIE"))


@st.composite
def marked(draw: st.DrawFn, verdict: str) -> str:
    """Draw a line that says a verdict behind its label, in marks around marks."""
    for opens, closes in draw(st.lists(st.sampled_from(MARKS), max_size=4)):
        verdict = f"{opens}{verdict}{closes}"
    response, full_stop = draw(st.sampled_from(("", "Response "))), draw(st.sampled_from(("", ".")))
    label = draw(
        st.sampled_from(("VERDICT: ", "verdict:", "**Verdict:** ", "VERDICT\uff1a", "`VERDICT`: "))
    )
    return f"{label}{response}{verdict}{full_stop}"


@given(data=st.data(), verdict=SAID, before=st.sampled_from(BEFORE), after=st.sampled_from(AFTER))
def test_marks_around_marks_hide_no_verdict(
    data: st.DataObject, verdict: str, before: str, after: str
) -> None:
    """Nobody can list what judges put around their last word, but none of it is another word."""
    line = data.draw(marked(verdict))

    assert parse_verdict(f"{before}{line}{after}") == verdict


@given(data=st.data(), verdicts=st.lists(SAID, min_size=2, max_size=4), between=st.text())
def test_two_marked_verdicts_are_read_only_if_they_agree(
    data: st.DataObject, verdicts: list[str], between: str
) -> None:
    """However far apart they are, and whatever stands between them."""
    lines = [data.draw(marked(each)) for each in verdicts]

    said = parse_verdict(f"\n{between.replace('<', '')}\n".join(lines))

    assert said == (verdicts[0] if len({*verdicts}) == 1 else None)


@given(reply=st.text().filter(lambda text: not {"A", "B", "T"} & {*text.upper()}))
def test_without_a_letter_for_it_there_is_no_verdict(reply: str) -> None:
    """Nothing that a judge says of neither becomes a verdict."""
    assert parse_verdict(reply) is None
    assert parse_json_verdict(reply) is None


@pytest.mark.no_cover
@pytest.mark.parametrize("reply", LONG_VERDICTS, ids=range(len(LONG_VERDICTS)))
def test_a_hundred_kilobytes_are_read_at_once(reply: str) -> None:
    """A judge that loops fills its whole reply, and must not stop the run."""
    with at_once():
        verdicts = {parse(reply) for name, parse in PARSERS.items() if name != LENIENT_PARSER}

    assert verdicts == {None}


ALPHABETS = (
    "VERDICT:ABTIEverdict \u0130\u0131\u017f\ufb00[].*`\n\r",
    '{}[]":,verdictABTIE01e-\\u',
    "scoreAb:\n7",
)


@given(reply=st.text() | st.sampled_from(ALPHABETS).flatmap(lambda each: st.text(alphabet=each)))
def test_no_reply_can_raise_an_error(reply: str) -> None:
    """Replies are recorded as they come: an error here would lose one that was paid for.

    Only the old scripts never say that they cannot read: that is their fault.
    """
    said = {name: parse(reply) for name, parse in PARSERS.items()}

    assert {*said.values()} <= {"A", "B", "TIE", None}
    assert said[LENIENT_PARSER] is not None


@pytest.mark.parametrize("protocol", ["line", "schema"])
def test_every_protocol_has_a_parser_for_its_replies(protocol: str) -> None:
    """A reply asked for as JSON and read by its last line would never have a verdict."""
    replies = {"line": "Both err.\nVERDICT: TIE", "schema": '{"reasoning":"","verdict":"TIE"}'}

    read = {name: PARSERS[PARSER_OF[protocol]](reply) for name, reply in replies.items()}

    assert read == {name: "TIE" if name == protocol else None for name in replies}


@pytest.mark.parametrize("verdict", ["A", "B", "TIE"])
def test_a_verdict_in_an_object_is_read(verdict: Verdict) -> None:
    """Providers that hold a judge to a schema leave nothing to guess."""
    reply = json.dumps({"reasoning": "VERDICT: A\nVERDICT: B", "verdict": verdict})

    assert parse_json_verdict(f" {reply}\n") == verdict


@pytest.mark.parametrize("reply", NO_OBJECTS)
def test_anything_but_one_object_with_a_verdict_is_none(reply: str) -> None:
    """Half an object is a reply that was cut off; guessing its end would invent a verdict."""
    assert parse_json_verdict(reply) is None
    assert parse_bare_json(reply) is None


def test_a_number_that_is_none_beside_a_verdict_does_not_hide_it() -> None:
    """NaN differs from itself, and is no second value of its key."""
    assert parse_json_verdict('{"verdict":"A","confidence":NaN}') == "A"


@pytest.mark.parametrize("reply", SURROUNDED)
def test_what_stands_around_an_object_does_not_hide_it(reply: str) -> None:
    """Servers that enforce no schema let a judge think, explain and fence."""
    assert parse_json_verdict(reply) == "A"
    assert parse_bare_json(reply) is None


@pytest.mark.parametrize("reply", TWO_OBJECTS)
def test_of_two_verdicts_in_objects_neither_is_read(reply: str) -> None:
    """Nor is one that a broken object quotes: it may be a response's own."""
    assert parse_json_verdict(reply) is None


def test_of_two_values_of_a_key_the_first_rule_took_the_last() -> None:
    """Verdicts on record are checked by the rule that they name."""
    assert PARSERS["json-verdict@1"]('{"verdict":"A","verdict":"B"}') == "B"


CONFORMANCE: list[tuple[str, Verdict]] = [
    ("VERDICT: A", "A"),
    ("verdict:tie", "TIE"),
    ("VERDICT: A wins", "A"),
    ("VERDICT: A\nVERDICT: B\nthanks", "B"),
    ("- VERDICT: A", "TIE"),
    ("**VERDICT: A**", "TIE"),
    ("VERDICT: [A]", "TIE"),
]
FAULTS: list[tuple[str, Verdict]] = [
    ("VERDICT: Both equal", "B"),
    ("VERDICT: answer is B", "A"),
    ("VERDICT: A, B, or TIE", "A"),
    ("VERDICT: tied", "TIE"),
    ("Both are wrong, in the same", "TIE"),
    ("  \n\t\n", "TIE"),
]
OTHERS: list[tuple[str, Verdict]] = [
    ("VERDICT: B\nVERDICT: neither", "B"),
    ("VERDICT: B\nMy VERDICT: A", "B"),
    ("VERDICT : B", "TIE"),
    ("VERDICT B", "TIE"),
    ("VERDICT:  B \r\n\r\n", "B"),
    ("VERDICT: B\u2028and more", "B"),
    ("VERDICT:", "TIE"),
    ("VERDICT: a: b", "A"),
]


@pytest.mark.parametrize(("reply", "verdict"), [*CONFORMANCE, *FAULTS, *OTHERS])
def test_the_old_scripts_are_reproduced_with_their_faults(reply: str, verdict: Verdict) -> None:
    """A prefix of the last such line decides, silence is a tie: what that did can be measured."""
    assert parse_leniently(reply) == verdict


@given(reasoning=st.text(), verdict=st.sampled_from(("A", "B", "TIE")))
def test_both_parsers_agree_on_a_reply_that_keeps_to_the_protocol(
    reasoning: str, verdict: Verdict
) -> None:
    """So what they disagree on is what a judge got wrong."""
    reply = f"{reasoning}\nVERDICT: {verdict}"

    assert parse_leniently(reply) == parse_verdict(reply) == verdict


@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_is_found_by_its_name_with_or_without_a_version(parser: str) -> None:
    """Who wants the newest need not know which it is."""
    newest = newest_parser(parser.partition("@")[0])

    assert newest_parser(parser) == parser
    assert newest is not None
    assert newest >= parser


@pytest.mark.parametrize("name", ["", "lenient", "final-line@9", "@1", "final-line@"])
def test_an_unknown_parser_is_not_found(name: str) -> None:
    """A name that is nearly right must not choose a parser by chance."""
    assert newest_parser(name) is None


def test_only_the_old_scripts_looked_past_why_a_reply_ended() -> None:
    """A reply cut off before its verdict is not a tie, but was one to them."""
    assert {LENIENT_PARSER} == BLIND_TO_STOPS
    assert PARSER not in BLIND_TO_STOPS
