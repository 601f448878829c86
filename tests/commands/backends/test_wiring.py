"""The composition root: settings in, backends out, and each needs no more than it uses."""

import gc
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from anthropic import Anthropic

from commands.backends.endpoint.askers import EndpointJudge
from commands.backends.huggingface.judge import HfJudge
from commands.backends.reference_judge import ReferenceJudge
from commands.backends.wiring import (
    ConfiguredBackends,
    backends_on,
    inferences_on,
    make_inference_factory,
    make_token_counter,
    reach,
)
from commands.errors import ConfigurationError, NoCredentials, ProviderError
from commands.judging.panel import panel_of, weights_of
from commands.ports import (
    Continuation,
    ContinuationLikelihood,
    GeneratedText,
    GenerationTask,
    Judge,
    LocalJudge,
    Reply,
)
from commands.settings.api_keys import ANTHROPIC_KEYS
from commands.settings.inputs import shipped_data
from commands.settings.schema import Settings
from commands.settings.servers import Server
from commands.settings.toml import EngineName
from ledger.events.registration import Entrant
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import MODEL, FakeOpenAI
from tests.support.builders import events
from tests.support.builders.anthropic import CANARY, judge_settings, queries, told_of
from tests.support.builders.commands import settings, write_weights
from tests.support.builders.endpoints import unlimited
from tests.support.scripted import answered

WITHOUT = """
import sys
sys.modules |= dict.fromkeys({packages})
from pathlib import Path
from commands.backends.wiring import *
from commands.cli.shared.output import parquet_of
from commands.importing.formats.files import columns_of
from commands.settings.sections import EvaluationSection
from commands.judging.panel import panel_of
from commands.ports import GenerationTask
from tests.support.builders.events import entrant, key
from tests.support.builders.commands import settings
place = {{"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
served = [{{"id": name, "loader": "endpoint", **place}} for name in ("base", "other")]
chosen = settings(judge={{"provider": "endpoint", **place}}, entrants=served)
backends = ConfiguredBackends(chosen, Path())
inference = make_inference_factory(chosen)(entrant())
def generate(**fields):
    task = GenerationTask(key("a"), entrant(**fields), "What?", seed=0)
    return list(backends.generator(None).generate([task]))
for use in ({uses},):
    try:
        use()
    except Exception as error:
        print(type(error).__name__, error)
"""
USES = {
    ("torch", "models"): [
        *("generate", "make_shard_reader", "inference.make_generator"),
        "inference.make_likelihood_model",
    ],
    ("openai", "endpoint"): [
        "lambda: backends.judge(panel_of(chosen, Path())[0])",
        "lambda: generate(loader='endpoint', dtype=None)",
    ],
    ("datasets", "hub"): ["lambda: open_dataset(HubDataset('hf://datasets/a', 'a'))"],
    ("lm_eval", "lm-eval"): ["lambda: read_tasks(EvaluationSection(id='a', uses='mmlu'), Path())"],
    ("pyarrow", "parquet"): [
        "lambda: columns_of(Path('a.parquet'), content=Path(sys.executable))",
        "lambda: parquet_of({}, ())",
    ],
}


def judge_named(name: str, chosen: Settings, folder: Path = Path()) -> Judge | LocalJudge:
    """Return the port of a judge of the panel."""
    judge = next(each for each in panel_of(chosen, folder) if each.judge_id == name)
    return ConfiguredBackends(chosen, folder).judge(judge)


