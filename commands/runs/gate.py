"""Use case: ask about two entrants, a few prompts at a time, until a gate knows its verdict."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from commands.decisions.recorder import Recorder
from commands.entrants.generate import WantedResponses
from commands.entrants.session import generate_with_consent
from commands.errors import ConfigurationError
from commands.judging import session
from commands.judging.plan import JudgingOptions, plan_judging
from commands.ports import Backends, Console
from commands.runs.run import require_ready
from commands.runs.workspace import Workspace
from commands.settings.servers import Reach
from commands.spending.pricing import price_book
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, EntrantId
from projections.ratings.gate import GateLook, GateQuestion, gate_looks
from projections.tournament.matches import Pairing
from projections.tournament.remaining import responses_to_come
from projections.tournament.state import Tournament


def run_gate(
    recorder: Recorder,
    workspace: Workspace,
    question: GateQuestion,
    options: JudgingOptions,
    backends: Backends,
    console: Console,
    *,
    reach: Reach,
    only: str | None = None,
) -> None:
    """Generate and judge what the next look lacks about the two, until no look lacks anything.

    A dimension that is decided is asked no more; nor is any once the candidate is worse on one. The
    user agrees at once to what the whole bank would cost. `only` is a dimension; None: all.

    Raises:
        As for `run_tournament`.
    """
    _require_no_looks(workspace)
    recorder.record(workspace.opening)
    bank = tuple(prompt.prompt_id for prompt in recorder.state.bank)
    pair = frozenset(map(EntrantId, question.pair))
    plan = partial(plan_judging, recorder, workspace.settings, workspace.folder)
    book = price_book(workspace.settings, workspace.folder)
    judging = plan(
        bank,
        options,
        console,
        lambda pairing: pairing.entrants == pair and only in {None, pairing.rubric.dimension},
    )
    if not _wanted(recorder.state, judging.judge, question, only):
        return
    missing = responses_to_come(recorder.state, bank, entrants=pair)
    if missing or judging.task.open_in(recorder.state):
        entrants = {cell.entrant.entrant_id for cell in missing}
        require_ready(judging, workspace.settings, entrants, reach, console)
    options = session.agreed_to_all(recorder, judging, book.requests(missing), book, console)
    generate = partial(
        generate_with_consent,
        recorder,
        backends=backends,
        book=book,
        spending=options.spending,
        console=console,
        waits=options.waits,
    )
    before: Mapping[Dimension, GateLook] = {}
    while (wanted := _wanted(recorder.state, judging.judge, question, only)) and wanted != before:
        prompts = {prompt for look in wanted.values() for prompt in look.wanted}
        generate(WantedResponses(prompts, entrants=pair))
        judging = plan(prompts, options, console, partial(_is_wanted, pair=pair, wanted=wanted))
        session.judge_with_consent(recorder, judging, backends, console)
        before = wanted


def _require_no_looks(workspace: Workspace) -> None:
    if workspace.settings.judging.looks is not None:
        why = "[judging] looks may stop the pair of the two before the gate knows: leave it out"
        raise ConfigurationError([why])


def _wanted(
    state: Tournament, judge: JudgeSettings, question: GateQuestion, only: str | None
) -> Mapping[Dimension, GateLook]:
    """Return the dimensions whose next look lacks verdicts; none once the candidate is worse."""
    looks = {
        Dimension(look.row.dimension): look
        for look in gate_looks(state, judge, question)
        if only in {None, look.row.dimension}
    }
    if any(look.row.verdict == "worse" for look in looks.values()):
        return {}
    return {dimension: look for dimension, look in looks.items() if look.wanted}


def _is_wanted(
    pairing: Pairing, *, pair: AbstractSet[EntrantId], wanted: Mapping[Dimension, GateLook]
) -> bool:
    """Say whether a look lacks the verdicts on a pairing."""
    look = wanted.get(pairing.rubric.dimension)
    return pairing.entrants == pair and look is not None and pairing.prompt.prompt_id in look.wanted
