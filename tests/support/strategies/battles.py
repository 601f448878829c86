"""Hypothesis strategies: battles that a rating can be made of."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.support.builders.battles import Battle

NAMES: Final = ("zoe", "amy", "kim", "Bob", "élan")
WHOLE: Final = st.sampled_from((0.0, 0.5, 1.0))
SOFT: Final = st.floats(min_value=0, max_value=1)


@st.composite
def any_battles(
    draw: DrawFn, *, scores: SearchStrategy[float] = WHOLE, min_size: int = 0
) -> list[Battle]:
    """Return any battles of up to five entrants, on up to four prompts."""
    pairs = st.permutations(NAMES).map(lambda names: names[:2])
    drawn = st.tuples(pairs, scores, st.integers(0, 3), st.sampled_from((1.0, 1.0, 3.0)))
    rows = draw(st.lists(drawn, min_size=min_size, max_size=12))
    return [Battle(a, b, score, prompt, weight) for (a, b), score, prompt, weight in rows]


@st.composite
def comparable(draw: DrawFn, *, scores: SearchStrategy[float] = WHOLE) -> list[Battle]:
    """Return battles in which everybody took something off everybody, at least through others."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(2, 5))]
    ring = [
        Battle(a, b, 1.0, f"ring {i}")
        for i, (a, b) in enumerate(zip(names, names[1:] + names[:1], strict=True))
    ]
    others = draw(any_battles(scores=scores))
    return [*ring, *(each for each in others if {each.a, each.b} <= {*names})]
