"""Answers in the report: all to a prompt side by side, and the worst of an evaluation."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from commands.reading.rows import sample_rows
from commands.report.battles import ChosenBattles, Disputed
from commands.report.drawings.panels import SHADES, HeatCell, HeatMap, square_map
from commands.report.subject import Subject
from commands.report.text import ShownText, shown_text
from ledger.events.responses import ResponseGenerated
from projections.evaluations.metrics import RunMetrics
from projections.evaluations.samples import Items
from projections.results.evaluations import SampleRow
from projections.results.ratings import FragilityRow
from projections.tournament.settlement import Settlement

JUDGES_DIFFER: Final = "judges differ"
ORDERS_DIFFER: Final = "orders differ"
DECISIVE: Final = "decisive"  # leaving out such prompts changes who is ahead
MARKS: Final = (JUDGES_DIFFER, ORDERS_DIFFER, DECISIVE)
_SAMPLE: Final = 5  # prompts
_MOST: Final = 800  # characters of an answer in a sample


class GridAnswer(NamedTuple):
    """One entrant's answer, and how often it won, lost and tied on this prompt."""

    entrant: str
    text: ShownText
    n_tokens: int | None  # None: the server did not say
    won: int
    lost: int
    tied: int


class AnswerGrid(NamedTuple):
    """All answers to a prompt, who beat whom, and why the prompt is worth a look."""

    prompt_id: str
    prompt: ShownText
    gold: str | None
    answers: tuple[GridAnswer, ...]  # whoever won most comes first
    outcomes: tuple[tuple[str, HeatMap], ...]  # by dimension
    marks: tuple[str, ...]


def marked_prompts(
    disputed: Disputed, fragile: Iterable[FragilityRow]
) -> Mapping[str, frozenset[str]]:
    """Return the prompts of each mark."""
    return {
        JUDGES_DIFFER: frozenset(prompt for _, prompt, *_ in disputed.by_judges),
        ORDERS_DIFFER: frozenset(prompt for _, prompt, *_ in disputed.by_orders),
        DECISIVE: frozenset(prompt for row in fragile for prompt in row.decisive or () if prompt),
    }


def grids_of(
    subject: Subject, battles: ChosenBattles, fragile: Iterable[FragilityRow], *, is_sample: bool
) -> list[AnswerGrid]:
    """Return the answers to prompts whose battles are shown, those with marks first.

    Of a sample only a few: the page stays small.
    """
    marked = marked_prompts(battles.disputed, fragile)
    by_prompt: defaultdict[str, list[Settlement]] = defaultdict(list)
    for group in subject.results.settlements.values():
        for settlement in group:
            by_prompt[settlement.prompt_id].append(settlement)
    prompts = sorted(
        dict.fromkeys(battle.prompt_id for battle in battles.shown),
        key=lambda prompt: -sum(prompt in ones for ones in marked.values()),
    )
    return [
        answer_grid(by_prompt[prompt], marked, most=_MOST if is_sample else None)
        for prompt in (prompts[:_SAMPLE] if is_sample else prompts)
    ]


def answer_grid(
    settlements: Sequence[Settlement],
    marked: Mapping[str, frozenset[str]],
    *,
    most: int | None,
) -> AnswerGrid:
    """Return all answers to a prompt.

    Args:
        settlements: All on this prompt, by one judge.
        marked: The prompts of each mark.
        most: Characters of a text; None: all.
    """
    prompt = settlements[0].pairing.prompt
    responses: dict[str, ResponseGenerated] = {}
    cells: defaultdict[str, dict[tuple[str, str], HeatCell]] = defaultdict(dict)
    for settlement in settlements:
        if match := settlement.match:
            a, b = settlement.entrant_a, settlement.entrant_b
            responses |= {a: match.response_a, b: match.response_b}
            of_dimension = cells[settlement.dimension]
            of_dimension[a, b] = _cell(settlement, settlement.status)
            of_dimension[b, a] = _cell(settlement, _SEEN_BY_B.get(settlement.status))
    answers = sorted(
        (_answer(name, response, cells.values(), most) for name, response in responses.items()),
        key=lambda answer: -answer.won,
    )
    order = [answer.entrant for answer in answers]
    return AnswerGrid(
        prompt.prompt_id,
        shown_text(prompt.text, most),
        prompt.gold_answer,
        tuple(answers),
        tuple((dimension, square_map(order, each)) for dimension, each in cells.items()),
        tuple(mark for mark, prompts in marked.items() if prompt.prompt_id in prompts),
    )


_SEEN_BY_B: Final[Mapping[str, str]] = {"a": "b", "b": "a"}
_ENDINGS: Final[Mapping[str, tuple[str, int]]] = {"a": ("won", SHADES), "b": ("lost", -SHADES)}


def _cell(settlement: Settlement, status: str | None) -> HeatCell:
    """Return how a battle ended, as one side sees it."""
    said, shade = _ENDINGS.get(status or settlement.status, (settlement.status, 0))
    return HeatCell(said.replace("_", " "), shade, battle_id=settlement.battle_id)


def _answer(
    name: str,
    response: ResponseGenerated,
    cells: Iterable[Mapping[tuple[str, str], HeatCell]],
    most: int | None,
) -> GridAnswer:
    ended = Counter(cell.text for each in cells for (of, _), cell in each.items() if of == name)
    return GridAnswer(
        name,
        shown_text(response.text, most),
        response.n_generated_tokens,
        ended["won"],
        ended["lost"],
        ended["tie"],
    )


_OF_A_RUN: Final = 3  # answers that are shown
_IN_ALL: Final = 60  # of all runs: the page stays small
NOT_OF_ANSWERS: Final = [
    *("entrant", "evaluation", "sample", "choices", "cleaned", "score", "is_right", "unscorable")
]
"""Fields of samples that the tables of answers leave out."""


class ShownAnswers(NamedTuple):
    """Some of an entrant's answers on an evaluation: the wrong ones, or those scored lowest."""

    judge: str  # who scored them; empty: nobody, and wrong ones are shown
    n_found: int  # answers that are wrong, or scored
    n: int  # of all
    shown: tuple[SampleRow, ...]  # the worst first
    evaluation: str
    entrant: str


def shown_answers(subject: Subject) -> tuple[ShownAnswers, ...]:
    """Return of each run its wrong answers or its lowest scores, if any, a few of them."""
    every = (_worst(measured, subject.items) for measured in subject.evaluations)
    found = [answers for answers in every if answers.shown]
    n_shown = min(_OF_A_RUN, _IN_ALL // max(1, len(found)))
    return tuple(answers._replace(shown=answers.shown[:n_shown]) for answers in found)


def _worst(measured: RunMetrics, items: Items) -> ShownAnswers:
    """Return what a judge scored, the lowest first; without one what is known to be wrong."""
    plan, rows = measured.run.plan, [*sample_rows(measured.run, items)]
    if plan.scored_by:
        judge, n = plan.scored_by.judge.label, measured.counts.n_observed
        scored = [row for row in rows if row.judged is not None]
        worst = sorted(scored, key=attrgetter("judged"))
    else:
        judge, n = "", sum(row.is_right is not None for row in rows)
        worst = [row for row in rows if row.is_right is False]
    return ShownAnswers(judge, len(worst), n, tuple(worst), plan.evaluation, plan.entrant.label)
