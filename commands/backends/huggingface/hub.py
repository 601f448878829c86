"""Fetch weights by name from the Hugging Face Hub, or from its cache if it cannot be reached."""

import shlex
import sys
from pathlib import Path
from typing import Final, cast

from huggingface_hub import is_offline_mode, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils.tqdm import disable_progress_bars

from commands.backends.remote.bodies import first_line
from commands.entrants.weights import READ_SUFFIXES, HubSnapshot
from commands.errors import NotFetched

_FILES: Final = [f"*{suffix}" for suffix in sorted(READ_SUFFIXES)]  # no pickles
_IN_FOLDERS: Final = ["*/*"]  # other formats of the same weights, which nothing here reads
_LOG_IN: Final = "log in with `hf auth login`"
HTTP_ERROR: Final = cast("type[Exception]", HfHubHTTPError.__bases__[0])
"""What its HTTP client raises."""


def fetch_snapshot(name: str, revision: str | None) -> HubSnapshot:
    """Return a model's files at the commit that a revision names now.

    Only files that a local folder would be read for are fetched, so the digest is the same. If the
    Hub cannot be reached, its cache says which commit the revision named when it was last asked.

    Raises:
        NotFetched: The Hub has no such name or revision, denies access or breaks off; or it cannot
            be reached, and its cache lacks the files.
    """
    if not sys.stderr.isatty():
        disable_progress_bars()  # not all of them look for a terminal
    try:
        folder = snapshot_download(
            name, revision=revision, allow_patterns=_FILES, ignore_patterns=_IN_FOLDERS
        )
    except GatedRepoError as error:
        why = f"{name} on the Hub is gated, and you have no access"
        raise NotFetched(why, f"ask for access on its page there, and {_LOG_IN}") from error
    except RepositoryNotFoundError as error:
        why = f"the Hub has no {name}, or it is private"
        raise NotFetched(why, f"correct the path or the name, or {_LOG_IN}") from error
    except RevisionNotFoundError as error:
        why = f"{name} on the Hub has no revision {revision!r}"
        raise NotFetched(why, "name a branch, tag or commit of it") from error
    except HFValidationError as error:
        raise NotFetched(f"{name} can be no name on the Hub", "correct the path") from error
    except LocalEntryNotFoundError as error:
        if isinstance(error.__cause__, HfHubHTTPError):
            raise _broken_off(name, error.__cause__) from error
        raise _not_cached(name, revision) from error
    except (HTTP_ERROR, OSError) as error:
        raise _broken_off(name, error) from error
    return HubSnapshot(Path(folder), Path(folder).name)


def _broken_off(name: str, error: Exception) -> NotFetched:
    """Return the error for a Hub that answers, but not with the files."""
    why = f"{name} cannot be fetched from the Hub: {first_line(error)}"
    return NotFetched(why, "run the command again; what was fetched is kept")


def _not_cached(name: str, revision: str | None) -> NotFetched:
    """Return the error for a Hub that is not asked or does not answer, and an empty cache."""
    is_down = "HF_HUB_OFFLINE is set" if is_offline_mode() else "the Hub cannot be reached"
    at = f" at revision {revision!r}" if revision else ""
    option = f" --revision {shlex.quote(revision)}" if revision else ""
    remedy = f"correct the path, or connect to the Hub once, as by `hf download {name}{option}`"
    return NotFetched(f"{is_down} and its cache has no {name}{at}", remedy)
