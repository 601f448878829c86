"""Judges of several makers, as a user asks them: each with its own server, key and batches."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

import pytest

from commands.backends.endpoint.batches import OpenAIBatches
from commands.backends.remote.bodies import decode_json
from commands.judging.judge import Receipts
from ledger.events.responses import ResponseGenerated
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.hosts import FakeHosts
from tests.providers.loopback import LoopbackFake
from tests.providers.openai import FakeOpenAI, Fault, Json, Said
from tests.providers.openai_batches.server import FakeOpenAIBatches
from tests.providers.openai_batches.service import Trouble
from tests.support.command_line import paid
from tests.support.command_line.launching import change
from tests.support.command_line.settled import events_in
from tests.support.command_line.warm import MOST_QUERIES, Ended, begin, run_warm
from tests.support.faults.death import Death, before

CANARY = "sk-proj-canary-3d9a"
MODEL = "gpt-5-mini"
N_QUERIES = 36  # 1 prompt, 3 dimensions, 6 pairs, both orders


@pytest.fixture
def fake() -> Iterator[FakeOpenAIBatches]:
    """Give OpenAI, whose batches end when they are looked at, and bear the time of its answers."""
    with FakeOpenAIBatches(api_key=CANARY) as fake:
        fake.service.ends_by_looking = True
        fake.service.now = partial(datetime.now, UTC)
        yield fake


@pytest.fixture
def folder(tmp_path: Path, fake: FakeOpenAIBatches, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tournament that four entrants have answered, judged in batches by OpenAI's model."""
    place = paid.lay_out(
        tmp_path / "paid",
        n_prompts=1,
        judge={"model": MODEL, "pilot_model": MODEL, "base_url": fake.url},
    )
    monkeypatch.setenv(MOST_QUERIES, "15")
    change(place / "tournament.toml", "anthropic-batch", "openai-batch")
    paid.record_responses(place)
    return place


def environment(**more: str) -> dict[str, str]:
    """Return an environment with OpenAI's key."""
    return paid.environment("http://127.0.0.1:9", OPENAI_API_KEY=CANARY, **more)


def tourney(folder: Path, *words: str, **more: str) -> Ended:
    """Run a command in a folder to its end."""
    return run_warm(folder, words, environment(**more))


def require_paid_once(folder: Path, fake: FakeOpenAIBatches) -> None:
    """Compare the bill with the ledger: every answer is there, and the only one to its query.

    Batches that nobody looks at again are billed, too.
    """
    fake.end_batches()
    billed = Counter(fake.service.billed)
    assert set(billed.values()) == {1}
    assert billed == paid.paid_by_ledger(folder)


def test_a_tournament_is_judged_in_openais_batches(folder: Path, fake: FakeOpenAIBatches) -> None:
    """At half the price, with one key, which is nowhere on the ledger."""
    done = tourney(folder, "apply", "judge", "--yes")

    assert done.code == 0, done.err
    assert len(paid.verdicts_in(folder)) == N_QUERIES
    require_paid_once(folder, fake)
    assert set(fake.service.keys) == {CANARY}
    assert CANARY.encode() not in (folder / "tournament.db").read_bytes()
    total = paid.spend_in(folder)
    tokens = total.tokens
    usd = (tokens.n_input * 0.25 + tokens.n_output * 2.0) / 2 / 1e6
    assert total.usd == pytest.approx(usd)


@pytest.mark.parametrize(
    "kind",
    [
        "cut_after",
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("cut_before", "error_after")),
    ],
)
def test_an_order_of_unknown_fate_is_paid_once(
    folder: Path, fake: FakeOpenAIBatches, kind: str
) -> None:
    """What exists is adopted by its metadata, at once; what does not is ordered again."""
    fake.inject(Trouble("order", kind))  # type: ignore[arg-type]  # the kinds above

    done = tourney(folder, "apply", "judge", "--yes")

    assert done.code == 0, done.err
    assert len(paid.verdicts_in(folder)) == N_QUERIES
    require_paid_once(folder, fake)


KILLS = [
    before(decode_json, call=2),  # the order was taken, and nobody read the answer
    before(Receipts.receipt, call=20),
    *(
        pytest.param(each, marks=pytest.mark.nightly)
        for each in (before(OpenAIBatches.create), *map(Death, range(20, 300, 10)))
    ),
]


