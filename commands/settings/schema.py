"""The sections of tournament.toml, each key with its default, limits and description."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias, get_args

from pydantic import (
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from commands.settings.api_keys import OPENAI_KEY, VARIABLE
from commands.settings.hub_dataset import hub_dataset
from commands.settings.makers import as_judge
from commands.settings.sections import (
    BASE_URL,
    OF_A_JUDGE,
    AnyEntrantSection,
    EndpointSection,
    EvaluationSection,
    Section,
    UserPath,
    adds_only,
)
from commands.settings.toml import LEDGER
from ledger.events import ratings
from ledger.events.registration import Provider
from ledger.events.values import MAX_POINTS, MAX_REPEATS, MIN_SPREAD
from ledger.identity import EntrantId
from projections.intervals import too_few_resamples
from projections.ratings.elo.uncertainty import BOOTSTRAPS, LEVEL
from projections.tournament.bank import PILOT_SEED, PILOT_SIZE
from projections.tournament.designs import Orders


class TournamentSection(Section):
    """Name the tournament and its ledger."""

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    """Name of the tournament. One ledger may hold several."""
    ledger: UserPath = Path(LEDGER)
    """The ledger's file. `--ledger` and `TOURNEY_LEDGER` override it."""


class PromptsSection(Section):
    """Name the bank of prompts."""

    bank: str = "bank.jsonl"
    """JSON lines, one prompt each; or a data set of the Hugging Face Hub, as
    `hf://datasets/org/name?split=test` (see [Prompts](prompts.md#prompts-of-the-hub))."""

    @field_validator("bank")
    @classmethod
    def _is_known(cls, bank: str) -> str:
        hub_dataset(bank)
        return bank


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

    `batch_tokens` and `device` set the speed. In float32 they do not change any response; in half
    precision the shape of a batch can change a token.
    """

    max_new_tokens: int = Field(default=256, gt=0)
    """Longest response, in tokens; an entrant may set its own."""
    batch_tokens: int | None = Field(default=None, gt=0)
    """Batch size for weights on this machine, in tokens. Default: as fits free memory, at least
    1,024 and at most 8,192 on a CPU (2,048 if texts are only scored) or 65,536 on a GPU."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed from which each response's seed is derived."""
    samples: int = Field(default=1, ge=1, le=1000)
    """Responses of each entrant to each prompt. The first samples of all entrants meet, the second
    ones, and so on; intervals count them as one prompt. Above 1 entrants need a temperature."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """Precision of weights on this machine."""
    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    """`auto`, `cpu`, `mps`, `cuda` or `cuda:N`. `auto` takes the best one present."""
    batch: bool = False
    """Ask entrants at Anthropic in batches, at half the price; others are asked as ever."""


class RubricSection(Section):
    """Name one dimension and the file that defines it."""

    dimension: str = Field(min_length=1, pattern=r"^[\w-]+$")
    """Name of the quality that is compared."""
    path: UserPath
    """Markdown file with the text for the judge."""


Effort: TypeAlias = Literal["none", "low", "medium", "high", "xhigh", "max"]
"""How hard a model of Anthropic thinks."""
CacheTtl: TypeAlias = Literal["5m", "1h", "off"]
"""How long a provider keeps the prefix that queries of a dimension share."""
DEFAULT_MODEL: Final = "claude-opus-5-5"
"""The model that [judge] asks if it names none."""


class JudgeSection(Section):
    """Describe a judge: what determines its replies, and where it is reached.

    `[judge]` is the tournament's judge. Each `[[jury]]` is a further one, with an `id` and a
    `model`, to be asked by `tourney apply judge --judge ID`. The last keys hold for all judges and
    stand in `[judge]` only.
    """

    id: str | None = Field(default=None, min_length=1, pattern=r"^[\w.-]+$")
    """`[[jury]]` only, and required there: name of the judge, for `--judge`. That of `[judge]` is
    its model's."""
    provider: Provider = "reference"
    """`reference` compares chrF to gold answers offline (at most 1 point apart: a tie); `hf` is a
    model on this machine; `endpoint` is an OpenAI-compatible server, and `openai-batch` the same in
    batches; `anthropic` and `anthropic-batch` are Anthropic's API."""
    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    """The provider's name for the model; with `hf` a folder of weights, or else `org/name` or
    `org/name@v1` on the Hugging Face Hub. `reference` has none. `[[jury]]` must name it. A maker's
    name before it says provider, address and key: `openai/gpt-5.6-luna`,
    `anthropic/claude-opus-5-5`."""
    effort: str | None = Field(default=None, pattern=r"^\w+$")
    """How hard the model thinks. Anthropic: `low` if left out, `medium`, `high`, `xhigh`, `max`, or
    `none`, which sends no effort, as Haiku 4.5 and Sonnet 4.5 need it. Servers: as the server calls
    it; left out, its default."""
    max_tokens: int = Field(default=4096, gt=0)
    """Longest reply, in tokens, thinking included."""
    protocol: Literal["line", "schema"] = "line"
    """How the verdict is given: `line` is a last line of text,
    `schema` is JSON that the server enforces."""
    base_url: str | None = Field(default=None, pattern=BASE_URL)
    """`endpoint`: the server's address, as `http://localhost:8000/v1`.
    `openai-batch`: likewise; left out, OpenAI's."""
    api_key_env: str = Field(default=OPENAI_KEY, pattern=VARIABLE)
    """Servers: the environment variable with the key, which only this server gets."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Servers: longest wait for a part of an answer, in seconds."""
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    """Servers: further keys of each request, sent as they are. Without `temperature` it is 0, or
    left out if the server takes none."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """`hf`: precision of the judge's weights."""
    pilot_model: str | None = Field(default=None, min_length=1)
    """`[judge]` only: another model for `--mode pilot`, likewise. Default: `model`."""
    instructions: UserPath | None = None
    """Markdown file with the instructions that the judge is sent before the rubric. Default: those
    of `[judge]`, or else neutral ones that ship with tourney (`rubrics/judge.md`)."""
    share: float | None = Field(default=None, gt=0, le=1)
    """`[[jury]]` only: ask it on about this share of the prompts, drawn by `[generation] seed`, all
    pairs of a prompt together. Default: on all."""
    retries: int = Field(default=1, ge=0)
    """All judges: how often a query is repeated after an unreadable reply."""
    max_usd: float | None = Field(default=None, gt=0)
    """All judges: dollar cap on judging. No option raises it; `--max-usd` can only lower it."""
    prices: UserPath | None = None
    """All judges: your price table, laid out as `data/prices.toml`. Its rows replace the shipped
    ones."""
    cache: CacheTtl = "5m"
    """All judges of Anthropic: how long the rubric stays in the provider's prompt cache. Unless it
    is `off`, `anthropic-batch` sends one query per rubric first in headline mode, so that the
    others find the rubric cached."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """All judges by `anthropic` and `endpoint`: requests at a time."""

    @model_validator(mode="before")
    @classmethod
    def _at_its_maker(cls, table: Any) -> Any:  # noqa: ANN401  # what a file says
        return as_judge(table)

    @field_validator("effort")
    @classmethod
    def _is_known(cls, effort: str | None, info: ValidationInfo) -> str | None:
        is_anthropic = info.data.get("provider") in {"anthropic", "anthropic-batch"}
        known = get_args(Effort)
        if is_anthropic and effort is not None and effort not in known:
            why = "Anthropic knows {known}"
            raise PydanticCustomError("effort", why, {"known": ", ".join(known)})
        return effort

    @field_validator("extra_body")
    @classmethod
    def _adds_only(cls, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if "reasoning_effort" in body:
            raise PydanticCustomError("taken", "set effort instead")
        return adds_only(body, OF_A_JUDGE, "max_tokens")


def _look_number(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Say once what is wrong; pydantic says it of each type of a union."""
    try:
        return read(value)
    except ValidationError as error:
        raise PydanticCustomError("looks", 'must be a whole number, 2 to 20, or "any"') from error


