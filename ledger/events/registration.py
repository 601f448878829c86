"""Events that set a tournament up: its opening, prompts, rubrics, entrants and judges."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from ledger.events.conversations import Messages
from ledger.events.values import Count, Fact, FilledText, Ordinal, Positive, Probability, Value
from ledger.identity import Digest, Dimension, EntrantId, Json, JudgeId, PromptId, digest_of

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


class Prompt(Value, frozen=True):
    """One task text, with its gold answer and expected behaviour if known.

    Of a conversation the text is its transcript, and the turns are what entrants are sent.
    """

    prompt_id: PromptId
    source: str
    subject: str
    text: FilledText
    tags: tuple[str, ...] = ()
    gold_answer: str | None = None
    expected_behavior: Literal["hedge", "answer", "abstain"] | None = None
    category: str | None = None
    messages: Messages | UnsetType = UNSET  # of a conversation; else not stored

    @property
    def turns(self) -> Messages:
        """The turns of a conversation; none of a plain text."""
        return self.messages or ()


class ScoreScale(Value, frozen=True):
    """The scores that a judge may give an answer; higher is better."""

    limits: tuple[float, float] | None = None  # lowest and highest; None: it passes, 1, or fails, 0


class Rubric(Value, frozen=True, kw_only=True, dict=True, gc=True):
    """The versioned text that tells a judge how to compare on one dimension, or how to score."""

    dimension: Dimension  # or the evaluation whose answers are scored
    version: str
    needs_gold: bool
    shows_expected_behavior: bool = False
    text: str
    scale: ScoreScale | UnsetType = UNSET  # of scores; not stored where responses are compared
    turns: Literal["all"] | UnsetType = UNSET  # of several answers; not stored for the last alone

    @property
    def guidance(self) -> str:
        """The text shown to the judge: everything after the version line and the front matter."""
        return self.text.split("+++\n", 2)[-1].strip()

    @cached_property
    def digest(self) -> Digest:
        """Digest of the whole file, version line and front matter included."""
        return digest_of(self.text)


class Instructions(Value, frozen=True):
    """The versioned text that a judge is sent before the rubric."""

    version: str
    text: str

    @property
    def guidance(self) -> str:
        """The text shown to the judge: everything after the version line."""
        return self.text.partition("\n")[2].strip()

    @property
    def digest(self) -> Digest:
        """Digest of the whole file, version line included."""
        return digest_of(self.text)


class Adapter(Value, frozen=True):
    """A LoRA adapter, a folder or a file, and the digest of its content."""

    path: str
    digest: Digest


class Hydra(Value, frozen=True, kw_only=True):
    """Several heads over one trunk, and their decoding.

    Each head is the last layers with LoRA shards of its own. A shard is one head's adapter:
    security is merged first, then robustness.
    """

    heads_depth: Ordinal  # the layers of a head
    security: tuple[Adapter, ...]  # one shard a head
    robustness: tuple[Adapter, ...] = ()  # likewise; empty: none is merged
    uncertainty: Adapter | None = None  # of one head more, that says p_correct; None: not asked
    bypass_jury: bool = False  # one head is sampled alone
    beta: Positive = 1.0  # the exponent of every expert in the product

    @property
    def determinants(self) -> Json:
        """What determines the responses; the jury's settings do not matter if it is bypassed."""
        return {
            "heads_depth": self.heads_depth,
            "security": [shard.digest for shard in self.security],
            "robustness": [shard.digest for shard in self.robustness],
            "uncertainty": self.uncertainty.digest if self.uncertainty else None,
            "jury": None if self.bypass_jury else {"beta": self.beta},
        }


SAMPLER: Final = 2
"""The version of how weights are sampled here: under another, a seed gives other texts."""


class Entrant(Value, frozen=True, kw_only=True, dict=True, gc=True):
    """A configuration that competes: weights, adapters merged in order, decoding settings.

    Weights behind an endpoint cannot be read: their name and a revision stand for them. The
    server's address does not determine its answers, and is not part of the entrant.
    """

    entrant_id: EntrantId
    loader: Literal["hf", "hydra", "endpoint", "recorded"]
    weights: str  # a folder, what a server calls them, or the file of recorded answers
    weights_digest: Digest  # of all files, chat template included; or of the answers
    adapters: tuple[Adapter, ...] = ()
    temperature: Positive | None = None  # None: greedy
    max_new_tokens: Ordinal
    dtype: Literal["float32", "bfloat16", "float16"] | None  # None: whatever the server has
    hydra: Hydra | None = None  # of loader "hydra"
    revision: str | None = None  # the commit on the Hub, or what a server's name stands for
    step: Count | None = None  # of the training that made the weights; None: not known
    options: EntrantOptions | UnsetType = UNSET  # not stored where all are the default
    sampler: Ordinal | None = None  # SAMPLER of its texts; None: the first, or a server's own

    @property
    def chosen(self) -> EntrantOptions:
        """How it is prompted and sampled, the defaults included."""
        return self.options or DEFAULT_OPTIONS

    @cached_property
    def digest(self) -> Digest:
        """Digest of what determines the responses: not the label, nor the paths of the files."""
        heads = {"hydra": self.hydra.determinants} if self.hydra else {}
        return digest_of(
            {
                "loader": self.loader,
                "weights": self.weights_digest,
                "adapters": [adapter.digest for adapter in self.adapters],
                "temperature": self.temperature,
                "max_new_tokens": self.max_new_tokens,
                "dtype": self.dtype,
                **heads,
                **({"options": self.options.fields} if self.options else {}),
                **({"sampler": self.sampler} if self.sampler and self.is_seeded else {}),
            }
        )

    @property
    def fields(self) -> dict[str, Json]:
        """The entrant as JSON; fields of other loaders, and what is not known, are left out."""
        return {
            name: value
            for name, value in super().fields.items()
            if name not in {"hydra", "revision", "step", "sampler"} or value is not None
        }

    @property
    def is_seeded(self) -> bool:
        """Say whether the seed matters: even a greedy Hydra draws which head drafts."""
        return self.temperature is not None or self.hydra is not None