@pytest.mark.parametrize("death", KILLS, ids=str)
def test_killed_anywhere_a_command_pays_for_nothing_twice(
    folder: Path, fake: FakeOpenAIBatches, death: Death
) -> None:
    """The provider goes on; the same command again finds what it did."""
    killed = begin(folder, ("apply", "judge", "--yes"), environment(), death=death).wait()
    done = tourney(folder, "apply", "judge", "--yes")

    assert killed.code == -SIGKILL
    assert done.code == 0, done.err
    assert len(paid.verdicts_in(folder)) == N_QUERIES
    require_paid_once(folder, fake)


def verdict_of(maker: str) -> Callable[[Json], Said]:
    """Return a model that answers each request in its own way, and always alike."""

    def say(body: Json) -> Said:
        letter = sha256(f"{maker} {body['messages']}".encode()).digest()[1] % 3
        return Said(f"VERDICT: {('A', 'B', 'TIE')[letter]}")

    return say


def test_a_jury_of_three_makers_is_asked_at_three_servers_with_three_keys(tmp_path: Path) -> None:
    """A key that went to another maker's server would be given away."""
    keys = {name: f"sk-{name}-canary" for name in ("first", "second", "third")}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(FakeOpenAI(verdict_of(name), api_key=key))
            for name, key in keys.items()
        }
        place = paid.lay_out(tmp_path / "paid", n_prompts=1)
        settings = place / "tournament.toml"
        jury = ""
        for name, server in servers.items():
            server.traffic.models = None
            jury += (
                f'[[jury]]\nid = "{name}"\nprovider = "endpoint"\nmodel = "{name}-large"\n'
                f'base_url = "{server.url}"\napi_key_env = "{name.upper()}_KEY"\n'
            )
        settings.write_text(f"{settings.read_text(encoding='utf-8')}\n{jury}", encoding="utf-8")
        paid.record_responses(place)
        known = {f"{name.upper()}_KEY": key for name, key in keys.items()}

        for name in servers:
            done = tourney(place, "apply", "judge", "--judge", name, **known)
            assert done.code == 0, done.err

        asked = {name: set(server.traffic.keys) for name, server in servers.items()}
        n_asked = {len(server.traffic.asked) for server in servers.values()}

    assert asked == {name: {key} for name, key in keys.items()}
    assert n_asked == {N_QUERIES}
    content = (place / "tournament.db").read_bytes()
    assert not [key for key in keys.values() if key.encode() in content]


def test_a_usage_limit_of_a_server_costs_no_query_its_turn(tmp_path: Path) -> None:
    """It comes as an invalid request; lifted, the same command asks the rest, and nothing twice."""
    judge = ("apply", "judge", "--judge", "mine")
    with FakeOpenAI() as server:
        place = paid.lay_out(tmp_path / "paid", n_prompts=1)
        with (place / "tournament.toml").open("a", encoding="utf-8") as settings:
            settings.write(
                '\n[[jury]]\nid = "mine"\nprovider = "endpoint"\nmodel = "large"\n'
                f'base_url = "{server.url}"\n'
            )
        paid.record_responses(place)
        server.traffic.models = None
        server.inject(*[None] * 20, *[Fault("usage_limit")] * N_QUERIES)

        stopped = tourney(place, *judge)
        n_judged = len(paid.verdicts_in(place))
        server.traffic.faults.clear()
        done = tourney(place, *judge)
        asked = Counter(str(body["messages"]) for body in server.traffic.asked)

    assert (stopped.code, done.code) == (5, 0), stopped.err + done.err
    assert "You have reached your specified API usage limits" in stopped.err
    assert n_judged == 20
    assert len(asked) == len(paid.verdicts_in(place)) == N_QUERIES
    assert paid.paid_by_ledger(place).total() == N_QUERIES


GENERATE = ("apply", "generate", "--yes")


def said_in(place: Path) -> dict[tuple[str, str], ResponseGenerated]:
    """Return the responses on a sound ledger, by entrant and prompt."""
    given = events_in(place, ResponseGenerated)
    return {(each.entrant_id, each.prompt_id): each for each in given}


def told(answer: Json, message: Mapping[str, object], **usage: int) -> Json:
    """Return an answer whose message and tokens are said in a maker's own way."""
    whole = deepcopy(answer)
    match whole:
        case {"choices": [{"message": dict() as said}], "usage": dict() as used}:
            said |= message
            used |= usage
    return whole


