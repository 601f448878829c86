"""The composition root: makes backends from settings, the only module to import them.

Imports are inside functions, so that commands that need no torch do not load it. Entrants' weights
run on an engine: in this process, or on the accelerators that Ray knows.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from commands.backends.loads import LocalBackend
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.entrants.generate import GeneratorByLoader
from commands.entrants.hydra_import import ToPeft
from commands.entrants.weights import HubSnapshot
from commands.errors import ConfigurationError, needs_extra
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import Readers
from commands.evaluating.samples import Inference
from commands.importing.answers import RecordedGenerator, read_answers
from commands.importing.bank import bank_named
from commands.importing.formats.rows import Sheet
from commands.judging.panel import keys_needed, section_of, weights_of
from commands.judging.preview import RequestBuilder
from commands.ports import (
    BatchJudge,
    BatchResponder,
    Billing,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Generator,
    Judge,
    LocalJudge,
    Responder,
    ResponderOf,
    Tell,
    TokenCounter,
)
from commands.settings.api_keys import ANTHROPIC_KEYS, key_in, require_keys
from commands.settings.hub_dataset import HubDataset
from commands.settings.schema import AskingSettings, GenerationSection, Settings
from commands.settings.sections import EndpointSection, EvaluationSection, RecordedSection
from commands.settings.servers import OPENAI_URL, Server
from commands.settings.toml import EngineName
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.requests import ParameterRefused
from ledger.identity import EntrantId

if TYPE_CHECKING:
    from commands.backends.endpoint.server import Endpoint
    from commands.backends.trackers import Tracker
    from commands.report.published import TrackedRun


Engine: TypeAlias = Callable[[], AbstractContextManager[LocalBackend]]
"""Imports what is needed; what it returns holds weights only between its entry and its exit."""


@dataclass(frozen=True)
class ConfiguredBackends:
    """The generator and the judges of a tournament's settings, as `Backends`."""

    settings: Settings
    folder: Path  # start of relative paths
    tell: Tell | None = None  # reports long waits for an entrant's server; None: there are none
    engine: Engine | None = None  # of entrants' weights; None: this process

    def generator(self, billing: Billing) -> Generator:
        """Return the generator of all entrants; each loader is imported with its first task."""
        return GeneratorByLoader(
            lambda: EngineGenerator(self.engine or in_process(self.settings.generation)),
            lambda: _endpoint_generator(self.settings, billing, self.tell),
            self.recorded,
        )

    def recorded(self) -> Generator:
        """Return the generator of entrants whose answers a file has."""
        samples = self.settings.generation.samples
        bank = bank_named(self.settings.prompts.bank, self.folder, open_dataset, samples)
        sections = {
            EntrantId(entrant.id): entrant
            for entrant in self.settings.entrants
            if isinstance(entrant, RecordedSection)
        }
        return RecordedGenerator(lambda name: read_answers(sections[name], self.folder, bank))

    def judge(
        self, judge: JudgeSettings, refused: Sequence[ParameterRefused] = ()
    ) -> Judge | LocalJudge:
        """Return a judge that replies while the process waits.

        Args:
            judge: Its settings.
            refused: What servers were found not to take.

        Raises:
            NoCredentials: The provider needs a key, and none is set.
            MissingExtra: A package that the provider needs is not installed.
        """
        match judge.provider:
            case "anthropic" | "anthropic-batch":  # a batch judge, queried one by one
                return _anthropic_judge(self.settings, judge)
            case "endpoint" | "openai-batch":
                return _endpoint_judge(self.settings, judge, refused)
            case "hf":
                return _hf_judge(self.settings, judge, self.folder)
            case "reference":
                from commands.backends.reference_judge import ReferenceJudge

                return ReferenceJudge()
            case _:
                assert_never(judge.provider)

    def batch_judge(
        self, judge: JudgeSettings, refused: Sequence[ParameterRefused] = ()
    ) -> BatchJudge:
        """Return a judge that works in batches, which continue without this process.

        Args:
            judge: Its settings.
            refused: What servers were found not to take.

        Raises:
            NoCredentials: No key is set.
        """
        if judge.company == "endpoint":
            return _openai_batches(self.settings, judge, refused)
        from commands.backends.anthropic.batches import judge_batches
        from commands.backends.anthropic.client import with_client

        cache = self.settings.judge.cache
        return with_client(lambda client: judge_batches(client, judge, cache=cache))

    def batch_responder(self, entrant: Entrant) -> BatchResponder:
        """Return what answers for an entrant at Anthropic in batches.

        Raises:
            NoCredentials: No key is set.
        """
        from commands.backends.anthropic.batches import entrant_batches
        from commands.backends.anthropic.client import with_client

        require_keys({f"entrant {entrant.entrant_id!r}": ANTHROPIC_KEYS})
        return with_client(entrant_batches)


