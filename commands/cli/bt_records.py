"""Bradley-Terry ratings in JudgeArena's shape, by the settings on record."""

from collections.abc import Iterable

from commands.cli.asked import Asked, Reading, require_no_tournament
from commands.cli.bt_imported import imported_set
from commands.cli.bt_options import bt_parameters, recorded_settings
from commands.cli.streams import say
from commands.tables.bt_notes import order_notes
from ledger.events.ratings import BradleyTerryParameters
from projections.artifacts.judgearena import Fields, rating_records
from projections.ratings.bradley_terry.anchors import rate_among
from projections.ratings.bradley_terry.leaderboard import Leaderboard, board_of
from projections.ratings.tournament import by_dimension


def ratings_of_tournament(source: Reading) -> Fields:
    """Rate a tournament's entrants as its settings say, and say which cannot be compared.

    Raises:
        CannotRate: There is no such rating.
    """
    parameters = bt_parameters(recorded_settings(source.state), {}, None)
    roster = [entrant.entrant_id for entrant in source.state.roster]
    boards = by_dimension(source.settlements, parameters, roster)
    _say_order(boards)
    return rating_records(
        boards, parameters, arena=source.state.stream, judge_model=source.judge_model
    )


def ratings_of_imported(asked: Asked, name: str) -> Fields:
    """Rate the entrants of imported battles, as nobody set anything; say the same.

    Raises:
        ConfigurationError: No such battles were imported, or an option is of a tournament's.
        CannotRate: There is no such rating.
    """
    require_no_tournament(asked)
    imported, parameters = imported_set(asked, name), BradleyTerryParameters()
    among = rate_among(imported.battles, parameters, soft=True)
    judges, boards = [*imported.judges], [board_of(name, among.ratings)]
    _say_order(boards)
    return rating_records(
        boards,
        parameters,
        arena=name,
        judge_model=judges[0] if len(judges) == 1 else None,
        sources={entrant: among.source(entrant) for entrant in among.ratings.entrants},
    )


def _say_order(boards: Iterable[Leaderboard]) -> None:
    for board in boards:
        for note in order_notes(board):
            say(note)
