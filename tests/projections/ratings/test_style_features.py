"""What is counted of how a response is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.ratings.style_features import Style, differences_in_style, style_of
from tests.support.patience import at_once

HEADERS = [
    ("# One\n## Two\n###### Six", 3),
    ("####### seven", 0),
    ("#tag", 0),
    ("text # no", 0),
    ("   # still", 1),
    ("    # code", 0),
    ("#\n##", 2),
]
LISTS = [
    ("- a\n* b\n+ c", 3),
    ("1. a\n2) b\n10. c", 3),
    ("  - nested\n\t- deeper", 2),
    ("-no\n1.5 no\n---\n**no**", 0),
    ("a - no", 0),
]
BOLD = [
    ("**a** and __b c__", 2),
    ("***both***", 1),
    ("** no **", 0),
    ("2 * 3 ** 4", 0),
    ("**over\nlines**", 0),
    ("****", 0),
]
FENCED = [
    "```\n# no\n- no\n**no**\n```",
    "```python\n# no\n```",
    "~~~\n# no\n```\n# no\n~~~",
    "````\n```\n# no\n```\n# no\n````",
    "  ```\n# no\n  ```",
    "```\n# no, to the end\n- no",
]


@pytest.mark.parametrize(
    ("what", "text", "n"),
    [
        *(("n_headers", *each) for each in HEADERS),
        *(("n_list_items", *each) for each in LISTS),
        *(("n_bold", *each) for each in BOLD),
    ],
)
def test_headers_list_items_and_bold_spans_are_counted(what: str, text: str, n: int) -> None:
    """One to six hashes and a blank; bullets and numbers at any depth; stars or underlines."""
    assert getattr(style_of(text), what) == n


@pytest.mark.parametrize("code", FENCED)
def test_code_has_a_length_and_no_layout(code: str) -> None:
    """A comment of Python looks like a header, and is none."""
    assert style_of(code) == Style(len(code), 0, 0, 0)


def test_what_follows_code_counts() -> None:
    """Backticks in a line open nothing."""
    text = "```\n# no\n```\n# yes\n```not code```\n- yes\n**yes**"

    assert style_of(text) == Style(len(text), 1, 1, 1)


@given(text=st.text() | st.text(alphabet="#-*_`~1. \t\n"))
def test_any_text_has_a_style(text: str) -> None:
    """Responses are whatever entrants wrote."""
    style = style_of(text)

    assert style.n_characters == len(text)
    assert min(style.n_headers, style.n_list_items, style.n_bold) >= 0


@pytest.mark.parametrize("part", ["**a", "__", "*", "#", " ", "`", "```\n", "```a`", "- ", "\n"])
def test_long_texts_are_counted_at_once(part: str) -> None:
    """An entrant that loops fills its whole response."""
    with at_once():
        style = style_of(part * (100_000 // len(part)))

    assert style.n_characters == 100_000 // len(part) * len(part)


def test_features_by_hand() -> None:
    """29 characters against 14, and 2 headers of 30 against 1 of 15: longer, not denser."""
    features = differences_in_style(["#\n#\n" + 25 * "x"], ["#\n- \n- \n- \nabc"])

    assert {name: column.tolist() for name, column in features.items()} == {
        "length": pytest.approx([15 / 43]),
        "headers": [0.0],
        "lists": pytest.approx([-0.2 / 1.2]),
        "bold": [0.0],
    }


def test_empty_responses_are_of_equal_length() -> None:
    """Nothing divided by nothing is no difference."""
    features = differences_in_style([""], [""])

    assert [column.tolist() for column in features.values()] == [[0.0]] * 4


@given(texts=st.lists(st.tuples(st.text("#- *\na"), st.text("#- *\na"))))
def test_exchanging_responses_changes_the_sign(texts: list[tuple[str, str]]) -> None:
    """Features are differences, by 1 at most: which response is a is arbitrary."""
    a, b = [first for first, _ in texts], [second for _, second in texts]

    forth, back = differences_in_style(a, b), differences_in_style(b, a)

    for name, column in forth.items():
        assert column.tolist() == (-back[name]).tolist()
        assert not column.size or abs(column).max() <= 1
