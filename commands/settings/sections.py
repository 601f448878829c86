"""[[entrants]]: what a user may set of a configuration that competes, by its loader."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

Reduce = Literal["mean", "sum", "none"]


class Terms(BaseModel):
    """What may be chosen of a run; sampling and its number are of rollouts alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    length: int | None = Field(default=None, ge=1)  # items; None: all
    seed: int = Field(default=0, ge=0, lt=2**32)  # of the subset, and of what is drawn
    temperature: float = Field(default=0.0, ge=0)  # 0: greedy
    top_p: float = Field(default=1.0, gt=0, le=1)
    samples_per_prompt: int = Field(default=1, ge=1)
    chunk_size: int = Field(default=200, ge=1)  # samples that are handed over at a time


class EvaluationSection(Terms):
    """One evaluation, by the label that tables and the ledger know it by; the rest are its terms.

    `uses` is the name of a shipped one or of an entry point, "file.py:Class" from the folder of
    the settings, or "module:Class"; `parameters` are what its constructor is given.
    """

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    uses: str = Field(min_length=1)
    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def terms(self) -> Terms:
        """Return the terms alone."""
        return Terms(**self.model_dump(include=set(Terms.model_fields)))


BASE_URL: Final = r"^https?://[^@\s]+$"
"""Where a server is, without a name or password in it: settings are recorded."""


class Section(BaseModel):
    """A table; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)


class EntrantSection(Section):
    """One configuration that competes; temperature is left out for greedy decoding."""

    loader: str
    id: str = Field(min_length=1)
    temperature: float | None = Field(default=None, gt=0)
    max_new_tokens: int | None = Field(default=None, gt=0)  # goes before [generation]


class WeightsSection(EntrantSection):
    """One whose weights lie in a folder of this machine."""

    weights: Path


class HfSection(WeightsSection):
    """Weights as transformers reads them, with adapters merged in order."""

    loader: Literal["hf"] = "hf"
    adapters: tuple[Path, ...] = ()


class HydraSection(WeightsSection):
    """Heads over one trunk, each with LoRA shards of its own, that decode together.

    A folder alone asks for nothing: robustness is merged where rob_checkpoint says which of it, and
    uncertainty is asked where needs_uncertainty says so.
    """

    loader: Literal["hydra"]
    heads: int = Field(default=9, ge=2)
    heads_depth: int = Field(default=3, ge=1)  # a head's layers, the last of the weights
    security: Path
    robustness: Path | None = None  # merged after security
    rob_checkpoint: int | None = None  # of robustness; -1: the final one; left out: none
    uncertainty: Path | None = None
    needs_uncertainty: bool = False  # ask the uncertainty head how sure each response is
    bypass_jury: bool = False  # one head, drawn by the seed, is sampled alone
    gamma: int = Field(default=4, ge=1)  # tokens drafted before the jury verifies them
    beta: float = Field(default=1.0, gt=0)  # the exponent of every head in the product

    @field_validator("rob_checkpoint")
    @classmethod
    def _goes_with_robustness(cls, checkpoint: int | None, info: ValidationInfo) -> int | None:
        robustness = info.data.get("robustness", checkpoint)  # absent where it is faulty itself
        if checkpoint is not None and robustness is None:
            raise PydanticCustomError("checkpoint", "the folder of robustness is left out")
        if checkpoint is not None and (checkpoint == 0 or checkpoint < -1):
            raise PydanticCustomError("checkpoint", "Input should be a step, or -1 for the final")
        return checkpoint

    @field_validator("needs_uncertainty")
    @classmethod
    def _has_whom_to_ask(cls, needs: bool, info: ValidationInfo) -> bool:
        if needs and info.data.get("uncertainty", needs) is None:
            raise PydanticCustomError("uncertainty", "the folder of uncertainty is left out")
        return needs


class EndpointSection(EntrantSection):
    """Weights behind a server that speaks OpenAI's API, known by the name that it gives them.

    What lies behind the name cannot be read: who serves other weights under it says so by another
    revision, and they are asked anew. Where the server is changes nothing.
    """

    loader: Literal["endpoint"]
    model: str = Field(min_length=1)  # as the server calls it
    base_url: str = Field(pattern=BASE_URL)
    revision: str | None = Field(default=None, min_length=1)
    concurrency: int = Field(default=8, ge=1, le=256)  # requests at a time


LOADERS: Final[Mapping[str, type[EntrantSection]]] = {
    "hf": HfSection,
    "hydra": HydraSection,
    "endpoint": EndpointSection,
}
"""What each loader's [[entrants]] tables may say."""

UNKNOWN_LOADER: Final = "unknown_loader"
"""The type of pydantic's error about an entrant whose loader is none of these."""


def _loader_of(entrant: object) -> str:
    match entrant:
        case {"loader": loader} | EntrantSection(loader=loader):
            return str(loader)
        case _:
            return "hf"


AnyEntrantSection: TypeAlias = Annotated[
    Annotated[HfSection, Tag("hf")]
    | Annotated[HydraSection, Tag("hydra")]
    | Annotated[EndpointSection, Tag("endpoint")],
    Discriminator(
        _loader_of,
        custom_error_type=UNKNOWN_LOADER,
        custom_error_message="Input should be 'hf', 'hydra' or 'endpoint'",
    ),
]
