"""[[entrants]] by loader, and [[evaluations]]: sections that make an array of tables each.

`Section` is what all sections of tournament.toml have in common.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from commands.settings.api_keys import OPENAI_KEY, VARIABLE
from commands.settings.makers import is_anthropic, with_address
from commands.settings.toml import from_home
from ledger.events.registration import PLACE

Reduce = Literal["mean", "sum", "none"]
UserPath: TypeAlias = Annotated[Path, AfterValidator(from_home)]
"""A path as people write it; a relative one starts from the folder of the settings."""
BASE_URL: Final = r"^https?://[^@?#\s]+$"
"""A server's address; what might hold a password or key is rejected, for settings are recorded."""


class Section(BaseModel):
    """A table; unknown keys are errors. The text below a key says in the docs what it means."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class EvaluationOptions(Section):
    """Say how an evaluation is run: how many samples, and how they are generated."""

    length: int | None = Field(default=None, ge=1)
    """How many items are drawn. Default: all."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the items drawn and of sampling."""
    temperature: float = Field(default=0.0, ge=0)
    """Rollouts: sampling temperature; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Rollouts: sample from the smallest set of likeliest tokens that reaches this probability."""
    samples_per_prompt: int = Field(default=1, ge=1)
    """Rollouts: samples of each item."""
    chat: Literal["turns", "one-turn", "none"] | None = None
    """Ask by the chat template: `turns` shows each example as turns of its own, `one-turn` all
    examples in the user's turn; `none`: plain text. Default: rollouts `one-turn`, others `none`."""
    system: str | None = Field(default=None, min_length=1)
    """System prompt of a chat. Default: the entrant's."""


class EvaluationSection(EvaluationOptions):
    """Add an evaluation, and say how it is run."""

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    """Name of the evaluation in tables."""
    uses: str = Field(min_length=1)
    """A shipped evaluation's name, `file.py:Class` beside the settings, `module:Class`, an entry
    point of group `tourney.evaluations`, or a task of lm-evaluation-harness (its name, or a file
    such as `mmlu.yaml`)."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments of the evaluation's constructor."""
    rubric: UserPath | None = None
    """Rollouts: Markdown file by which a judge scores the answers. Left out: no judge scores."""
    judge: str | None = Field(default=None, min_length=1)
    """With `rubric`: name of the judge, of `[judge]` or `[[jury]]`. Default: that of `[judge]`."""

    @field_validator("judge")
    @classmethod
    def _has_a_rubric(cls, judge: str | None, info: ValidationInfo) -> str | None:
        if judge is not None and info.data.get("rubric", judge) is None:
            raise PydanticCustomError("judge", "the rubric by which it scores is left out")
        return judge

    @property
    def options(self) -> EvaluationOptions:
        """The options alone: how many samples, and how they are generated."""
        return EvaluationOptions(**self.model_dump(include=set(EvaluationOptions.model_fields)))


_LENGTHS: Final = frozenset({"max_tokens", "max_completion_tokens"})
_OF_THE_REQUEST: Final = frozenset({"model", "messages", "n", "stream"})
OF_A_JUDGE: Final = _OF_THE_REQUEST | {"response_format"}
_OF_AN_ENTRANT: Final = _OF_THE_REQUEST | {
    *("prompt", "temperature", "seed", "stop", "top_p", "top_k", "min_p", "repetition_penalty"),
    "chat_template_kwargs",
}
_OF_THE_TEMPLATE: Final = frozenset(
    {"messages", "conversation", "chat_template", "add_generation_prompt", "tokenize"}
    | {"continue_final_message", "return_dict", "return_tensors", "tokenizer_kwargs"}
)


