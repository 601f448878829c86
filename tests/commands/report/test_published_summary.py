"""The report in short: the finding, its caveats and the ratings, as Markdown."""

from html import unescape

import pytest
from markdown_it import MarkdownIt

from commands.report.published import summary_of
from tests.support.builders.events import entrant, judge, opened, prompt, rubric
from tests.support.builders.reports import HOSTILE, seen, subject, written
from tests.support.builders.worlds import RUBRICS, cup, history


def html_of(text: str) -> str:
    """Return Markdown as GitHub shows it, which lets HTML through."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def test_the_finding_comes_first_then_what_speaks_against_it_then_the_ratings() -> None:
    """A reviewer reads the first line, and the caveats before the numbers."""
    text = summary_of(subject(*history(cup(), "a", "b", "tie", "inconsistent", "a", "refused")))

    parts = text.split("\n\n")
    assert parts[0].startswith("# ")
    assert parts[1].startswith("**")
    assert parts[1].endswith("**")
    assert "- Thin evidence: nobody was compared on more than" in text
    assert text.index("- Thin evidence") < text.index("| Rank | Entrant | Rating |")
    assert parts[-1].startswith("Judge: ")
    assert "; head: " in parts[-1]


def test_each_dimension_has_a_heading_where_there_are_several() -> None:
    """Of one dimension the title says enough."""
    assert summary_of(subject(*history(opened(rubrics=RUBRICS), "a"))).count("\n## ") == 2
    assert "\n## " not in summary_of(subject(*history(cup(), "a")))


@pytest.mark.parametrize("text", HOSTILE)
def test_names_have_no_effect_in_a_pull_request(text: str) -> None:
    """Names are shown as they are, also by what lets HTML through."""
    opening = opened(
        prompts=[prompt("p1")],
        entrants=[entrant(f"{text}1"), entrant(f"{text}2")],
        rubrics=[rubric(text)],
        judges=[judge("reference", model=text)],
    )

    page = html_of(summary_of(subject(*written(opening, [text], "a"))))

    assert "<script" not in page.lower()
    assert "<img" not in page
    assert "<a " not in page
    assert "<iframe" not in page
    assert page.count("<tr>") == 3
    assert " ".join(seen(f"{text}1").split()) in unescape(page)
