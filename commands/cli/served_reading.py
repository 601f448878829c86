"""What entrants behind endpoints took, as of now or of earlier."""

from functools import partial

from commands.cli.asked import Reading
from commands.served_cost import RESPONSE_EVENTS, Used, responses_used
from commands.served_evaluations import answers_used
from ledger.store import Ledger
from projections.evaluations.state import EVALUATION_EVENTS, evaluations_of
from projections.fold import fold
from projections.tournament.state import Tournament


def used_at_servers(source: Reading) -> tuple[Used, ...]:
    """Return what responses and answers of evaluations took by then: it is what a cap counts."""
    with Ledger.read_only(source.ledger) as opened:
        return used_on(opened, source.state, until=source.until)


def used_on(ledger: Ledger, state: Tournament, *, until: int | None = None) -> tuple[Used, ...]:
    """Return the same of a ledger that is open, up to a position.

    What an entrant took that is no longer on the roster was paid, too; what another tournament of
    the ledger asked for, that one paid.
    """
    read = partial(ledger.read, stream=state.stream, until=until)
    known = fold(evaluations_of(state.stream), read(types=EVALUATION_EVENTS))
    responses = responses_used(state, read(types=RESPONSE_EVENTS))
    return (*responses, *answers_used(known, state.entrants))
