"""Prompts are shown as the weights were trained to see them."""

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from commands.backends.weights.chat import encode_prompt, end_of_turn, require_chat
from commands.errors import WeightsError
from ledger.events.registration import EntrantOptions
from tests.support.weights.tiny import with_template

FOLDER = Path("weights")
BAD = EntrantOptions(template_arguments='{"bad":true}')


def test_a_prompt_becomes_one_user_turn_and_the_answer_is_next(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """The template writes the first token itself; adding it twice would shift the distribution."""
    tokens = encode_prompt(tokenizer, "a dose")

    shown = "<|endoftext|><|user|>\na dose<|im_end|>\n<|assistant|>\n"
    assert tokenizer.decode(list(tokens)) == shown
    assert tokens.count(0) == 1


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        ("{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}", ["<|im_end|>"]),
        ("{% for m in messages %}{{ m.content + '\n' }}{% endfor %}", []),
        (None, []),
        ("{% if %}", []),
        ("{{ bos_token }} no answers", []),
    ],
)
def test_the_end_of_turn_is_read_off_the_template(
    tokenizer: PreTrainedTokenizerFast, template: str | None, ends: list[str]
) -> None:
    """Else weights talk on as the user; but a newline, which answers have, is no end token."""
    found = end_of_turn(with_template(tokenizer, template))

    assert found == {tokenizer.convert_tokens_to_ids(end) for end in ends}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% include 'x' %}{% for m in messages %}{{ m.content }}{% endfor %}", "no loader"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
        ("{% for a in range(10 ** 9) %}{% endfor %}", "OverflowError: Range too big"),
        ("{{ raise_exception('no users here') }}", "no users here"),
        ("{% if %}", "the chat template fails"),
        ("{% for m in messages %}{{ m['content'][0]['text'] }}{% endfor %}", "leaves .* out"),
        (
            "{% if bad %}{{ 1 // 0 }}{% endif %}{{ messages[0].content }}",
            "correct system or template_arguments",
        ),
    ],
)
def test_a_template_that_fails_or_shows_no_prompt_is_refused(
    tokenizer: PreTrainedTokenizerFast, template: str, why: str
) -> None:
    """It comes from whoever made the weights; one for images drops plain text without a word."""
    with pytest.raises(WeightsError, match=why) as refusal:
        require_chat(with_template(tokenizer, template), FOLDER, [EntrantOptions(), BAD])

    assert "\n" not in str(refusal.value)


def test_a_template_that_prints_the_date_prints_the_same_every_day(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """A run resumed tomorrow must ask what it asked today."""
    dated = "{{ strftime_now('%d %b %Y') }}{% for m in messages %}{{ m['content'] }}{% endfor %}"

    tokens = encode_prompt(with_template(tokenizer, dated), ": a dose")

    assert tokenizer.decode(list(tokens)) == "26 Jul 2024: a dose"


def test_a_system_prompt_stands_where_the_template_has_a_place_for_it(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """Gemma's template refuses the role, and others drop it: then it goes before the prompt."""
    options = EntrantOptions(system="be short")
    user_only = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "{{ m.content }}{% endfor %}"
    )
    dropped = (
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    )

    own = tokenizer.decode(list(encode_prompt(tokenizer, "a dose", options)))

    assert "<|system|>\nbe short<|im_end|>" in own
    for template in (user_only, dropped):
        other = with_template(tokenizer, template)
        tokens = encode_prompt(other, "a dose", options)
        assert other.decode(list(tokens)) == "be short\n\na dose"


def test_arguments_reach_the_template(tokenizer: PreTrainedTokenizerFast) -> None:
    """Qwen 3 thinks unless it is told not to."""
    thinking = with_template(tokenizer, "{{ messages[0].content }}{% if think %} hm{% endif %}")
    options = EntrantOptions(template_arguments='{"think":true}')

    assert thinking.decode(list(encode_prompt(thinking, "a", options))) == "a hm"
    assert thinking.decode(list(encode_prompt(thinking, "a"))) == "a"
