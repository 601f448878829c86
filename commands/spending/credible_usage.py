"""Whether the tokens that a server reports can be what a request used."""

from commands.ports import Tell
from ledger.events.money import Usage
from projections.tournament.estimate import may_have_used


class CredibleUsage:
    """Tells of the first answer of a server that reports more tokens than there can be."""

    def __init__(self, server: str, tell: Tell) -> None:
        """Take the server's name in messages, and how to tell."""
        self._server, self._tell = server, tell
        self._has_told = False

    def is_credible(self, usage: Usage | None, n_input: int | None, n_output: int | None) -> bool:
        """Return whether a usage is within bounds in tokens; None: nothing bounds them."""
        if usage is None or may_have_used(usage, n_input, n_output):
            return True
        if not self._has_told:
            most = " and ".join("any number" if n is None else str(n) for n in (n_input, n_output))
            self._tell(
                f"{self._server} reports {usage.n_prompt} tokens in and {usage.n_output} out, but"
                f" {most} are the most that there can be: such an answer counts at its worst cost"
            )
        self._has_told = True
        return False
