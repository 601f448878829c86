"""Use case: redact an event, with consent."""

from collections.abc import Callable

from commands.errors import ConfigurationError, Refused
from commands.ports import Console
from commands.settings.api_keys import redacted
from ledger.recorded import StoredEvent, moment
from ledger.storage.redaction import require_redactable
from ledger.store import Ledger


def redact_with_consent(
    ledger: Ledger, position: int, why: str, *, agreed: bool, console: Console
) -> None:
    """Remove the texts of an event for good, and record why.

    Of an event that was redacted before, only the bytes are removed again: so a command that was
    killed in between can be repeated.

    Raises:
        ConfigurationError: No reason is given.
        CannotRedact: There is no such event, or its texts must stay.
        Refused: It was not confirmed.
        NotErased: It is recorded, and the old bytes may still be in the file.
    """
    if not why.strip():
        raise ConfigurationError(["--why is empty: say why the texts are removed"])
    for row in ledger.rows(after=position - 1, until=position):
        if row.decode().redacted:
            ledger.erase()
            console.tell(f"position {position} was redacted before; {ledger.path} is written anew")
            return
    row = require_redactable(ledger.connection, position)
    _require_consent(_question(row, ledger), agreed=agreed, confirm=console.confirm)
    ledger.redact(position, redacted(why))
    console.tell(
        f"position {position} is redacted, as position {ledger.head.position} tells; backups,"
        " exports, runs and reports that were made before may still hold its texts"
    )


def _question(row: StoredEvent, ledger: Ledger) -> str:
    when = f"{moment(row.recorded_us):%Y-%m-%d %H:%M} UTC"
    return (
        f"Remove the texts of position {row.position}, {row.type} of {row.stream}, recorded on"
        f" {when}, from {ledger.path} for good?"
    )


def _require_consent(question: str, *, agreed: bool, confirm: Callable[[str], bool] | None) -> None:
    if agreed:
        return
    if confirm is None:
        raise Refused(
            "texts are removed for good, and no terminal is here to confirm: run again with --yes"
        )
    if not confirm(question):
        raise Refused("not confirmed: nothing was changed")
