"""How an entrant is prompted and sampled, as far as it is not the default."""

from msgspec import UNSET

from ledger.events.registration import EntrantOptions
from tests.support.builders.events import entrant


def test_a_prompt_stands_where_its_place_is() -> None:
    """A prompt may have the placeholder in it, and is shown as it is."""
    assert EntrantOptions(prompt_format="Q: {prompt}\nA:").around("{prompt}?") == "Q: {prompt}?\nA:"
    assert EntrantOptions().around("why?") == "why?"


def test_defaults_are_not_stored() -> None:
    """Else every older entrant would be another one."""
    assert EntrantOptions().stored is UNSET
    assert EntrantOptions(top_k=1).stored == EntrantOptions(top_k=1)
    assert entrant("any").chosen == EntrantOptions()


def test_an_evaluation_keeps_what_is_not_its_own() -> None:
    """It brings its prompts, stop texts and sampling."""
    chosen = EntrantOptions(system="short", stop=("X",), template="none", top_k=3)

    assert chosen.in_evaluations(None) == EntrantOptions(system="short")
    assert EntrantOptions(top_k=3).in_evaluations(None) is UNSET
    assert chosen.in_evaluations("long") == EntrantOptions(system="long")
