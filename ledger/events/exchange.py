"""What came from other ledgers."""

from ledger.events.fact import Fact
from ledger.events.limits import Ordinal
from ledger.identity import Digest


class LedgerMerged(Fact, frozen=True):
    """Events of another ledger were taken into this stream, each as it was recorded there.

    Their positions are new. What they say of positions, as a publication does, is said of the
    ledger that this head names.
    """

    head: Digest  # the other ledger's chain at its last event
    n_events: Ordinal  # its last position
    n_taken: Ordinal  # events that were new to this stream

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A ledger is taken in once as it stands; two others may each have taken it in."""
        return (self.head, str(self.n_taken))
