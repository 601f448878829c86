"""Keep transformers' progress bars and advice off the terminal while it works for us."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as chatter


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Show errors of transformers only, and no bars; afterwards all is as it was."""
    verbosity, had_bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.ERROR)
    chatter.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it so
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        if had_bars:
            chatter.enable_progress_bar()  # type: ignore[no-untyped-call]  # likewise
