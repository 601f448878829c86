"""Send a judge's queries by the rules of a `Sender`."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from commands.backends.remote.outcomes import HeldRejections, Unanswered
from commands.backends.remote.pace import Pace
from commands.backends.remote.sender import TIMEOUT_S, Sender, WaitLimits
from commands.ports import Asking, NoReply, Reply, Tell
from ledger.events.money import Usage
from projections.tournament.estimate import n_input_at_most
from projections.verdicts.queries import JudgeQuery


def send_queries(
    server: str,
    ask: Callable[[JudgeQuery], Reply | NoReply | Unanswered],
    pace: Pace,
    asking: Asking,
    *,
    n_at_a_time: int,
    held: HeldRejections[JudgeQuery],
    max_tokens: int | None,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[tuple[Reply | NoReply, ...]]:
    """Send a judge's queries by the rules of a `Sender`; yield the answers in groups.

    A reply that reports more tokens than can be, by the query's bytes and `max_tokens`, keeps none
    of them: it counts as one whose tokens nobody knows.

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
    believe = UsageBounds(server, asking.tell)
    for group in sender.run(asking.take):
        yield tuple(
            NoReply(
                query.query_key, answer.reason, answer.detail, answer.fate, is_again=answer.is_again
            )
            if isinstance(answer, Unanswered)
            else _believed(answer, believe, n_input_at_most(query), max_tokens)
            for query, answer in group
        )


def _believed(
    answer: Reply | NoReply, bounds: "UsageBounds", n_input: int, n_output: int | None
) -> Reply | NoReply:
    if isinstance(answer, NoReply) or bounds.holds(answer.usage, n_input, n_output):
        return answer
    return replace(answer, usage=None)


class UsageBounds:
    """Tells of the first answer of a server that reports more tokens than it was asked for."""

    def __init__(self, server: str, tell: Tell) -> None:
        """Take the server's name in messages, and how to tell."""
        self._server, self._tell = server, tell
        self._has_told = False

    def holds(self, usage: Usage | None, n_input: int, n_output: int | None) -> bool:
        """Return whether a usage is within bounds in tokens; None: nothing bounds them."""
        if usage is None or (
            usage.n_prompt <= n_input and (n_output is None or usage.n_output <= n_output)
        ):
            return True
        if not self._has_told:
            self._tell(
                f"{self._server} reports {usage.n_prompt} tokens in and {usage.n_output} out, but"
                f" {n_input} and {n_output} are the most that there can be: such an answer counts"
                " at its worst cost"
            )
        self._has_told = True
        return False
