"""The sections of tournament.toml, each key with its default, limits and description."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from pydantic import Field, JsonValue, field_validator

from commands.settings.api_keys import OPENAI_KEY, VARIABLE
from commands.settings.prompting import adds_to_query
from commands.settings.rating_sections import BradleyTerrySection, EloSection
from commands.settings.sections import AnyEntrantSection, EvaluationSection, Section, UserPath
from commands.settings.servers import BASE_URL, DEFAULT_MODEL
from ledger.events.registration import Provider
from projections.tournament.matches import PILOT_SEED, PILOT_SIZE


class TournamentSection(Section):
    """Name the tournament and its ledger."""

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    """Name of the tournament. One ledger may hold several."""
    ledger: UserPath = Path("tournament.db")
    """The ledger's file. `--ledger` and `TOURNEY_LEDGER` override it."""
    network_ledger: bool = False
    """Allow a ledger on a file system that is not local, or not known: locks may not be safe."""
    description: str = ""
    """A note for people; recorded, never used."""


class PromptsSection(Section):
    """Name the bank of prompts."""

    bank: UserPath = Path("bank.jsonl")
    """JSON lines, one prompt each."""


class PilotSection(Section):
    """Choose the subset of the bank that `--mode pilot` runs on."""

    size: int = Field(default=PILOT_SIZE, gt=0)
    """How many prompts are drawn, from each source in proportion. It may not exceed the bank.
    Left out: 50, or a fifth of a bank with fewer than 50."""
    seed: int = Field(default=PILOT_SEED, ge=0)
    """Seed of the draw."""
    strata: dict[str, int] | None = None
    """Prompts to draw from each source, as `{ recall = 30, vignette = 20 }`; it replaces `size`."""


