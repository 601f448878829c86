"""How batches are made, waited for, and told of."""

from collections.abc import Callable
from dataclasses import dataclass

from commands.pricing import Pricing
from commands.progress import OnProgress
from commands.waiting import Waiting
from ledger.events.registration import JudgeSettings


@dataclass(frozen=True)
class Batching:
    """What the settings and the command line say of batches."""

    batch_queries: int  # in one batch, at most
    prewarm: bool
    waiting: Waiting
    pricing_of: Callable[[JudgeSettings], Pricing]
    tell: Callable[[str], None]
    on_progress: OnProgress