Looks: TypeAlias = Annotated[
    Annotated[int, Field(ge=2, le=20)] | Literal["any"], WrapValidator(_look_number)
]


class JudgingSection(Section):
    """Say which pairs of entrants are compared, and in which orders.

    If it changes, nothing is paid again but for `together`: what was asked stays on record, and
    only what was not is owed.
    """

    baseline: str | None = None
    """Entrant that every other one is compared with. Default: all pairs of entrants are
    compared."""
    sparse: int | None = Field(default=None, gt=0)
    """How many pairs are compared on each prompt: drawn so that all entrants are compared about
    equally often. Default: all pairs."""
    looks: Looks | None = None
    """How often the verdicts are looked at, each time after an equal part of the prompts, of 20 or
    more: pairs that are decided, or will hardly be, are asked no more. `any`: after every 20
    prompts (a 25th of a bank above 500), as often as the bank grows, by wider intervals. Default:
    all is asked."""
    orders: Orders = "both"
    """`both` asks each pair twice, with either response shown first; `counterbalanced` asks it
    once, half of the pairs in each order, and a tenth of them twice."""
    together: bool = False
    """Ask for the verdicts on all dimensions in one request, as JSON. It costs less, and one
    verdict may sway the next. If this changes, all is asked anew."""


OF_ALL_JUDGES: Final = (
    "pilot_model",
    "retries",
    "max_usd",
    "prices",
    "cache",
    "concurrency",
)
"""The keys of [judge] that no [[jury]] has."""

