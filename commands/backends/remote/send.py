"""Send a judge's queries by the rules of a `Sender`."""

from collections.abc import Callable, Iterator

from commands.backends.remote.outcomes import HeldRejections, Unanswered
from commands.backends.remote.pace import Pace
from commands.backends.remote.sender import TIMEOUT_S, Sender, WaitLimits
from commands.ports import Asking, NoReply, Reply
from projections.verdicts.queries import JudgeQuery


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
