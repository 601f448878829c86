"""The main screens as a terminal of 60, 80 and 120 columns shows them.

`python -m tests.support.goldens.widths` writes them into tests/golden/widths, after a change that
is meant to be seen; the difference is then reviewed like code.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec.structs import replace
from rich.console import Console

from commands.cli.audit import log_table
from commands.cli.project.battle import battle_screen
from commands.cli.project.elo import elo_table
from commands.cli.project.outcomes import winrates_table
from commands.cli.project.status import status_table
from commands.cli.tables.bradley_terry import RatedBoards
from commands.cli.tables.plan import missing_verdicts_table
from commands.cli.tables.render import Format, print_lines, print_table
from commands.cli.tables.table import Table
from commands.decisions.recorder import count_missing_verdicts
from ledger.events.judging import VerdictReceived
from ledger.events.ratings import BradleyTerryParameters, EloParameters
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.store import Ledger
from projections.battles.columns import battles_of
from projections.battles.details import battle_details
from projections.ratings.standings import standings, win_rates
from projections.ratings.tournament import by_dimension as by_strength
from projections.tournament.remaining import open_queries
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament
from tests.support.builders.events import NOON, STREAM, entrant, known, opened, prompt, rubric
from tests.support.builders.worlds import Fate, everything, history, planned_pairings
from tests.support.goldens.screens import printed

FOLDER: Final = Path(__file__).parents[2] / "golden" / "widths"
WIDTHS: Final = (60, 80, 120)
ELO: Final = EloParameters(permutations=5, k_sweep=(1.0, 4.0, 8.0, 32.0), bootstraps=20)
ROSTER: Final = ("base_olmo", "security_only", "security_plus_robustness", "full_poe")
RESPONSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "base_olmo": "It is caused by a deficiency of vitamin A, and is treated by rest alone.",
        "security_plus_robustness": "It is caused by a deficiency of vitamin C, and is treated by"
        " replacing it.\n\nUntreated, it is fatal.",
    }
)
REPLY: Final = "Response {0} names the right vitamin and the right treatment.\nVERDICT: {0}"
Draw: TypeAlias = Callable[[Console], None]


def widths() -> dict[str, str]:
    """Return every screen at every width, by the name of its file."""
    return {
        f"{name}.{width}.txt": on_terminal(draw, width)
        for name, draw in drawings().items()
        for width in WIDTHS
    }


def on_terminal(draw: Draw, width: int) -> str:
    """Return what is drawn on a terminal so wide that has neither colours nor bold letters."""
    return printed(draw, width=width, force_terminal=True, color_system=None)


def in_pipe(draw: Draw) -> str:
    """Return what is drawn where nothing is too long."""
    return printed(draw, width=10_000)


@cache
def drawings() -> Mapping[str, Draw]:
    """Return what draws each screen, all of one tournament of two dimensions."""
    with Ledger.in_memory(now=lambda: NOON) as ledger:
        ledger.append(STREAM, events())
        tables = {
            **_readings(known(*events())),
            "status": status_table(ledger, NOON),
            "log": log_table([*ledger.rows()][-6:]),
        }
    return {
        **{name: partial(print_table, table, Format.TABLE) for name, table in tables.items()},
        "battle": partial(_print_battle, known(*events())),
    }


@cache
def events() -> tuple[Event, ...]:
    """Return a tournament in which nearly everything was judged, with texts worth reading."""
    fates: tuple[Fate, ...] = ("b", "a", "tie", "b", "inconsistent", "b", "a", "refused", "b")
    opening = opened(
        prompts=[prompt(f"vignette_{n:03}") for n in range(1, 13)],
        rubrics=[rubric("factuality"), rubric("clinical_utility")],
        entrants=[entrant(name) for name in ROSTER],
    )
    n_judged = 12 * 2 * 6 - 4
    return tuple(map(_spoken, history(opening, *islice(cycle(fates), n_judged))))


def _spoken(event: Event) -> Event:
    match event:
        case VerdictReceived(verdict=verdict):
            return replace(event, reply=REPLY.format(verdict))
        case _:
            return event


def _readings(state: Tournament) -> dict[str, Table]:
    prompts, judge = everything(state), state.panel[0]
    settled = settle(state, prompts, judge)
    groups = by_dimension(state, settled)
    roster = [each.entrant_id for each in state.roster]
    columns = {name: battles_of(group) for name, group in groups.items()}
    rated = [standings(name, battles_of(group), roster, ELO) for name, group in groups.items()]
    strengths = by_strength(columns, BradleyTerryParameters(), roster)
    one = rated[:1]
    queries = open_queries(state, prompts, judge, retries=1)
    return {
        "elo": elo_table(rated, ELO, judge),
        "elo_on_one_dimension": elo_table(one, replace(ELO, k_sweep=()), judge),
        "bt": RatedBoards(strengths, BradleyTerryParameters()).table(),
        "winrates": winrates_table(win_rates(columns)),
        "plan_judge": missing_verdicts_table(
            count_missing_verdicts(state, prompts, judge, queries)
        ),
    }


def _print_battle(state: Tournament, console: Console) -> None:
    wanted = frozenset(RESPONSES)
    chosen = [each for each in planned_pairings(state) if each.entrants == wanted][:2]
    details = battle_details(state, chosen, state.panel[0])
    sides = [
        side._replace(response=_saying(side.response, RESPONSES[side.entrant_id]))
        for side in (details.a, details.b)
    ]
    details = details._replace(a=sides[0], b=sides[1])
    width = console.width if console.is_terminal else None
    print_lines(battle_screen(details, console, width), console)


def _saying(response: ResponseGenerated | None, text: str) -> ResponseGenerated | None:
    return response and replace(response, text=text)


if __name__ == "__main__":
    for file_name, text in widths().items():
        (FOLDER / file_name).write_text(text, encoding="utf-8", newline="")