def _endpoint_generator(
    settings: AskingSettings, billing: Billing, tell: Tell | None = None
) -> EndpointGenerator:
    sections = [each for each in settings.entrants if isinstance(each, EndpointSection)]
    makers = {EntrantId(section.id): _responder_of(section) for section in sections}
    return EndpointGenerator(
        lambda entrant, refused: makers[entrant.entrant_id](entrant, refused), billing, tell
    )


def _responder_of(section: EndpointSection) -> ResponderOf:
    n_at_a_time = section.concurrency
    if section.is_anthropic:
        return lambda entrant, _: _anthropic_responder(entrant, n_at_a_time)
    with needs_extra("endpoint", "openai"):
        from commands.backends.endpoint.askers import EndpointResponder
        from commands.backends.endpoint.server import Endpoint
    name = f"{section.model!r} of entrant {section.id!r}"
    key, variable = key_in(section.api_key_env), section.api_key_env
    server = Endpoint(section.base_url, name, key, variable, n_at_a_time=n_at_a_time)
    return lambda entrant, refused: EndpointResponder(entrant, server, refused)


def _anthropic_responder(entrant: Entrant, n_at_a_time: int) -> Responder:
    from commands.backends.anthropic.client import with_client
    from commands.backends.anthropic.messages import AnthropicResponder

    require_keys({f"entrant {entrant.entrant_id!r}": ANTHROPIC_KEYS})
    return with_client(lambda client: AnthropicResponder(client, entrant, n_at_a_time=n_at_a_time))


def backends_on(
    engine: EngineName, settings: Settings, folder: Path, tell: Tell
) -> ConfiguredBackends:
    """Return the backends of a tournament, whose weights run on an engine.

    Raises:
        ConfigurationError: A launcher started this command several times.
    """
    return ConfiguredBackends(settings, folder, tell, engine_for(engine, settings.generation, tell))


@contextmanager
def inferences_on(
    engine: EngineName, settings: AskingSettings, tell: Tell
) -> Iterator[Callable[[Entrant], Inference]]:
    """Yield a factory of entrants' inferences, whose weights run on an engine until the end.

    Raises:
        ConfigurationError: A launcher started this command several times.
        MissingExtra: The packages for local models are not installed.
    """
    opened = engine_for(engine, settings.generation, tell)
    with ExitStack() as closing:
        yield make_inference_factory(settings, lambda: closing.enter_context(opened()))


def make_inference_factory(
    settings: AskingSettings, make_local: Callable[[], LocalBackend] | None = None
) -> Callable[[Entrant], Inference]:
    """Return a factory of entrants' inferences, each of which loads its weights once, when used."""
    here = settings.generation
    local = cache(make_local or (lambda: local_models(here, here.device)))
    served = cache(partial(_endpoint_generator, settings))

    def inference(entrant: Entrant) -> Inference:
        if entrant.loader == "endpoint":
            return Inference(entrant, None, None, served)
        if entrant.loader == "recorded":
            return Inference(entrant, partial(_answers_no_more, entrant), None)
        return Inference(entrant, local, local)

    return inference


