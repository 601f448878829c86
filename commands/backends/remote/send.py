"""Send a judge's queries, or one request alone, by the rules of a `Sender`."""

from collections.abc import Callable, Iterator
from threading import Event
from typing import TypeVar

from commands.backends.remote.outcomes import HeldRejections, Unanswered
from commands.backends.remote.pace import Pace
from commands.backends.remote.sender import LONGEST_SILENT_WAIT_S, TIMEOUT_S, Sender, WaitLimits
from commands.errors import ProviderError
from commands.ports import Asking, NoReply, Reply
from projections.verdicts.queries import JudgeQuery

Answer = TypeVar("Answer")


def send_queries(
    server: str,
    ask: Callable[[JudgeQuery], Reply | NoReply | Unanswered],
    pace: Pace,
    asking: Asking,
    *,
    n_at_a_time: int,
    held: HeldRejections[JudgeQuery],
    timeout_s: float = TIMEOUT_S,
) -> Iterator[tuple[Reply | NoReply, ...]]:
    """Send a judge's queries by the rules of a `Sender`; yield the answers in groups.

    Raises:
        TourneyError: The server fails, whatever it is asked.
    """
    sender = Sender[JudgeQuery, Reply | NoReply](
        server,
        ask,
        pace,
        n_at_a_time=n_at_a_time,
        held=held,
        stops=asking.stops,
        tell=asking.tell,
        limits=WaitLimits(silent_s=timeout_s),
    )
    for group in sender.run(asking.take):
        yield tuple(
            NoReply(query.query_key, answer.reason, answer.detail, answer.fate)
            if isinstance(answer, Unanswered)
            else answer
            for query, answer in group
        )


def send_alone(server: str, ask: Callable[[None], Answer], pace: Pace) -> Answer:
    """Send one request by the rules of a `Sender`, and return its answer.

    Raises:
        TourneyError: It has none.
    """
    sender = Sender[None, Answer](
        server,
        ask,
        pace,
        n_at_a_time=1,
        held=HeldRejections(),
        stops=Event(),
        tell=lambda _: None,
        limits=WaitLimits(busy_s=LONGEST_SILENT_WAIT_S),
    )
    once = iter([(None,)])
    settled = [each for group in sender.run(lambda _: next(once, ())) for each in group]
    (answer,) = (each.answer for each in settled)
    if isinstance(answer, Unanswered):
        raise ProviderError(answer.detail)
    return answer