def adds_only(
    given: dict[str, JsonValue], taken: frozenset[str], length: str = "max_new_tokens"
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


Text: TypeAlias = Annotated[str, Field(min_length=1)]


class Prompting(Section):
    """Say how prompts are shown to an entrant, and from which tokens it samples."""

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

    @field_validator("template_arguments")
    @classmethod
    def _are_not_tourneys(cls, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return adds_only(arguments, _OF_THE_TEMPLATE)

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


class EntrantSection(Section):
    """Describe one configuration that competes."""

    loader: str
    id: str = Field(min_length=1)
    """Name of the entrant in tables and options."""


class GeneratingSection(EntrantSection):
    """Describe an entrant whose responses are generated."""

    temperature: float | None = Field(default=None, gt=0)
    """Sampling temperature. Left out: greedy decoding."""
    max_new_tokens: int | None = Field(default=None, gt=0)
    """Longest response, in tokens. Default: as in `[generation]`."""


class WeightsSection(GeneratingSection):
    """Describe an entrant whose weights lie on this machine, or are fetched to it."""

    weights: UserPath
    """Folder of weights and tokenizer, or else `org/name` on the Hugging Face Hub: its main branch,
    or with `org/name@v1` the branch, tag or commit `v1`."""


class HfSection(Prompting, WeightsSection):
    """Load weights by transformers, and merge LoRA adapters into them."""

    loader: Literal["hf"] = "hf"
    """Weights on this machine, loaded by transformers."""
    adapters: tuple[UserPath, ...] = ()
    """LoRA folders of peft, or names on the Hub, merged in this order."""


class HydraSection(WeightsSection):
    """Load several heads over one trunk, each with LoRA shards of its own, that decode together.

    `robustness` and `uncertainty` only name folders: set `rob_checkpoint` to merge the robustness
    shards, and `needs_uncertainty` to use the uncertainty head.
    """

    loader: Literal["hydra"]
    """Several LoRA heads over one trunk."""
    security: UserPath
    """Folder of security shards, one for each head. A head has the last layers of the weights: as
    many as `heads_depth` of its `manifest.json` says, or else from the first that any shard
    changes."""
    robustness: UserPath | None = None
    """Folder of robustness shards, merged after security."""
    rob_checkpoint: int | None = None
    """Training step of the robustness shards; -1 is the final one. Left out: no robustness is
    merged."""
    uncertainty: UserPath | None = None
    """Folder of the uncertainty head."""
    needs_uncertainty: bool = False
    """Let the uncertainty head estimate how likely each response is correct."""
    bypass_jury: bool = False
    """Sample one head alone, drawn by the response's seed."""
    beta: float = Field(default=1.0, gt=0)
    """Exponent of each head in the product of experts."""

    @field_validator("rob_checkpoint")
    @classmethod
    def _goes_with_robustness(cls, checkpoint: int | None, info: ValidationInfo) -> int | None:
        robustness = info.data.get("robustness", checkpoint)  # absent where it is faulty itself
        if checkpoint is not None and robustness is None:
            raise PydanticCustomError("checkpoint", "the folder of robustness is left out")
        if checkpoint is not None and (checkpoint == 0 or checkpoint < -1):
            raise PydanticCustomError("checkpoint", "must be a step, or -1 for the final")
        return checkpoint

    @field_validator("needs_uncertainty")
    @classmethod
    def _has_whom_to_ask(cls, needs: bool, info: ValidationInfo) -> bool:
        if needs and info.data.get("uncertainty", needs) is None:
            raise PydanticCustomError("uncertainty", "the folder of uncertainty is left out")
        return needs


class EndpointSection(Prompting, GeneratingSection):
    """Ask a model behind an OpenAI-compatible server.

    tourney cannot see that a server changed the model behind a name: change `revision` when it
    does, and every response is generated again. Moving the server changes nothing.
    """

    loader: Literal["endpoint"] = "endpoint"
    """A model behind an OpenAI-compatible server. Default, where there is a `model`."""
    model: str = Field(min_length=1)
    """The server's name for the model; or, without `base_url`, its maker and its name, as
    `openai/gpt-5.6-luna`, `google/gemini-3.5-flash`, `openrouter/org/name` or `ollama/llama4`."""
    base_url: str = Field(pattern=BASE_URL)
    """The server's address, as `http://localhost:8000/v1`. Default: the maker's."""
    api_key_env: str = Field(default=OPENAI_KEY, pattern=VARIABLE)
    """The environment variable with the key, which only this server gets."""
    revision: str | None = Field(default=None, min_length=1)
    """Your name for the weights behind the model's name."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Requests at a time."""
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    """Further keys of each request, sent as they are."""

    @property
    def is_anthropic(self) -> bool:
        """Say whether it is asked at Anthropic, by its own API."""
        return is_anthropic(self.base_url, self.api_key_env)

    @model_validator(mode="before")
    @classmethod
    def _at_its_maker(cls, table: Any) -> Any:  # noqa: ANN401  # what a file says
        return with_address(table)

    @field_validator("extra_body")
    @classmethod
    def _adds_only(cls, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return adds_only(body, _OF_AN_ENTRANT)


class RecordedSection(EntrantSection):
    """Compare answers that you already have. Nothing is generated.

    The entrant is what its answers to the bank's prompts are: correct one, and only its own pairs
    are judged again.
    """

    loader: Literal["recorded"] = "recorded"
    """Answers that a file has. Default, where there are `responses`."""
    responses: UserPath
    """The file: CSV, TSV, JSON, JSON lines or Parquet. A row has `prompt_id` or the prompt's text,
    and `response`, `output`, `answer` or `completion`; files of lm-eval, AlpacaEval, arena-hard,
    MT-bench, promptfoo and inspect are read as they are."""
    column: str | None = Field(default=None, min_length=1)
    """The column of the answers, where it has another name, as in a table with one for each
    entrant."""
    model: str | None = Field(default=None, min_length=1)
    """Whose answers, in a file with those of several models."""


LOADERS: Final[Mapping[str, type[EntrantSection]]] = {
    "hf": HfSection,
    "hydra": HydraSection,
    "endpoint": EndpointSection,
    "recorded": RecordedSection,
}
"""The section of each loader's entrants."""

UNKNOWN_LOADER: Final = "unknown_loader"
"""The type of pydantic's error about an unknown loader."""


_TOLD_BY: Final[Mapping[str, str]] = {
    "weights": "hf",
    "responses": "recorded",
    "model": "endpoint",
}
"""The keys that tell an entrant's loader, the first that is there, or that one is misspelt as."""


def _loader_of(entrant: object) -> str:
    match entrant:
        case {"loader": loader} | EntrantSection(loader=loader):
            return str(loader)
        case dict():
            close = (get_close_matches(key, _TOLD_BY, n=1) for key in entrant)
            told = [*(name for name in _TOLD_BY if name in entrant), *chain.from_iterable(close)]
            return _TOLD_BY[told[0]] if told else "hf"
        case _:
            return "hf"


AnyEntrantSection: TypeAlias = Annotated[
    Annotated[HfSection, Tag("hf")]
    | Annotated[HydraSection, Tag("hydra")]
    | Annotated[EndpointSection, Tag("endpoint")]
    | Annotated[RecordedSection, Tag("recorded")],
    Discriminator(
        _loader_of,
        custom_error_type=UNKNOWN_LOADER,
        custom_error_message="must be 'hf', 'hydra', 'endpoint' or 'recorded'",
    ),
]
