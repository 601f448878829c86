"""Generating from the command line: with consent, where an endpoint may send a bill."""

from collections.abc import Collection
from itertools import islice

from commands.cli.judging import Terms, require_cap_can_be_kept
from commands.cli.served import settle_served
from commands.cli.workshop import Workshop
from commands.generate import Generated, generate_owed
from commands.progress import OnProgress
from commands.recorder import Recorder
from commands.served_cost import Request
from commands.wiring import make_generator
from ledger.identity import PromptId
from projections.tournament.progress import owed_responses


def generate_with_consent(
    recorder: Recorder,
    place: Workshop,
    terms: Terms,
    prompts: Collection[PromptId],
    on_progress: OnProgress,
) -> Generated:
    """Generate what is owed, after asking about what it costs."""
    owed = islice(owed_responses(recorder.state, prompts), terms.limit)
    requests = [Request(cell.entrant, cell.prompt.text) for cell in owed]
    settle_served(recorder, place, requests, agreed=terms.agreed, max_usd=terms.max_usd)
    return generate_owed(
        recorder,
        lambda: make_generator(place.settings),
        prompts,
        on_progress=on_progress,
        limit=terms.limit,
    )


def generate_to_be_judged(
    recorder: Recorder,
    place: Workshop,
    terms: Terms,
    prompts: Collection[PromptId],
    on_progress: OnProgress,
) -> Generated:
    """Generate what is owed, if the judge may be asked about it then."""
    if owed_responses(recorder.state, prompts):
        require_cap_can_be_kept(recorder, place, terms)
    return generate_with_consent(recorder, place, terms, prompts, on_progress)
