"""The part that all queries of a dimension share is long enough to be cached."""

from pathlib import Path

import pytest
from anthropic import Anthropic

from commands.backends.anthropic.requests import AnthropicTokens
from commands.settings.inputs import read_rubric
from commands.settings.schema import JudgeSection
from commands.spending.prices import price_table
from ledger.identity import Dimension
from projections.verdicts.queries import system_text
from tests.commands.backends.anthropic_builders import judge_settings, queries

RUBRICS = Path(__file__).parents[3] / "rubrics"
# As the fake counts them: a token for four bytes. Tokenizers since Opus 4.7 find a third more.
RECORDED = {"factuality": 1_064, "calibration": 1_070, "clinical_utility": 1_075}


@pytest.mark.parametrize(("dimension", "n_recorded"), RECORDED.items())
def test_header_and_rubric_are_longer_than_the_least_that_is_cached(
    anthropic_client: Anthropic, dimension: str, n_recorded: int
) -> None:
    """Below the least a provider silently caches nothing, and every query pays for the rubric."""
    (query,) = queries(1)
    rubric = read_rubric(RUBRICS / f"{dimension}.md", Dimension(dimension))
    with_it = query._replace(system=system_text(rubric, "line"))
    tokens = AnthropicTokens(anthropic_client, judge_settings())

    (n_with,) = tokens.count([with_it]).values()
    (n_without,) = tokens.count([query._replace(system="judge")]).values()

    defaults = JudgeSection()
    least = [
        price_table().min_cacheable(model)
        for model in (defaults.pilot_model, defaults.headline_model)
    ]
    assert n_with - n_without == pytest.approx(n_recorded, abs=2)
    assert all(n_least is not None and n_recorded > n_least for n_least in least)
