"""Figures about judges."""

from projections.ratings.judge_bias.figures import Bounded, figure, missing


def test_a_figure_says_in_what_and_on_how_much() -> None:
    """A share of verdicts is not one of pairs."""
    found = figure("flips", Bounded(0.25, 0.1, 0.4), 8, of="all pairs")

    assert found[2:] == ("flips", "all pairs", 0.25, 0.1, 0.4, "share", 8, "pairs", None)


def test_a_missing_figure_says_why() -> None:
    """Null alone would be taken for a fault."""
    found = missing("skill", "nobody else judged")

    assert found[2:] == (
        "skill",
        None,
        None,
        None,
        None,
        "factor",
        0,
        "verdicts",
        "nobody else judged",
    )