_ELO: Final = ratings.EloParameters()  # the defaults
_BT: Final = ratings.BradleyTerryParameters()

Rating: TypeAlias = Annotated[float, Field(ge=-MAX_POINTS, le=MAX_POINTS)]


class EloSection(Section):
    """Say how Elo ratings are computed."""

    k: float = Field(default=_ELO.k, gt=0, le=MAX_POINTS)
    """Largest rating change per match, in points."""
    k_sweep: tuple[Annotated[float, Field(gt=0, le=MAX_POINTS)], ...] = _ELO.k_sweep
    """Further values of K in a run's `elo_results.json`."""
    initial_rating: Rating = _ELO.initial_rating
    """Rating that every entrant starts from."""
    permutations: int = Field(default=_ELO.permutations, ge=1, le=MAX_REPEATS)
    """Random match orders to average over."""
    seed: int = Field(default=_ELO.seed, ge=0)
    """Seed of orders and resamples."""
    ties: ratings.TieRule = _ELO.ties
    """`drop` ignores ties; `half` counts each as half a win for both."""
    bootstraps: int = Field(default=BOOTSTRAPS, ge=0, le=MAX_REPEATS)
    """Resamples of the prompts, for the 95 % interval: 40 or more, or 0 for none."""

    @field_validator("bootstraps")
    @classmethod
    def _are_enough(cls, bootstraps: int) -> int:
        if bootstraps and (why := too_few_resamples(bootstraps, LEVEL)):
            raise PydanticCustomError("resamples", "{why}", {"why": why})
        return bootstraps

    @property
    def parameters(self) -> ratings.EloParameters:
        """The settings as events record them."""
        return ratings.EloParameters(**self.model_dump())