def _answers_no_more(entrant: Entrant) -> Generator:
    fault = f"entrant {entrant.entrant_id!r} is of recorded answers, and is asked nothing else"
    raise ConfigurationError([f"{fault}; choose other entrants with --entrant"])


def fetch_snapshot(name: str, revision: str | None) -> HubSnapshot:
    """Fetch weights from the Hub, as `FetchSnapshot`; its client is imported only now."""
    with needs_extra("models", "huggingface_hub"):
        from commands.backends.huggingface import hub
    return hub.fetch_snapshot(name, revision)


def make_shard_reader() -> ToPeft:
    """Return the reader of a Hydra's shards.

    Raises:
        MissingExtra: The packages for local models are not installed.
    """
    with needs_extra("models", "torch"):
        from commands.backends.hydra.pt_lora import as_peft_folder
    return as_peft_folder


def open_dataset(dataset: HubDataset) -> Sheet:
    """Open a data set of the Hub, as `OpenDataset`; its package is imported only now.

    Raises:
        MissingExtra: The package is not installed.
        ConfigurationError: The Hub does not give it, or its cache here has none.
    """
    with needs_extra("hub", "datasets"):
        from commands.backends.huggingface import dataset as hub_rows
    return hub_rows.open_dataset(dataset)


def read_tasks(section: EvaluationSection, folder: Path) -> Iterable[tuple[str, Evaluation]]:
    """Make evaluations of tasks, as `ReadTasks`; lm-evaluation-harness is imported only now.

    Raises:
        MissingExtra: It is not installed.
        ConfigurationError: There is no such task, or it cannot be run here.
    """
    with needs_extra("lm-eval", "lm_eval"):
        from commands.backends import tasks
    return tasks.read_tasks(section, folder)


READERS: Final = Readers(open_dataset, read_tasks)
"""What evaluations are read with."""


def log_run(tracker: "Tracker", run: "TrackedRun") -> str:
    """Log a run to a tracker by its client, which is imported only now; return where."""
    from commands.backends import trackers

    return trackers.log_run(tracker, run)


def make_token_counter(judge: JudgeSettings) -> TokenCounter:
    """Return a free counter of queries' input tokens.

    Raises:
        NoCredentials: No key is set.
    """
    from commands.backends.anthropic.client import with_client
    from commands.backends.anthropic.messages import token_counter

    return with_client(lambda client: token_counter(client, judge))


def reach(server: Server) -> str | None:
    """Ask a server, free of charge, whether it is there; see `Reach`."""
    if server.is_anthropic:
        from commands.backends.anthropic.client import require_reachable

        require_reachable()
        return None
    with needs_extra("endpoint", "openai"):
        from commands.backends.endpoint.about import doubt
        from commands.backends.endpoint.server import Endpoint
    url, name = server.base_url or OPENAI_URL, server.api_key_env
    return doubt(Endpoint(url, server.asked, key_in(name), name), server.models)


def make_request_builder(settings: Settings, judge: JudgeSettings) -> RequestBuilder | None:
    """Return the builder of a judge's requests, which needs no key; None: it is sent none."""
    match judge.provider:
        case "anthropic" | "anthropic-batch":
            from commands.backends.anthropic.messages import RequestForm

            return RequestForm(judge, cache=settings.judge.cache).params
        case "endpoint" | "openai-batch":
            from commands.backends.endpoint.requests import ChatForm

            return ChatForm(judge).body
        case "hf" | "reference":
            return None
        case _:
            assert_never(judge.provider)


def _anthropic_judge(settings: Settings, judge: JudgeSettings) -> Judge:
    from commands.backends.anthropic.client import with_client
    from commands.backends.anthropic.messages import AnthropicJudge

    cache, n_at_a_time = settings.judge.cache, settings.judge.concurrency
    return with_client(
        lambda client: AnthropicJudge(client, judge, cache=cache, n_at_a_time=n_at_a_time)
    )


