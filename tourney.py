"""Read a tournament's ledger from a notebook or a script, and write evaluations.

    import tourney

    demo = tourney.read("tourney-demo/tournament.db")
    demo.elo(k=32).to_frame()

The numbers are those of `tourney project ... --json`. Nothing is written and no file stays open.
An evaluation is a subclass of RolloutEvaluation, EncodingEvaluation, PerplexityEvaluation or
PerplexityComparisonEvaluation; an Evaluator runs it in a training loop or on a checkpoint.
What is needed is imported when it is used, so that `import tourney` takes no time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commands.settings.version import VERSION
from ledger.errors import TourneyError
from projections.results.evaluations import CurveRow, MetricRow, SampleRow
from projections.results.judges import BiasRow
from projections.results.money import EntrantSpendRow, SpendRow
from projections.results.outcomes import OutcomeRow, ResponseRow
from projections.results.ratings import BradleyTerryRow, EloRow, FragilityRow, WinRateRow

if TYPE_CHECKING:
    from commands.backends.jobs.evaluator import Evaluator
    from commands.backends.jobs.job import ExecutionSpec
    from commands.evaluating.likelihoods import (
        EncodingEvaluation,
        PerplexityComparisonEvaluation,
        PerplexityEvaluation,
    )
    from commands.evaluating.rollout import RolloutEvaluation
    from commands.evaluating.samples import Inference
    from commands.reading.library import Rows, SetView, TournamentView
    from ledger.store import Ledger
    from projections.battles.imported_sets import Where

__all__ = [
    "BiasRow",
    "BradleyTerryRow",
    "CurveRow",
    "EloRow",
    "EncodingEvaluation",
    "EntrantSpendRow",
    "Evaluator",
    "ExecutionSpec",
    "FragilityRow",
    "Inference",
    "MetricRow",
    "OutcomeRow",
    "PerplexityComparisonEvaluation",
    "PerplexityEvaluation",
    "ResponseRow",
    "RolloutEvaluation",
    "Rows",
    "SampleRow",
    "SetView",
    "SpendRow",
    "TournamentView",
    "TourneyError",
    "WinRateRow",
    "__version__",
    "read",
    "read_set",
]
__version__ = VERSION
_DOOR: Final[Mapping[str, str]] = {
    "RolloutEvaluation": "commands.evaluating.rollout",
    "EncodingEvaluation": "commands.evaluating.likelihoods",
    "PerplexityEvaluation": "commands.evaluating.likelihoods",
    "PerplexityComparisonEvaluation": "commands.evaluating.likelihoods",
    "Inference": "commands.evaluating.samples",
    "Evaluator": "commands.backends.jobs.evaluator",
    "ExecutionSpec": "commands.backends.jobs.job",
    "Rows": "commands.reading.library",
    "SetView": "commands.reading.library",
    "TournamentView": "commands.reading.library",
}


def __getattr__(name: str) -> object:
    """Import a class when it is first used; `Evaluator` needs the extra "models"."""
    if name not in _DOOR:
        raise AttributeError(f"module 'tourney' has no attribute {name!r}")
    try:
        return getattr(import_module(_DOOR[name]), name)
    except ModuleNotFoundError as error:
        from commands.errors import MissingExtra

        raise MissingExtra(error.name or name, "models") from error


def read(
    ledger: str | PathLike[str] = "tournament.db",
    *,
    tournament: str | None = None,
    as_of: int | str | datetime | None = None,
    judge: str | None = None,
    dimension: str | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    policy: str | None = None,
    parser: str | None = None,
) -> "TournamentView":
    """Return a tournament as recorded now, or as of an earlier position.

    Args:
        ledger: The ledger's file.
        tournament: Its name, if the ledger holds several.
        as_of: The last position to read, or a time: a datetime, or text in ISO 8601.
        judge: Whose verdicts count; None: the first judge that has any.
        dimension: Only this dimension.
        where: Only prompts with this value, or one of these, by column, such as
            {"category": "math"}. Money and evaluations are of all.
        policy: How verdicts become outcomes; None: the recorded policy.
        parser: Parse the stored replies again with this parser.

    Raises:
        TourneyError: The ledger cannot be read, or does not contain a name.
    """
    from commands.reading.judged_tournament import Perspective
    from commands.reading.library import TournamentView
    from commands.reading.resolve import rule_of, stream_named
    from ledger.store import Ledger
    from projections.verdicts.policies import DEFAULT_POLICY

    path, rule = Path(ledger), rule_of(policy or DEFAULT_POLICY, parser, str)
    with Ledger.read_only(path) as opened:
        stream = stream_named(opened, tournament, str)
        until = _last_position(opened, as_of)
    return TournamentView(path, stream, until, Perspective(judge, dimension, rule, _kept(where)))


def read_set(
    ledger: str | PathLike[str] = "tournament.db",
    *,
    name: str,
    where: Mapping[str, str | Sequence[str]] | None = None,
    as_of: int | str | datetime | None = None,
) -> "SetView":
    """Return an imported set of battles as recorded now, or as of an earlier position.

    Args:
        ledger: The ledger's file; it needs no tournament.
        name: The set's name, as `tourney import battles --name` gave it.
        where: Only battles with this value, or one of these, by column, such as
            {"category": "math"}.
        as_of: The last position to read, or a time: a datetime, or text in ISO 8601.

    Raises:
        TourneyError: The ledger cannot be read, or does not contain the set.
    """
    from commands.importing.imported_set import imported_set
    from commands.reading.library import SetView
    from ledger.store import Ledger

    with Ledger.read_only(Path(ledger)) as opened:
        last = _last_position(opened, as_of)
        return SetView(imported_set(opened, name, last, _kept(where), str))


def _kept(where: Mapping[str, str | Sequence[str]] | None) -> "Where":
    """Return by column the values that are kept."""
    return {
        column: [values] if isinstance(values, str) else values
        for column, values in (where or {}).items()
    }


def _last_position(opened: "Ledger", as_of: int | str | datetime | None) -> int:
    """Return the last position to read."""
    from commands.reading.resolve import position_at

    if as_of is None:
        return opened.head.position
    moment = as_of.isoformat() if isinstance(as_of, datetime) else str(as_of)
    return position_at(opened, moment, option="as_of")


if __name__ == "__main__":  # python -m tourney
    from commands.cli.app import main

    main()
