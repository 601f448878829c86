"""What entrants behind endpoints took, for a command that reads."""

from functools import partial

from commands.cli.asked import Reading
from commands.served_cost import RESPONSE_EVENTS, Used, responses_used
from commands.served_evaluations import answers_used
from ledger.store import Ledger
from projections.evaluations import EVALUATION_EVENTS, evaluations_of
from projections.fold import fold


def used_at_servers(source: Reading) -> tuple[Used, ...]:
    """Return what responses and answers of evaluations took by then: it is what a cap counts."""
    state = source.state
    with Ledger.read_only(source.ledger) as opened:
        read = partial(opened.read, stream=state.stream, until=source.until)
        known = fold(evaluations_of(state.stream), read(types=EVALUATION_EVENTS))
        responses = responses_used(state, read(types=RESPONSE_EVENTS))
        return (*responses, *answers_used(known, state.entrants))