def in_parts(answer: Json) -> Json:
    """Say an answer as Mistral's thinking models do."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    return told(answer, {"content": [thought, {"type": "text", "text": "In parts."}]})


def with_reasoning(answer: Json) -> Json:
    """Say an answer as DeepSeek does: the reasoning beside it, and what its cache held."""
    return told(
        answer,
        {"content": "Reasoned.", "reasoning_content": "Hm."},
        prompt_tokens=9,
        completion_tokens=7,
        total_tokens=16,
        prompt_cache_hit_tokens=4,
    )


def thinking_unsaid(answer: Json) -> Json:
    """Say tokens as Google does: what it thought is in the total alone."""
    content = {"content": "Thought over."}
    return told(answer, content, prompt_tokens=9, completion_tokens=3, total_tokens=50)


class Dialect(NamedTuple):
    """A maker's host and paths, the variable of its key, and its way to say an answer."""

    host: str
    root: str
    key: str
    shape: Callable[[Json], Json]
    text: str  # as it is recorded
    n_output: int | None = None  # the tokens that are billed as output


DIALECTS = {
    "openai": Dialect("api.openai.com", "/v1", "OPENAI_API_KEY", lambda answer: answer, "Said."),
    "mistral": Dialect("api.mistral.ai", "/v1", "MISTRAL_API_KEY", in_parts, "In parts."),
    "deepseek": Dialect(
        "api.deepseek.com", "/v1", "DEEPSEEK_API_KEY", with_reasoning, "Reasoned.", 7
    ),
    "google": Dialect(
        *("generativelanguage.googleapis.com", "/v1beta/openai", "GEMINI_API_KEY"),
        *(thinking_unsaid, "Thought over.", 41),
    ),
}
ANTHROPICS = "api.anthropic.com"


def test_makers_need_a_name_and_a_key_alone(tmp_path: Path) -> None:
    """The real clients ask the real addresses, and each maker speaks in its own way.

    OpenAI's reasoning model takes neither max_tokens nor a temperature, which is learnt once.
    """
    place = paid.lay_out(tmp_path / "makers", n_prompts=2)
    names = {"anthropic": "claude-opus-5-5", **{maker: f"{maker}-large" for maker in DIALECTS}}
    tables = "".join(
        f'[[entrants]]\nid = "{maker}"\nmodel = "{maker}/{name}"\n\n'
        for maker, name in names.items()
    )
    head, _, rest = paid.ENTRANTS_BY_NAME.partition("[[entrants]]")
    settings = f"{head}{tables}[[rubrics]]{rest.partition('[[rubrics]]')[2]}"
    (place / "tournament.toml").write_text(settings, encoding="utf-8")
    with ExitStack() as stack:
        anthropic = stack.enter_context(FakeAnthropic())
        fakes: dict[str, LoopbackFake] = {ANTHROPICS: anthropic}
        for maker, dialect in DIALECTS.items():
            server = FakeOpenAI(lambda _: Said("Said."), api_key=f"sk-{maker}")
            server.traffic.models = frozenset({names[maker]})
            server.traffic.root, server.traffic.shape = dialect.root, dialect.shape
            server.traffic.thinks = maker == "openai"
            fakes[dialect.host] = stack.enter_context(server)
        hosts = stack.enter_context(FakeHosts(fakes, tmp_path))
        known = {dialect.key: f"sk-{maker}" for maker, dialect in DIALECTS.items()}
        outside = {name: text for name, text in paid.environment("").items() if "_URL" not in name}
        done = run_warm(place, GENERATE, {**outside, **known, **hosts.environment})
        billed = {(line.usage.n_input, line.usage.n_output) for line in anthropic.bill().paid}

    assert done.code == 0, done.err
    said = said_in(place)
    assert Counter(who for who, _ in said) == dict.fromkeys(names, 2)
    for (who, _), response in said.items():
        if who in DIALECTS:
            assert response.text == DIALECTS[who].text
            assert DIALECTS[who].n_output in {None, response.n_generated_tokens}
        else:
            assert (response.n_prompt_tokens, response.n_generated_tokens) in billed
    assert {each.reasoning for (who, _), each in said.items() if who == "deepseek"} == {"Hm."}
    assert done.err.count("does not take max_tokens") == 1
