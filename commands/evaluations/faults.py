"""Faults in the code of evaluations: told as theirs, with the item and the line."""

from collections.abc import Iterator
from contextlib import contextmanager

from commands.errors import EvaluationFault
from ledger.errors import TourneyError


@contextmanager
def blaming(evaluation: str, doing: str) -> Iterator[None]:
    """Say of what an evaluation's own code raises that it is this evaluation's.

    Args:
        evaluation: Its name.
        doing: What it was asked for, as "getting item 3".

    Raises:
        EvaluationFault: Its code raised anything that is no error of tourney's, or called sys.exit.
    """
    try:
        yield
    except TourneyError:
        raise
    except SystemExit as ending:  # with code 0 the command would end as if all were done
        error = RuntimeError(f"it calls sys.exit({ending.code!r})")
        fault = error.with_traceback(ending.__traceback__)
        raise EvaluationFault(evaluation, doing, fault) from ending
    except Exception as error:
        raise EvaluationFault(evaluation, doing, error) from error
