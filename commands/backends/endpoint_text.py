"""Read what a server generated, checked: OpenAI's client hands on whatever a server sends."""

from typing import Annotated

import msgspec

from commands.backends.endpoint import Unanswered
from commands.backends.json_body import decoded
from commands.ports import GeneratedText, GenerationFailure
from ledger.events.values import Count, Usage
from ledger.identity import Digest


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: Count
    completion_tokens: Count


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None  # the model's own words, in another place


class _Choice(msgspec.Struct, frozen=True):
    finish_reason: str
    message: _Message | None = None  # of a chat
    text: str | None = None  # of a plain completion

    @property
    def said(self) -> str:
        """What the model said, wherever it stands."""
        if self.message is None:
            return self.text or ""
        return self.message.content or self.message.refusal or ""


class _Completion(msgspec.Struct, frozen=True):
    choices: Annotated[tuple[_Choice, ...], msgspec.Meta(min_length=1)]
    usage: _Usage  # without it nobody knows how long a response is


def text_of(
    response_key: Digest, body: bytes, *, elapsed_s: float
) -> GeneratedText | GenerationFailure | Unanswered:
    """Return what a server answered to a task, chat or not.

    Raises:
        msgspec.DecodeError: It is no completion.
    """
    completion = decoded(body, _Completion)
    choice, usage = completion.choices[0], completion.usage
    match choice.finish_reason:
        case "stop" | "length" as finish_reason:
            return GeneratedText(
                response_key=response_key,
                text=choice.said,
                finish_reason=finish_reason,
                n_prompt_tokens=usage.prompt_tokens,
                n_generated_tokens=usage.completion_tokens,
                elapsed_s=elapsed_s,
            )
        case "content_filter":
            detail = "the server's filter kept the answer back, or part of it"
            used = Usage(n_input=usage.prompt_tokens, n_output=usage.completion_tokens)
            return GenerationFailure(response_key, "refused", detail, used)
        case other:
            return Unanswered("errored", f"the answer ended with {other!r}")
