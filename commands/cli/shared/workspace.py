"""Open the settings and the ledger that options name, for commands that write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands.backends.wiring import package_versions
from commands.cli.shared.ledger import allows_network, ledger_path
from commands.cli.shared.output import say
from commands.runs.workspace import Workspace, open_for_writing, open_workspace
from ledger.events.registration import Provider
from ledger.store import Ledger


def workspace(config: Path, ledger: Path | None, *, provider: Provider | None = None) -> Workspace:
    """Read the settings and all files that they name; a provider replaces that of [judge].

    Raises:
        ConfigurationError: Something is missing or wrong; the ledger is unchanged.
    """
    return open_workspace(config, ledger, package_versions(), provider=provider)


@contextmanager
def ledger_to_write(ledger: Path | None, config: Path) -> Iterator[Ledger]:
    """Open the ledger that the options name, for writing."""
    network = allows_network(config)
    with open_for_writing(ledger_path(ledger, config), say, allow_network=network) as opened:
        yield opened