def _endpoint_judge(
    settings: Settings, judge: JudgeSettings, refused: Sequence[ParameterRefused]
) -> Judge:
    with needs_extra("endpoint", "openai"):
        from commands.backends.endpoint.askers import EndpointJudge
    return EndpointJudge(judge, _server_of(settings, judge), refused=refused)


def _openai_batches(
    settings: Settings, judge: JudgeSettings, refused: Sequence[ParameterRefused]
) -> BatchJudge:
    with needs_extra("endpoint", "openai"):
        from commands.backends.endpoint.batches import OpenAIBatches
    require_keys(keys_needed(settings, [judge]))
    return OpenAIBatches(judge, _server_of(settings, judge), refused=refused)


def _server_of(settings: Settings, judge: JudgeSettings) -> "Endpoint":
    with needs_extra("endpoint", "openai"):
        from commands.backends.endpoint.server import Endpoint
    section = section_of(settings, judge)
    return Endpoint(
        base_url=section.base_url or OPENAI_URL,  # panel_of rejects other servers without one
        model=f"judge {judge.model!r}",
        api_key=key_in(section.api_key_env),
        key_variable=section.api_key_env,
        timeout_s=section.timeout_s,
        n_at_a_time=settings.judge.concurrency,
    )


def _hf_judge(settings: Settings, judge: JudgeSettings, folder: Path) -> LocalJudge:
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.judge import HfJudge
    parameters = dict(judge.parameters)
    return HfJudge(
        weights_of(settings, judge, folder, fetch_snapshot),
        judge.model,
        dtype=str(parameters["dtype"]),
        max_tokens=int(parameters["max_tokens"]),
        batch_tokens=settings.generation.batch_tokens,
        device=settings.generation.device,
    )


def engine_for(name: EngineName, generation: GenerationSection, tell: Tell) -> Engine:
    """Return the engine of a command.

    Raises:
        ConfigurationError: A launcher started this command several times.
    """
    _require_one_process()
    return partial(_on_ray, generation, tell) if name == "ray" else in_process(generation)


def _require_one_process() -> None:
    """Require that no launcher started the command several times: each would do all the work."""
    n_processes = os.environ.get("WORLD_SIZE", "1")
    if n_processes not in {"", "0", "1"}:
        fault = (
            f"a launcher started this command {n_processes} times (WORLD_SIZE), and each would"
            " do all the work; start it once, with --engine ray for several GPUs"
        )
        raise ConfigurationError([fault])


def in_process(generation: GenerationSection) -> Engine:
    """Return the engine that is this process."""
    return lambda: nullcontext(local_models(generation, generation.device))


class EngineGenerator:
    """Generates once, on an engine whose memory is free again when it is done."""

    def __init__(self, engine: Engine) -> None:
        """Import what the engine needs.

        Raises:
            MissingExtra: A package is not installed.
        """
        self._opening = engine()

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield each finished batch's results."""
        with self._opening as local:
            yield from local.generate(tasks)


def local_models(generation: GenerationSection, device: str) -> LocalBackend:
    """Return what answers and reads in this process.

    Raises:
        MissingExtra: The packages for local models are not installed.
        ConfigurationError: The device is not available.
    """
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.local import LocalModels
    return LocalModels(generation.batch_tokens, device)


def _on_ray(generation: GenerationSection, tell: Tell) -> AbstractContextManager[LocalBackend]:
    with needs_extra("models", "torch"):
        from commands.backends.huggingface.local import check_entrants
    with needs_extra("ray", "ray"):
        from commands.backends.ray_pool import ray_pool
    kind = generation.device.partition(":")[0]  # Ray says which one
    return ray_pool(partial(local_models, generation, kind), check_entrants, generation, tell)