Provider = Literal["reference", "anthropic", "anthropic-batch", "endpoint", "openai-batch", "hf"]
BATCHED: Final[Mapping[str, Provider]] = {
    "anthropic-batch": "anthropic",
    "openai-batch": "endpoint",
}
"""The providers that take batches, each with the one that asks the same one by one."""


TOGETHER: Final = ("together", "true")
"""The parameter of a judge that gives its verdicts on all dimensions in one reply."""


class JudgeSettings(Value, frozen=True, dict=True, gc=True):
    """A judge: a provider's model and the settings that determine its replies."""

    judge_id: JudgeId
    provider: Provider
    model: str
    parameters: tuple[tuple[str, str | float], ...] = ()
    instructions: Instructions | UnsetType = UNSET  # its own; not stored where it has none

    @cached_property
    def digest(self) -> Digest:
        """Digest of what determines the replies to a text: neither the label nor batching.

        Whether dimensions are asked together stands in the text itself.
        """
        own = [self.instructions.guidance] if self.instructions else []
        parameters = [parameter for parameter in self.parameters if parameter != TOGETHER]
        return digest_of([self.company, self.model, parameters, *own])

    @cached_property
    def is_together(self) -> bool:
        """Say whether it is asked for its verdicts on all dimensions in one request."""
        return TOGETHER in self.parameters

    def told(self, by_default: Instructions) -> Instructions:
        """Return the instructions that it is sent: its own, or else those of the tournament."""
        return self.instructions or by_default

    @property
    def is_batched(self) -> bool:
        """Say whether the judge is asked in batches."""
        return self.provider in BATCHED

    @property
    def company(self) -> Provider:
        """The provider, whether it is asked in batches or not."""
        return BATCHED.get(self.provider, self.provider)

    @cached_property
    def protocol(self) -> str:
        """How a verdict is asked for: `line`, the default, or `schema`."""
        return str(dict(self.parameters).get("protocol", "line"))

    @property
    def max_tokens(self) -> int | None:
        """Tokens of its longest reply; None: nothing limits them."""
        most = dict(self.parameters).get("max_tokens")
        return None if most is None else int(most)


class Reference(Value, frozen=True):
    """A label and the content digest that it stands for at this opening."""

    label: str
    digest: Digest


class TournamentOpened(Fact, frozen=True):
    """A tournament was opened, or opened again under other settings: the newest opening holds.

    The references are the roster, bank and rubrics in their order. What they refer to is registered
    by other events, so an unchanged prompt is not stored again. The judge's instructions are one
    short text, and stand here whole.
    """

    key_fields = ("opening",)  # an earlier configuration may come back, so openings are numbered
    opening: Ordinal
    tournament_id: str
    configuration: str  # canonical JSON of the resolved settings
    configuration_digest: Digest
    entrants: tuple[Reference, ...]
    prompts: tuple[Reference, ...]
    rubrics: tuple[Reference, ...]
    judges: tuple[Reference, ...]
    instructions: Instructions
    generation_seed: Count
    versions: tuple[tuple[str, str], ...]  # (package, version)


class Registered(Fact, frozen=True):
    """A prompt, rubric, entrant or judge was registered; a corrected one keeps its label."""

    digest: Digest  # of the whole value
    label_at: ClassVar[tuple[str, str]]  # the field of what was registered, and its own for a label

    @property
    def content(self) -> Value:
        """What was registered."""
        content: Value = getattr(self, self.label_at[0])
        return content

    @property
    def reference(self) -> Reference:
        """How an opening refers to it: by label and digest."""
        return Reference(label=getattr(self.content, self.label_at[1]), digest=self.digest)

    @property
    def natural_key(self) -> tuple[str, ...]:
        """The same content under the same label is registered once."""
        return (self.reference.label, self.digest)


class PromptRegistered(Registered, frozen=True):
    """A prompt was registered."""

    prompt: Prompt
    label_at = ("prompt", "prompt_id")


class RubricRegistered(Registered, frozen=True):
    """A rubric was registered, with its full text."""

    rubric: Rubric
    label_at = ("rubric", "dimension")


class EntrantRegistered(Registered, frozen=True):
    """An entrant was registered, with the digests of its files."""

    entrant: Entrant
    label_at = ("entrant", "entrant_id")


class JudgeRegistered(Registered, frozen=True):
    """A judge was registered, with its settings."""

    judge: JudgeSettings
    label_at = ("judge", "judge_id")


Registration: TypeAlias = PromptRegistered | RubricRegistered | EntrantRegistered | JudgeRegistered