class BradleyTerrySection(Section):
    """Say how Bradley-Terry ratings are computed.

    Intervals are cluster-robust (sandwich), with prompts as clusters, at 95 %.
    """

    ties: ratings.TieModel = _BT.ties
    """`half` counts a tie as half a win for both; `davidson` gives ties a probability of their
    own."""
    prior_sd: float | None = Field(default=None, ge=MIN_SPREAD, le=MAX_POINTS)
    """Standard deviation of a normal prior on ratings, in Elo points. Default: no prior."""
    anchor: str | None = None
    """Entrant whose rating is fixed. Default: the mean rating is 1000."""
    anchor_rating: Rating = _BT.anchor_rating
    """The rating of the anchor."""

    @property
    def parameters(self) -> ratings.BradleyTerryParameters:
        """The settings as events record them."""
        return ratings.BradleyTerryParameters(**self.model_dump())


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
    jury: tuple[JudgeSection, ...] = ()
    judging: JudgingSection = JudgingSection()
    elo: EloSection = EloSection()
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    evaluations: tuple[EvaluationSection, ...] = ()

    @property
    def batched(self) -> frozenset[EntrantId]:
        """The entrants that respond in batches."""
        return frozenset(
            EntrantId(entrant.id)
            for entrant in self.entrants
            if self.generation.batch
            and isinstance(entrant, EndpointSection)
            and entrant.is_anthropic
        )


_RATED_OTHERWISE: Final = (
    "leave it out: intervals are cluster-robust, with prompts as clusters, at 95 %; for another one"
    " call `bradley_terry` of `import tourney`"
)
WITHDRAWN: Final[Mapping[tuple[str, str], str]] = {
    ("tournament", "network_ledger"): "export TOURNEY_NETWORK_LEDGER=true on that machine",
    ("tournament", "description"): "write it as a comment: nothing read it",
    ("generation", "cpu_threads"): "leave it out, or export OMP_NUM_THREADS on that machine",
    ("entrants", "revision"): 'write it behind the name, as weights = "org/name@v1"',
    ("entrants", "heads"): "leave it out: there is a head for each shard",
    ("entrants", "heads_depth"): "leave it out: the shards tell which layers are the heads'",
    ("judge", "revision"): 'write it behind the name, as model = "org/name@v1"',
    ("judge", "reasoning_effort"): "call it effort",
    ("judge", "skip_identical"): "leave it out: identical responses tie without being asked about",
    ("judge", "tie_band"): "leave it out: responses within 1 point of chrF tie",
    ("judge", "max_tokens_key"): "leave it out: the name that a server takes is learnt from it",
    ("judge", "greedy"): (
        "leave it out: a server that takes no temperature is asked without one; for another than 0"
        " set extra_body = { temperature = 1.0 }; a judge recorded with greedy = false is another"
        " one now, and is asked again"
    ),
    ("judge", "prewarm"): 'leave it out: the rubric is sent first, unless cache = "off"',
    ("judge", "batch_queries"): "leave it out: batches shrink if a provider takes fewer",
    ("judge", "poll_s"): "leave it out: batches are polled less and less, at last each minute",
    ("judge", "settle_s"): "leave it out: a batch that is not listed after 5 minutes is resent",
    ("bradley_terry", "level"): _RATED_OTHERWISE,
    ("bradley_terry", "interval"): _RATED_OTHERWISE,
    ("bradley_terry", "unit"): _RATED_OTHERWISE,
    ("bradley_terry", "resamples"): _RATED_OTHERWISE,
    ("bradley_terry", "seed"): "leave it out: ranks are simulated with the default seed",
    ("evaluations", "chunk_size"): "leave it out: 200 samples are asked at a time",
}
"""Keys that earlier versions had, by section, and what to do instead."""


SCHEMA_FILE: Final = "tournament.schema.json"
"""The JSON Schema by which editors complete the keys of settings and mark misspelt ones."""
SCHEMA_LINE: Final = f"#:schema ./{SCHEMA_FILE}\n"
"""The first line of settings, by which Taplo and what is built on it find the schema."""


def schema_of_settings() -> str:
    """Return the schema as JSON.

    It is more lenient than what reads the file: of what one key demands of another it says nothing.
    """
    schema = Settings.model_json_schema()
    schema["$defs"]["EndpointSection"]["required"].remove("base_url")  # a maker's name has it
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**dialect, **schema}, indent=1, ensure_ascii=False) + "\n"
