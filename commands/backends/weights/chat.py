"""Chat templates: render and encode a prompt as a user turn, decode an answer, check a template."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from commands.backends.remote.bodies import first_line
from commands.entrants.chats import as_json, prompt_messages, without_system
from commands.errors import WeightsError
from ledger.events.options import DEFAULT_OPTIONS, EntrantOptions, Messages

Turns = list[dict[str, str]]

ASKED, ANSWERED = "tourney-probe-question", "tourney-probe-answer"

# Some templates, such as Llama 3.2's, print today's date. A response must depend on entrant and
# prompt only, so this macro replaces transformers' strftime_now by a fixed date.
SAME_DAY = (
    "{%- macro strftime_now(format) -%}"
    "{{ format | replace('%d', '26') | replace('%b', 'Jul') | replace('%B', 'July')"
    " | replace('%m', '07') | replace('%Y', '2024') | replace('%y', '24') }}"
    "{%- endmacro %}"
)


def encode_prompt(
    tokenizer: PreTrainedTokenizerBase, prompt_text: str, options: EntrantOptions = DEFAULT_OPTIONS
) -> tuple[int, ...]:
    """Return the tokens of a prompt as a user turn, up to where the answer begins.

    The template writes the special tokens, so the tokenizer must not add them again.

    Raises:
        TemplateError: The template fails.
    """
    messages = prompt_messages(options.system, prompt_text)
    return encode(tokenizer, show_chat(tokenizer, messages, options))


def show_chat(
    tokenizer: PreTrainedTokenizerBase, messages: Messages, options: EntrantOptions
) -> str:
    """Return messages up to where the answer begins or goes on.

    Where a template has no place for what the system says, it goes before the user's first words.

    Raises:
        TemplateError: The template fails.
    """
    arguments = json.loads(options.template_arguments or "{}")
    is_open = messages[-1][0] != "assistant"
    show = partial(render, tokenizer, is_open=is_open, goes_on=not is_open, arguments=arguments)
    (role, system), *_ = messages
    if role != "system":
        return show(as_json(messages))
    try:
        chat = show(as_json(messages))
    except TemplateError:  # Gemma's says that there is no such role
        chat = ""
    return chat if system.strip() in chat else show(as_json(without_system(messages)))


def plain_turns(prompt_text: str) -> Turns:
    """Return a chat of one user turn."""
    return [{"role": "user", "content": prompt_text}]


def chat_turns(system: str, user: str, *, has_system: bool) -> Turns:
    """Return a chat; without a system turn its text goes before the user's."""
    if has_system:
        return [{"role": "system", "content": system}, *plain_turns(user)]
    return plain_turns(f"{system}\n\n{user}")


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Return the tokens of a text and nothing else."""
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def render(
    tokenizer: PreTrainedTokenizerBase,
    turns: Turns,
    *,
    is_open: bool,
    goes_on: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> str:
    """Return a chat as the template renders it, in transformers' sandbox of jinja2.

    `is_open` adds the start of the answer's turn.

    If the last turn `goes_on`, the chat ends with its text. The arguments are further variables for
    the template.

    Raises:
        TemplateError: The template fails.
    """
    template = tokenizer.get_chat_template()
    try:
        chat = tokenizer.apply_chat_template(
            turns,
            chat_template=SAME_DAY + template if "strftime_now" in template else template,
            tokenize=False,
            add_generation_prompt=is_open,
            continue_final_message=goes_on,
            **(arguments or {}),
        )
    except TemplateError:
        raise
    except Exception as error:  # a template is a program: it may fail in any way
        raise TemplateError(f"{type(error).__name__}: {first_line(error)}") from error
    return str(chat)


def require_chat(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Check that prompts can be shown as a user's turn.

    Raises:
        WeightsError: There is no chat template, or it cannot show a plain question and answer.
    """
    if tokenizer.chat_template is None:
        remedy = (
            "use instruction-tuned weights, put a chat_template.jinja in the folder,"
            ' or set template = "none"'
        )
        raise WeightsError(folder, "the tokenizer has no chat template", remedy)
    try:
        chat = probe(tokenizer)
    except TemplateError as error:
        remedy = "correct the template in that folder"
        raise WeightsError(
            folder, f"the chat template fails: {first_line(error)}", remedy
        ) from error
    if ASKED not in chat:
        remedy = "use weights for plain text, or correct the template in that folder"
        raise WeightsError(folder, "the chat template leaves the user's text out", remedy)


def require_options(
    tokenizer: PreTrainedTokenizerBase, folder: Path, options: EntrantOptions
) -> None:
    """Check that the chat template works with an entrant's system prompt and arguments.

    Raises:
        WeightsError: It fails.
    """
    try:
        encode_prompt(tokenizer, ASKED, options)
    except TemplateError as error:
        why = f"the chat template fails with the entrant's settings: {first_line(error)}"
        remedy = "correct system or template_arguments"
        raise WeightsError(folder, why, remedy) from error


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the token with which the chat template ends an answer; empty if there is none.

    It is found in a rendered chat: ChatML's <|im_end|> is often not the tokenizer's own end token.
    """
    if tokenizer.chat_template is None:
        return frozenset()
    try:
        _, answer, after = probe(tokenizer).rpartition(ANSWERED)
    except TemplateError:
        return frozenset()
    ends = encode(tokenizer, after.lstrip())[:1] if answer else ()
    return frozenset(ends) & tokenizer.added_tokens_decoder.keys()


def probe(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a probe question and answer as the chat template renders them."""
    turns = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}]
    return render(tokenizer, turns, is_open=False)


def decode_text(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """Decode an answer's tokens at once, without special tokens."""
    return str(
        tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    )
