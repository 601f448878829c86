"""`tourney battle`: one battle on one screen."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Annotated, Final

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from commands.cli.shared import completion
from commands.cli.shared.output import write_screen
from commands.cli.shared.reading import read_verdicts, with_source
from commands.cli.shared.selection import JUDGED, WRITTEN, Selected, selecting
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table, table_of
from commands.reading.battle import pairings_of_battle
from commands.report.text import Piece, word_difference
from ledger.identity import Json
from projections.artifacts.escaping import escaped, one_line
from projections.battles.details import (
    BattleDetails,
    BattleSide,
    DimensionResult,
    OrderResult,
    battle_details,
)
from projections.results.outcomes import BattleRow


@selecting(*JUDGED, *WRITTEN)
def battle(
    ctx: Selected,
    prompt: Annotated[
        str,
        typer.Argument(
            metavar="PROMPT|ID",
            autocompletion=completion.prompts,
            help="A prompt, or the start of an id that `tourney project matches` lists.",
        ),
    ],
    entrants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[A B]",
            autocompletion=completion.entrants,
            help="The two entrants; not needed with an ID, or where there are only two.",
        ),
    ] = None,
) -> None:
    """Show one battle: both responses and the judge's replies.

    It tells the verdict in each order, or why there is none. On a terminal differing words are
    underlined.

    Example: tourney battle recall_001 base_olmo full_poe
    """
    source = read_verdicts(ctx.selection)
    chosen = pairings_of_battle(source.state, prompt, entrants or ())
    details = battle_details(source.state, chosen, source.judge)
    if ctx.selection.chosen_format is Format.TABLE:
        write_screen(partial(battle_screen, details))
    else:
        ctx.selection.write(with_source(battle_table(details), source))


_PART: Final = re.compile(r"\S+|\s+")
_MOST_WORDS: Final = 5_000  # of one battle; a page has many
_MARK: Final = "bold underline"
_BESIDE_FROM: Final = 100  # columns: narrower, the responses stand one above the other
_GAP: Final = 3  # columns between the responses
_IN: Final = 2  # columns that a text stands in from its heading
_WHY: Final[Mapping[str, str]] = {
    "in_flight": "no verdict yet: in flight",
    "pending": "no verdict yet: not asked",
    "no_response": "not asked: a response is missing",
    "redacted": "no verdict can be shown: a response was redacted",
    "identical": "not asked: the responses are identical",
}
_OUTCOMES: Final[Mapping[str, str]] = {
    "tie": "a tie",
    "inconsistent": "inconsistent: the verdict depends on the order",
    "pending": "pending",
    "no_response": "no outcome: an entrant has no response",
    "redacted": "no outcome: a response was redacted",
}


def battle_table(details: BattleDetails) -> Table:
    """Return a row for each order on each dimension; the texts are facts."""
    return table_of(
        BattleRow,
        (_row(result, order) for result in details.dimensions for order in result.orders),
        "tourney/battle@1",
        _title(details),
        facts={
            "judge": details.judge.judge_id,
            "prompt": details.prompt.fields,
            "responses": [_side_fields(side) for side in (details.a, details.b)],
        },
    )


def _row(result: DimensionResult, order: OrderResult) -> BattleRow:
    settled = result.settlement
    return BattleRow(
        id=settled.pairing.battle_id,
        dimension=settled.pairing.rubric.dimension,
        outcome=settled.status,
        winner=settled.winner,
        **order._asdict(),
    )


def _side_fields(side: BattleSide) -> dict[str, Json]:
    response, failure = side.response, side.failure
    return {
        "entrant": side.entrant_id,
        "text": response.text if response else None,
        "finish_reason": response.finish_reason if response else None,
        "n_tokens": response.n_generated_tokens if response else None,
        "failure": failure.reason if failure else None,
    }


def battle_screen(details: BattleDetails, console: Console, width: int | None) -> Iterator[Text]:
    """Yield the lines of a battle; without a width they are not wrapped, as in a pipe."""
    draw = _Drawing(console, width)
    yield from draw.indented(Text(_title(details), "bold"), 0)
    yield from draw.section("Prompt", details.prompt.text)
    if details.prompt.gold_answer is not None:
        yield from draw.section("Gold answer", details.prompt.gold_answer)
    yield from draw.responses(details)
    for result in details.dimensions:
        yield from draw.dimension(result)


def _title(details: BattleDetails) -> str:
    a, b = details.a.entrant_id, details.b.entrant_id
    return one_line(f"{details.prompt.prompt_id}: {a} vs {b}, judge {details.judge.judge_id}")


class _Drawing:
    """Lines for a console."""

    def __init__(self, console: Console, width: int | None) -> None:
        self._console = console
        self._width = width

    def section(self, heading: str, text: str) -> Iterator[Text]:
        """Yield a heading and the text below it."""
        yield Text("")
        yield Text(heading, "bold")
        yield from self.indented(Text(escaped(text)), _IN)

    def responses(self, details: BattleDetails) -> Iterator[Text]:
        """Yield both responses, side by side if there is room, with differing words marked."""
        sides = (details.a, details.b)
        names, texts = [_heading(side) for side in sides], _marked(details)
        width = self._width
        if width is None or width < _BESIDE_FROM or max(map(cell_len, names)) > (width - _GAP) // 2:
            for name, text in zip(names, texts, strict=True):
                yield Text("")
                yield from self.indented(Text(name, "bold"), 0)
                yield from self.indented(text, _IN)
            return
        half = (width - _GAP) // 2
        left, right = (
            [Text(name, "bold"), *self._lines(text, half)]
            for name, text in zip(names, texts, strict=True)
        )
        yield Text("")
        for one, other in zip_longest(left, right, fillvalue=Text("")):
            line = one.copy()
            line.pad_right(max(0, half + _GAP - one.cell_len))
            yield Text.assemble(line, other)

    def dimension(self, result: DimensionResult) -> Iterator[Text]:
        """Yield a dimension's outcome, and the verdict and the reply in each order."""
        pairing = result.settlement.pairing
        yield Text("")
        heading = Text(f"{one_line(pairing.rubric.dimension)}: {_outcome(result)}", "bold")
        yield from self.indented(heading.append(f"  {pairing.battle_id[:12]}", "dim"), 0)
        for order in result.orders:
            yield from self.indented(Text(f"{one_line(order.first)} first: {_said(order)}"), _IN)
            if order.reply:
                yield from self.indented(Text(escaped(order.reply)), 2 * _IN)

    def indented(self, text: Text, by: int) -> Iterator[Text]:
        """Yield the lines of a text, each some columns in."""
        width = None if self._width is None else max(1, self._width - by)
        for line in self._lines(text, width):
            yield Text.assemble(" " * by, line) if line else line

    def _lines(self, text: Text, width: int | None) -> list[Text]:
        text.expand_tabs(4)
        lines = text.split("\n", allow_blank=True)
        if width is None:
            return [*lines]
        return [part for line in lines for part in line.wrap(self._console, width) or [line]]


