"""The main screens on terminals of three widths: as agreed on, and nothing in two pieces."""

import pytest
from rich.cells import cell_len

from tests.support.goldens.widths import FOLDER, WIDTHS, drawings, in_pipe, on_terminal, widths

SCREENS = widths()
HINT = "hidden: widen the terminal or use --json"
BAR = "\N{BOX DRAWINGS LIGHT HORIZONTAL}\N{BLACK CIRCLE}"


@pytest.mark.parametrize(("name", "text"), SCREENS.items(), ids=SCREENS)
def test_a_screen_of_a_width_is_what_was_agreed_on(name: str, text: str) -> None:
    """`python -m tests.support.goldens.widths` writes them."""
    assert text == (FOLDER / name).read_bytes().decode()


@pytest.mark.parametrize(
    "width", [1, *(pytest.param(each, marks=pytest.mark.nightly) for each in (2, 3))]
)
@pytest.mark.parametrize("name", drawings())
def test_nothing_of_the_first_column_is_lost_on_the_narrowest_terminal(
    name: str, width: int
) -> None:
    """However it is broken, it is there, and no table fails."""
    drawn = "".join(on_terminal(drawings()[name], width).split())

    title = in_pipe(drawings()[name]).splitlines()[0]
    assert "".join(title.split()) in drawn


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize("name", drawings())
def test_no_number_id_or_word_is_broken(name: str, width: int) -> None:
    """A rating of 1564 over .4 is neither; only what is wider than the terminal runs on."""
    draw = drawings()[name]
    lines = on_terminal(draw, width).splitlines()
    whole = {*in_pipe(draw).split(), *HINT.split()}

    broken = {
        word
        for line in lines
        for word in line.split()
        if word not in whole
        and word.rstrip(",;") not in whole
        and not word.isdecimal()
        and {*word} - {*BAR}
    }
    too_long = [line for line in lines if cell_len(line) > width and " " in line.strip()]

    assert not broken
    assert not too_long
