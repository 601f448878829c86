"""What tests of the Anthropic backends use: a judge, queries, and a look for leaks."""

from traceback import TracebackException

from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from projections.verdicts.queries import PairQuery
from tests.support.builders.events import key

CANARY = "sk-ant-canary-0123456789"
MODEL = "claude-sonnet-5-5"
SYSTEM = "Judge factuality. " * 200  # long enough to be cached


def judge_settings(**parameters: str | float) -> JudgeSettings:
    """Return a judge as the panel makes one."""
    given = {"effort": "low", "max_tokens": 4096.0, "protocol": "line", **parameters}
    return JudgeSettings(
        judge_id=JudgeId(MODEL), provider="anthropic", model=MODEL, parameters=tuple(given.items())
    )


def queries(n: int, *, system: str = SYSTEM) -> tuple[PairQuery, ...]:
    """Return queries, each with a question of its own."""
    return tuple(
        PairQuery(key(f"query {n}"), "forward", system, f"Question {n}?", "yes", "no", None)
        for n in range(n)
    )


def told_of(error: BaseException) -> str:
    """Return all that a traceback can show of an error, its locals and causes included."""
    whole = TracebackException.from_exception(error, capture_locals=True)
    return f"{error!r} {error} {error.__dict__} {''.join(whole.format())}"