def _heading(side: BattleSide) -> str:
    if side.response is None:
        return one_line(side.entrant_id)
    n_tokens, ended = side.response.n_generated_tokens, side.response.finish_reason
    known = [] if n_tokens is None else [f"{n_tokens} tokens"]
    return one_line(f"{side.entrant_id} ({', '.join([*known, ended or 'end unknown'])})")


def _marked(details: BattleDetails) -> tuple[Text, ...]:
    """Return both responses with the words marked that differ."""
    a, b = (_text(side) for side in (details.a, details.b))
    if details.a.response is None or details.b.response is None:
        return a, b
    return tuple(map(_underlined, word_difference(a.plain, b.plain, _MOST_WORDS)))


def _underlined(pieces: Iterable[Piece]) -> Text:
    """Return a text whose own words are marked, and not the blanks between them."""
    return Text.assemble(
        *(
            (part, _MARK if piece.is_own and not part.isspace() else "")
            for piece in pieces
            for part in _PART.findall(piece.text)
        )
    )


def _text(side: BattleSide) -> Text:
    if side.response is not None:
        return Text(escaped(side.response.text))
    if side.failure is not None:
        return Text(one_line(f"no response: {side.failure.reason}. {side.failure.detail}"), "dim")
    return Text("no response yet", "dim")


def _outcome(result: DimensionResult) -> str:
    settled = result.settlement
    if settled.winner is not None:
        return f"{one_line(settled.winner)} wins"
    return _OUTCOMES.get(settled.status) or f"no outcome: {settled.status}"


def _said(order: OrderResult) -> str:
    """Say the verdict in words, or why there is none."""
    if order.verdict == "TIE":
        return "calls it a tie"
    if order.preferred is not None:
        return f"prefers {one_line(order.preferred)}"
    detail = f" ({one_line(order.detail)})" if order.detail else ""
    return _WHY.get(order.status, f"no verdict: {order.status}") + detail
