"""How entrants are prompted and sampled, and which keys of a request tourney sets itself."""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from ledger.events.options import PLACE

_LENGTHS: Final = frozenset({"max_tokens", "max_completion_tokens"})
_OF_THE_REQUEST: Final = frozenset(
    {"model", "messages", "temperature"} | {"reasoning_effort", "response_format", "n", "stream"}
)
_OF_AN_ENTRANT: Final = _OF_THE_REQUEST - {"reasoning_effort", "response_format"} | {
    *("prompt", "seed", "stop", "top_p", "top_k", "min_p", "repetition_penalty"),
    "chat_template_kwargs",
}
_OF_THE_TEMPLATE: Final = frozenset(
    {"messages", "conversation", "chat_template", "add_generation_prompt", "tokenize"}
    | {"continue_final_message", "return_dict", "return_tensors", "tokenizer_kwargs"}
)


def _adds_only(
    given: dict[str, JsonValue], taken: frozenset[str], length: str
) -> dict[str, JsonValue]:
    """Return further keys of a request, after checking that tourney sets none of them."""
    twice = sorted(taken & given.keys())
    if _LENGTHS & given.keys():
        why = "set {length} instead: tourney sends it under the name that the server takes"
        raise PydanticCustomError("taken", why, {"length": length})
    if twice:
        raise PydanticCustomError(
            "taken", "tourney sets {twice} itself", {"twice": ", ".join(twice)}
        )
    return given


def adds_to_query(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Check further keys of a judge's requests."""
    return _adds_only(body, _OF_THE_REQUEST, "max_tokens")


def adds_to_prompt(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Check further keys of an entrant's requests."""
    return _adds_only(body, _OF_AN_ENTRANT, "max_new_tokens")


Text: TypeAlias = Annotated[str, Field(min_length=1)]


_LATER_KEYS: Final = frozenset(
    {"system", "template", "template_arguments", "prompt_format", "stop", "extra_body"}
    | {"top_p", "top_k", "min_p", "repetition_penalty"}
)


class Prompting(BaseModel):
    """Say how prompts are shown to an entrant, and from which tokens it samples."""

    model_config = ConfigDict(defer_build=True, use_attribute_docstrings=True)

    system: Text | None = None
    """System prompt. If a chat template has no place for it, it precedes the prompt."""
    template_arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """Variables for the chat template, as `{ enable_thinking = false }`."""
    template: Literal["chat", "none"] = "chat"
    """`chat` shows a prompt as a user's turn; `none` sends the text alone, for base models."""
    prompt_format: Text | None = None
    """Text around each prompt, as few-shot examples; `{prompt}` stands for the prompt."""
    stop: tuple[Text, ...] = ()
    """Texts that end a response. They are not part of it."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Sample from the smallest set of likeliest tokens that reaches this probability."""
    top_k: int | None = Field(default=None, ge=1)
    """Sample from this many likeliest tokens."""
    min_p: float | None = Field(default=None, gt=0, le=1)
    """Sample from tokens at least this many times as likely as the likeliest."""
    repetition_penalty: float | None = Field(default=None, gt=0)
    """Above 1: make tokens of the prompt and the response so far less likely."""

    @model_serializer(mode="wrap")
    def _as_chosen(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is the default: earlier releases opened tournaments without these keys."""
        fields = type(self).model_fields
        default = {
            name: each.get_default(call_default_factory=True) for name, each in fields.items()
        }
        return {
            name: value
            for name, value in whole(self).items()
            if name not in _LATER_KEYS or getattr(self, name) != default[name]
        }

    @field_validator("template_arguments")
    @classmethod
    def _are_not_tourneys(cls, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return _adds_only(arguments, _OF_THE_TEMPLATE, "max_new_tokens")

    @field_validator("prompt_format")
    @classmethod
    def _has_a_place(cls, text: str | None) -> str | None:
        if text is not None and text.count(PLACE) != 1:
            raise PydanticCustomError("place", "must have {prompt} once")
        return text

    @field_validator("top_p", "top_k", "min_p")
    @classmethod
    def _is_sampled(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("temperature", value) is None:
            raise PydanticCustomError("greedy", "greedy decoding ignores it: set a temperature")
        return value

    @field_validator("template")
    @classmethod
    def _leaves_nothing_unread(cls, template: str, info: ValidationInfo) -> str:
        unread = [key for key in ("system", "template_arguments") if info.data.get(key)]
        if template == "none" and unread:
            why = "without a chat template nothing reads {unread}"
            raise PydanticCustomError("plain", why, {"unread": " and ".join(unread)})
        return template
