"""All views of a ledger."""

from typing import Final

from ledger.storage.views.further import FURTHER
from ledger.storage.views.judged import JUDGED
from ledger.storage.views.registered import REGISTERED
from ledger.storage.views.view import EVENTS

VIEWS: Final = (*REGISTERED, *JUDGED, *FURTHER, *EVENTS)
