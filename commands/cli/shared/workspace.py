"""Open the settings and the ledger that options name, for commands that write."""

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from commands.backends.wiring import fetch_snapshot, open_dataset
from commands.cli.shared.output import say
from commands.cli.shared.selection import Selection
from commands.importing.answers import read_answers, unanswered
from commands.ports import Tell
from commands.runs.workspace import Workspace, notes_on_twins, open_for_writing, open_workspace
from commands.settings.sections import RecordedSection
from commands.settings.version import package_versions
from commands.signals import interrupted_by_any_ending
from commands.spending.budget import SpendingOptions
from ledger.errors import NoLedger
from ledger.store import Ledger


def workspace(config: Path, ledger: Path | None) -> Workspace:
    """Read the settings and all files that they name; say which entrants are alike."""
    place = open_workspace(
        config, ledger, package_versions(), fetch=fetch_snapshot, open_dataset=open_dataset
    )
    for note in notes_on_twins(place.opening):
        say(note)
    return place


def spending_of(selection: Selection) -> SpendingOptions:
    """Return what may be spent, and whether that was agreed on."""
    return SpendingOptions(agreed=selection.yes, max_usd=selection.max_usd, limit=selection.limit)


def see_status(place: Workspace) -> str:
    """Say which command shows what of a tournament remains to be done."""
    return f"see `tourney status --tournament {shlex.quote(place.stream)}`"


def tell_unanswered(place: Workspace, tell: Tell) -> None:
    """Tell which prompts the files of recorded answers have no answer to."""
    bank = place.opening.bank
    for section in place.settings.entrants:
        if isinstance(section, RecordedSection):
            answers = read_answers(section, place.folder, bank)
            if (lacking := unanswered(answers, bank)) is not None:
                tell(f"entrant {section.id!r}: {lacking}")


@contextmanager
def ledger_to_write(path: Path) -> Iterator[Ledger]:
    """Open a ledger for writing."""
    with interrupted_by_any_ending(), open_for_writing(path, say) as opened:
        yield opened


def ledger_to_change(path: Path) -> AbstractContextManager[Ledger]:
    """Open a ledger for writing; none is made."""
    if not path.exists():
        raise NoLedger(path)
    return ledger_to_write(path)
