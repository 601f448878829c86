"""Say what servers were found not to take."""

from ledger.events.requests import ParameterRefused


def described(refused: ParameterRefused) -> str:
    """Say what a server does not take, and what is sent in its place."""
    otherwise = f"{refused.instead} is sent instead" if refused.instead else "it is left out"
    return (
        f"{refused.model} at {refused.base_url} does not take {refused.parameter}: {otherwise},"
        " in all later requests, too"
    )