def test_each_judge_is_made_by_its_own_table() -> None:
    """A jury has judges of several kinds, and each says where it is reached."""
    folder = shipped_data() / "quickstart"
    local = {"provider": "hf", "model": "weights", "max_tokens": 64, "dtype": "float32"}
    server = {"provider": "endpoint", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    chosen = settings(jury=[{"id": "local", **local}, {"id": "server", **server}])

    assert isinstance(judge_named("reference", settings()), ReferenceJudge)
    assert isinstance(judge_named("local", chosen, folder), HfJudge)
    assert isinstance(judge_named("server", chosen, folder), EndpointJudge)


@pytest.mark.parametrize("name", ["small", "large", "third"])
def test_weights_are_found_by_the_table_that_names_them(tmp_path: Path, name: str) -> None:
    """A judge's record keeps the folder's name only, so that moving it asks nothing again."""
    for each in ("small", "large", "3rd"):
        write_weights(tmp_path / "models" / each)
    main = {"provider": "hf", "pilot_model": "models/small", "model": "models/large"}
    juror = {"id": "third", "provider": "hf", "model": "models/3rd"}
    chosen = settings(judge=main, jury=[juror])
    judge = next(each for each in panel_of(chosen, tmp_path) if each.judge_id == name)

    where = weights_of(chosen, judge, tmp_path)

    assert where == tmp_path / "models" / judge.model


def test_each_server_gets_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that goes to another maker's server is a key given away."""
    keys = {"FIRST_KEY": "sk-first", "SECOND_KEY": "sk-second", "OPENAI_API_KEY": "sk-default"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET_KEY", raising=False)
    variables = ["FIRST_KEY", "SECOND_KEY", "OPENAI_API_KEY", "UNSET_KEY"]
    asked = {}
    for name in variables:
        with FakeOpenAI() as server:
            server.traffic.models = None
            place = {"base_url": server.url, "api_key_env": name}
            juror = {"id": "juror", "provider": "endpoint", "model": "m", **place}
            entrant = {"id": "served", "loader": "endpoint", "model": "m", **place}
            chosen = settings(jury=[juror], entrants=[entrant, {"id": "b", "weights": "w"}])
            [*answered(judge_named("juror", chosen), queries(1))]
            task = GenerationTask(
                events.key("a"), events.entrant("served", loader="endpoint", dtype=None), "?", 0
            )
            [*ConfiguredBackends(chosen, Path()).generator(unlimited()).generate([task])]
            asked[name] = server.traffic.keys

    assert asked == {name: [keys.get(name, "none")] * 2 for name in variables}


def test_a_key_that_no_header_can_hold_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below, a library would show it in the error."""
    monkeypatch.setenv("MISTRAL_API_KEY", "canary\n")
    place = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "MISTRAL_API_KEY"}
    chosen = settings(jury=[{"id": "juror", "provider": "endpoint", "model": "m", **place}])

    with pytest.raises(NoCredentials, match=r"^MISTRAL_API_KEY contains a space") as refusal:
        judge_named("juror", chosen)

    assert "canary" not in str(refusal.value)


def test_a_server_that_wants_a_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is needed only where the server asks for one."""
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    with FakeOpenAI(api_key="another") as server:
        place = {"base_url": server.url, "api_key_env": "MISTRAL_API_KEY"}
        chosen = settings(jury=[{"id": "juror", "provider": "endpoint", "model": "m", **place}])
        with pytest.raises(NoCredentials, match=r"wants a key .* export MISTRAL_API_KEY="):
            [*answered(judge_named("juror", chosen), queries(1))]


def test_a_missing_extra_is_named_where_it_is_needed_only() -> None:
    """Reading a ledger, and planning, need no torch; whoever judges elsewhere needs no client."""
    packages = [package for package, _ in USES]
    script = WITHOUT.format(packages=packages, uses=", ".join(chain(*USES.values())))

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    needed = [pair for pair, uses in USES.items() for _ in uses]
    for refusal, (package, extra) in zip(done.stdout.splitlines(), needed, strict=True):
        assert refusal.startswith(f"MissingExtra package '{package}")
        assert refusal.endswith(f"is not installed; pip install 'tourney-ledger[{extra}]'")


@pytest.mark.usefixtures("anthropic_client")
def test_the_settings_decide_how_the_provider_is_asked(fake_anthropic: FakeAnthropic) -> None:
    """The key and the server come from the environment, all else from the file."""
    chosen = settings(judge={"provider": "anthropic", "cache": "1h", "concurrency": 2})
    batches, counter = (
        ConfiguredBackends(chosen, Path()).batch_judge(judge_settings()),
        make_token_counter(judge_settings()),
    )

    (reply,) = answered(ConfiguredBackends(chosen, Path()).judge(judge_settings()), queries(1))

    assert isinstance(reply, Reply)
    assert reply.usage is not None
    assert reply.usage.n_cache_write_1h > 0
    assert batches.create(queries(2)).n_queries == 2
    assert len(counter(queries(2))) == 2
    assert len(fake_anthropic.bill().batches) == 1


@pytest.mark.usefixtures("anthropic_client")
@pytest.mark.parametrize(
    "make",
    [
        lambda: ConfiguredBackends(settings(judge={"provider": "anthropic"}), Path()).judge(
            judge_settings()
        ),
        lambda: ConfiguredBackends(settings(), Path()).batch_judge(judge_settings()),
        lambda: make_token_counter(judge_settings()),
    ],
    ids=["judge", "batches", "counter"],
)
def test_a_client_is_closed_when_what_asks_by_it_is_let_go(make: Callable[[], object]) -> None:
    """Its connections would be found open by a collector, at some other time and place."""
    n_before = n_open_clients()
    asker = make()
    n_with_it = n_open_clients()

    del asker

    assert n_open_clients() == n_before < n_with_it


def n_open_clients() -> int:
    """Return how many clients of this process are not closed."""
    return sum(type(each) is Anthropic and not each.is_closed() for each in gc.get_objects())


def test_what_answers_and_what_reads_share_one_load(
    entrant: Callable[..., Entrant],
    tasks: Callable[..., list[GenerationTask]],
    weights: Path,
    copied: Callable[[Path], Path],
) -> None:
    """From one evaluation to the next: real weights take minutes, and once is enough."""
    folder = copied(weights)
    inference = make_inference_factory(settings(generation={"device": "cpu"}))
    one = inference(entrant(folder=folder))
    owed = tasks(one.entrant, ["a dose"])
    ((answer,),) = one.generator().generate(owed)
    shutil.rmtree(folder)  # nothing is read there any more

    reader = one.require_likelihoods("perplexity")
    ((read,),) = reader().log_likelihoods([Continuation("p", one.entrant, "a", " dose")])
    ((again,),) = one.generator().generate(owed)

    assert isinstance(read, ContinuationLikelihood)
    assert isinstance(answer, GeneratedText)
    assert isinstance(again, GeneratedText)
    assert answer.text == again.text


def test_an_endpoint_answers_and_does_not_read() -> None:
    """It serves no log-likelihoods of a text; that is known before anything is paid for."""
    served = events.entrant(loader="endpoint")

    inference = make_inference_factory(settings())(served)

    with pytest.raises(ConfigurationError, match="needs log-likelihoods"):
        inference.require_likelihoods("perplexity")


def openai_server(url: str, model: str = MODEL) -> Server:
    """Return a server with OpenAI's API whose key is in MY_KEY."""
    return Server("[judge]", False, (model,), url, "MY_KEY", ())


def test_a_server_is_reached_by_listing_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs nothing: no model is asked."""
    monkeypatch.setenv("MY_KEY", CANARY)
    with FakeOpenAI(api_key=CANARY) as fake:
        asked_for = (MODEL, f"base:{MODEL}", "other")  # SGLang's name of an adapter on a base
        known, adapter, unknown = (reach(openai_server(fake.url, each)) for each in asked_for)
        fake.traffic.lists_models = False
        unsaid = reach(openai_server(fake.url, "other"))

    assert (known, adapter, unsaid) == (None, None, None)
    assert unknown == f"{fake.url} does not list other"
    assert fake.traffic.looked_with == [CANARY] * 4
    assert fake.traffic.asked == []


def test_a_key_that_a_server_refuses_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is told is pasted into bug reports."""
    monkeypatch.setenv("MY_KEY", CANARY)
    with FakeOpenAI(api_key="another") as fake, pytest.raises(NoCredentials) as refused:
        reach(openai_server(fake.url))

    assert "refuses the key in MY_KEY" in str(refused.value)
    assert CANARY not in told_of(refused.value)


def test_a_server_that_is_not_there_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is generated that it should judge."""
    monkeypatch.setenv("MY_KEY", CANARY)
    with FakeOpenAI() as fake:
        url = fake.url

    with pytest.raises(ProviderError, match="start the server or correct base_url") as lost:
        reach(openai_server(url))
    assert CANARY not in told_of(lost.value)


def test_anthropic_is_reached_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that lists nothing is there all the same."""
    server = Server("[judge]", True, ("claude-opus-5-5",), None, "MY_KEY", ANTHROPIC_KEYS)
    with FakeAnthropic() as fake:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)

        assert reach(server) is None
        assert fake.bill().paid == ()

    with pytest.raises(ProviderError, match=r"connection to .* failed") as lost:
        reach(server)
    assert CANARY not in told_of(lost.value)


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_command_that_a_launcher_starts_several_times_is_refused(
    monkeypatch: pytest.MonkeyPatch, engine: EngineName
) -> None:
    """`torchrun` and `accelerate launch` would have each process generate everything."""
    monkeypatch.setenv("WORLD_SIZE", "4")

    why = r"4 times \(WORLD_SIZE\).*--engine ray"
    with pytest.raises(ConfigurationError, match=why), inferences_on(engine, settings(), print):
        pass
    with pytest.raises(ConfigurationError, match=why):
        backends_on(engine, settings(), Path(), print)


def test_a_launcher_may_start_a_command_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `accelerate launch` does on one GPU."""
    monkeypatch.setenv("WORLD_SIZE", "1")

    assert backends_on("local", settings(), Path(), print).engine is not None
