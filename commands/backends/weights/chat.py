"""Chat templates: render and encode a prompt as a user turn, decode an answer, check a template."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from commands.backends.remote.bodies import first_line
from commands.entrants.chats import as_json, prompt_messages, without_system
from commands.errors import WeightsError
from ledger.events.conversations import Messages
from ledger.events.registration import DEFAULT_OPTIONS, EntrantOptions

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

    Raises:
        TemplateError: The template fails.
    """
    messages = prompt_messages(options.system, prompt_text)
    return encode(tokenizer, show_chat(tokenizer, messages, options))


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Return the tokens of a text and nothing else: a template writes the special tokens."""
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def decode_text(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """Decode an answer's tokens at once, without special tokens."""
    return str(
        tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    )


def show_chat(
    tokenizer: PreTrainedTokenizerBase,
    messages: Messages,
    options: EntrantOptions = DEFAULT_OPTIONS,
) -> str:
    """Return messages up to where the answer begins or goes on.

    Where a template has no place for what the system says, it goes before the user's first words.

    Raises:
        TemplateError: The template fails.
    """
    arguments = json.loads(options.template_arguments or "{}")
    show = partial(_render, tokenizer, arguments=arguments)
    (role, system), *_ = messages
    if role != "system":
        return show(messages)
    try:
        chat = show(messages)
    except TemplateError:  # Gemma's says that there is no such role
        chat = ""
    return chat if system.strip() in chat else show(without_system(messages))


def _render(
    tokenizer: PreTrainedTokenizerBase,
    messages: Messages,
    *,
    arguments: Mapping[str, Any] | None = None,
    is_whole: bool = False,
) -> str:
    """Return a chat as the template renders it, in transformers' sandbox of jinja2.

    Unless it is whole, it ends with the start of an answer, or within the answer that it ends with.

    Raises:
        TemplateError: The template fails.
    """
    template = tokenizer.get_chat_template()
    goes_on = messages[-1][0] == "assistant" and not is_whole
    try:
        chat = tokenizer.apply_chat_template(
            as_json(messages),
            chat_template=SAME_DAY + template if "strftime_now" in template else template,
            tokenize=False,
            add_generation_prompt=not (goes_on or is_whole),
            continue_final_message=goes_on,
            **(arguments or {}),
        )
    except TemplateError:
        raise
    except Exception as error:  # a template is a program: it may fail in any way
        raise TemplateError(f"{type(error).__name__}: {first_line(error)}") from error
    return str(chat)


def require_chat(
    tokenizer: PreTrainedTokenizerBase, folder: Path, chosen: Iterable[EntrantOptions] = ()
) -> None:
    """Check that prompts can be shown as a user's turn, with entrants' settings.

    Raises:
        WeightsError: There is no chat template, it cannot show a plain question and answer, or it
            fails with an entrant's system prompt and arguments.
    """
    if tokenizer.chat_template is None:
        remedy = (
            "use instruction-tuned weights, put a chat_template.jinja in the folder,"
            ' or set template = "none"'
        )
        raise WeightsError(folder, "the tokenizer has no chat template", remedy)
    why, remedy = "the chat template fails", "correct the template in that folder"
    try:
        chat = _probe(tokenizer)
        why = "the chat template fails with the entrant's settings"
        remedy = "correct system or template_arguments"
        for options in chosen:
            encode_prompt(tokenizer, ASKED, options)
    except TemplateError as error:
        raise WeightsError(folder, f"{why}: {first_line(error)}", remedy) from error
    if ASKED not in chat:
        remedy = "use weights for plain text, or correct the template in that folder"
        raise WeightsError(folder, "the chat template leaves the user's text out", remedy)


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the token with which the chat template ends an answer; empty if there is none.

    It is found in a rendered chat: ChatML's <|im_end|> is often not the tokenizer's own end token.
    """
    if tokenizer.chat_template is None:
        return frozenset()
    try:
        _, answer, after = _probe(tokenizer).rpartition(ANSWERED)
    except TemplateError:
        return frozenset()
    ends = encode(tokenizer, after.lstrip())[:1] if answer else ()
    return frozenset(ends) & tokenizer.added_tokens_decoder.keys()


def _probe(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a probe question and answer as the chat template renders them."""
    return _render(tokenizer, (("user", ASKED), ("assistant", ANSWERED)), is_whole=True)