class GenerationSection(Section):
    """Say how responses are generated.

    `batch_tokens`, `cpu_threads` and `device` set the speed. In float32 they do not change any
    response; in half precision the shape of a batch can change a token.
    """

    max_new_tokens: int = Field(default=256, gt=0)
    """Longest response, in tokens; an entrant may set its own."""
    batch_tokens: int | None = Field(default=None, gt=0)
    """Batch size for weights on this machine, in tokens. Default: as fits free memory, at least
    1,024 and at most 8,192 on a CPU (2,048 if texts are only scored) or 65,536 on a GPU."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed from which each response's seed is derived."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """Precision of weights on this machine."""
    cpu_threads: int | None = Field(default=None, gt=0)
    """Threads of PyTorch on the CPU. Default: PyTorch's choice.
    Small weights run fastest with 1."""
    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    """`auto`, `cpu`, `mps`, `cuda` or `cuda:N`. `auto` takes the best one present."""


class RubricSection(Section):
    """Name one dimension and the file that defines it."""

    dimension: str = Field(min_length=1, pattern=r"^[\w-]+$")
    """Name of the quality that is compared."""
    path: UserPath
    """Markdown file with the text for the judge."""


Effort: TypeAlias = Literal["none", "low", "medium", "high", "xhigh", "max"]
CacheTtl: TypeAlias = Literal["5m", "1h", "off"]
"""How long a provider keeps the prefix that queries of a dimension share."""
MaxTokensKey: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
"""How a server calls the longest reply."""


class JurorSection(Section):
    """Describe a judge: what determines its replies, and where it is reached."""

    provider: Provider = "reference"
    """`reference` compares with gold answers offline; `hf` is a model on this machine; `endpoint`
    is an OpenAI-compatible server, and `openai-batch` the same in batches; `anthropic` and
    `anthropic-batch` are Anthropic's API."""
    effort: Effort = "low"
    """Anthropic: how hard the model thinks. `none` sends no effort, as Haiku 4.5 and Sonnet 4.5
    need it."""
    max_tokens: int = Field(default=4096, gt=0)
    """Longest reply, in tokens, thinking included."""
    protocol: Literal["line", "schema"] = "line"
    """How the verdict is given: `line` is a last line of text,
    `schema` is JSON that the server enforces."""
    tie_band: float = Field(default=1.0, ge=0)
    """`reference`: responses closer than this in chrF (0 to 100) tie."""
    base_url: str | None = Field(default=None, pattern=BASE_URL)
    """`endpoint`: the server's address, as `http://localhost:8000/v1`.
    `openai-batch`: likewise; left out, OpenAI's."""
    api_key_env: str = Field(default=OPENAI_KEY, pattern=VARIABLE)
    """Servers: the environment variable with the key, which only this server gets."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Servers: longest wait for a part of an answer, in seconds."""
    max_tokens_key: MaxTokensKey | None = None
    """Servers: the name under which `max_tokens` is sent at first; `endpoint` learns another from
    the server. Default: `max_completion_tokens` with `openai-batch`, else `max_tokens`."""
    greedy: bool = True
    """Servers: ask for temperature 0. `endpoint` learns from the server that it takes none; with
    `openai-batch` set it to false for such models, as OpenAI's reasoning models."""
    reasoning_effort: str | None = Field(default=None, pattern=r"^\w+$")
    """Servers: how hard the model thinks, as the server calls it. Left out: its default."""
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    """Servers: further keys of each request, sent as they are."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """`hf`: precision of the judge's weights."""
    revision: str | None = Field(default=None, min_length=1)
    """`hf`: branch, tag or commit of a name on the Hub. Default: its main branch."""

    @property
    def key_of_max_tokens(self) -> MaxTokensKey:
        """The name under which `max_tokens` is sent."""
        is_openai = self.provider == "openai-batch"
        return self.max_tokens_key or ("max_completion_tokens" if is_openai else "max_tokens")

    @field_validator("extra_body")
    @classmethod
    def _adds_only(cls, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return adds_to_query(body)


class JudgeSection(JurorSection):
    """Describe the tournament's judge, and how all judges are asked."""

    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    """The provider's name for the model; with `hf` a folder of weights, or else `org/name` on the
    Hugging Face Hub. `reference` has none."""
    pilot_model: str | None = Field(default=None, min_length=1)
    """Another model for `--mode pilot`, likewise. Default: `model`."""
    instructions: UserPath | None = None
    """Markdown file with the instructions that every judge is sent before the rubric, `[[jury]]`
    too. Default: neutral instructions that ship with tourney (`rubrics/judge.md`)."""
    retries: int = Field(default=1, ge=0)
    """How often a query is repeated after an unreadable reply."""
    skip_identical: bool = True
    """Record two identical responses as a tie without asking."""
    max_usd: float | None = Field(default=None, gt=0)
    """Dollar cap on judging. No option raises it; `--max-usd` can only lower it."""
    prices: UserPath | None = None
    """Your price table, laid out as `data/prices.toml`. Its rows replace the shipped ones."""
    cache: CacheTtl = "5m"
    """Anthropic: how long the rubric stays in the provider's prompt cache."""
    prewarm: bool = True
    """`anthropic-batch`, headline mode: send one query per rubric first, so that the others find
    the rubric cached."""
    batch_queries: int = Field(default=2000, ge=1, le=50_000)
    """Most queries in one batch."""
    poll_s: float = Field(default=60.0, gt=0)
    """Longest time between two polls of a batch, in seconds."""
    settle_s: float = Field(default=300.0, ge=0)
    """Seconds after which a batch that the provider did not confirm, and does not list, counts as
    never received."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """`anthropic` and `endpoint`: requests at a time, for `[[jury]]` too."""


class JurySection(JurorSection):
    """Add a judge, to be asked by `tourney apply judge --judge ID`."""

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    """Name of the judge, for `--judge`."""
    model: str = Field(min_length=1)
    """The provider's name for the model; with `hf` a folder of weights, or else `org/name` on the
    Hugging Face Hub."""


class AskingSettings(Protocol):
    """The part of the settings that says how entrants are loaded, and where they are served."""

    @property
    def generation(self) -> GenerationSection:
        """How weights on this machine are run."""

    @property
    def entrants(self) -> Sequence[AnyEntrantSection]:
        """The sections of the entrants; those behind servers count."""


class Settings(Section):
    """The whole file."""

    tournament: TournamentSection
    prompts: PromptsSection = PromptsSection()
    pilot: PilotSection = PilotSection()
    generation: GenerationSection = GenerationSection()
    entrants: tuple[AnyEntrantSection, ...] = Field(min_length=2)
    rubrics: tuple[RubricSection, ...] = Field(min_length=1)
    judge: JudgeSection = JudgeSection()
    jury: tuple[JurySection, ...] = ()
    elo: EloSection = EloSection()
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    evaluations: tuple[EvaluationSection, ...] = ()
