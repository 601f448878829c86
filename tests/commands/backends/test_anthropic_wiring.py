"""The composition root makes the judges that need a key."""

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from anthropic import Anthropic

from commands.backends.wiring import make_batch_judge, make_judge, make_token_counter
from commands.errors import NoCredentials
from commands.ports import Reply
from tests.anthropic_api.server import FakeAnthropic
from tests.commands.backends.anthropic_builders import judge_settings, queries
from tests.commands.builders import settings


@pytest.mark.usefixtures("anthropic_client")
def test_the_settings_decide_how_the_provider_is_asked(fake_anthropic: FakeAnthropic) -> None:
    """The key and the server come from the environment, all else from the file."""
    chosen = settings(judge={"provider": "anthropic", "cache": "1h", "concurrency": 2})
    batches, counter = (
        make_batch_judge(chosen, judge_settings()),
        make_token_counter(judge_settings()),
    )

    (reply,) = make_judge(chosen, judge_settings(), Path()).answer(queries(1))

    assert isinstance(reply, Reply)
    assert reply.usage is not None
    assert reply.usage.n_cache_write_1h > 0
    assert batches.create(queries(2)).n_queries == 2
    assert len(counter.count(queries(2))) == 2
    assert len(fake_anthropic.bill().batches) == 1


@pytest.mark.usefixtures("anthropic_client")
@pytest.mark.parametrize(
    "make",
    [
        lambda: make_judge(settings(judge={"provider": "anthropic"}), judge_settings(), Path()),
        lambda: make_batch_judge(settings(), judge_settings()),
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


def test_without_a_key_no_judge_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any response is generated for it, let alone sent."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    chosen, judge = settings(judge={"provider": "anthropic"}), judge_settings()

    with pytest.raises(NoCredentials):
        make_judge(chosen, judge, Path())
    with pytest.raises(NoCredentials):
        make_batch_judge(chosen, judge)
    with pytest.raises(NoCredentials):
        make_token_counter(judge)
