"""How an entrant is prompted and sampled."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from ledger.events.values import Ordinal, Positive, Probability, Value

PLACE: Final = "{prompt}"
"""Stands for the prompt in the text around it."""


class EntrantOptions(Value, frozen=True, kw_only=True, omit_defaults=True):
    """How an entrant is prompted and sampled, as far as it is not the default.

    What is left out is not stored, so a setting that comes later changes no older entrant.
    """

    system: str | None = None  # the system prompt
    template: Literal["chat", "none"] = "chat"  # none: prompts are sent as plain text
    template_arguments: str | None = None  # of the chat template, as canonical JSON
    prompt_format: str | None = None  # the text around a prompt, which has PLACE once
    stop: tuple[str, ...] = ()  # texts that end a response
    top_p: Probability | None = None
    top_k: Ordinal | None = None
    min_p: Probability | None = None
    repetition_penalty: Positive | None = None
    extra_body: str | None = None  # further keys of a server's request, as canonical JSON

    def around(self, prompt_text: str) -> str:
        """Return a prompt with the text around it."""
        return (self.prompt_format or PLACE).replace(PLACE, prompt_text, 1)

    def in_evaluations(self, system: str | None) -> "EntrantOptions | UnsetType":
        """Return what holds in evaluations, which prompt and sample in ways of their own.

        A system prompt that the evaluation sets goes before the entrant's.
        """
        return EntrantOptions(
            system=self.system if system is None else system,
            template_arguments=self.template_arguments,
            extra_body=self.extra_body,
        ).stored

    @property
    def stored(self) -> "EntrantOptions | UnsetType":
        """The options as an entrant has them: nothing where all are the default."""
        return UNSET if self == DEFAULT_OPTIONS else self


DEFAULT_OPTIONS: Final = EntrantOptions()
