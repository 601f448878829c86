"""Write anew what is made on the pages: `python -m tests.docs.renew [DEMO]`.

Without more, the pages that are generated from the program; `make docs` does so. With the folder of
a finished demo, also the sessions whose output has changed in more than numbers, and the picture.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.docs import own
from tests.docs.command_line import command_line_page
from tests.docs.configuration import configuration_page
from tests.docs.llms import llms_page
from tests.docs.pages import DOCS, PAGES, Step, blocks, masked, shown, steps
from tests.docs.sql import sql_page

PICTURE: Final = DOCS / "elo.svg"
COMMITTED: Final = {DOCS / "configuration.md": configuration_page}  # no command tells its keys
ON_THE_SITE: Final = {  # what `--help` and `tourney sql` say, too
    DOCS / "command-line.md": command_line_page,
    DOCS / "sql.md": sql_page,
    DOCS / "llms.txt": llms_page,
}


def main() -> None:
    """Write what the arguments ask for."""
    for page, written in (COMMITTED | ON_THE_SITE).items():
        page.write_text(written(), encoding="utf-8")
    for demo in map(Path, sys.argv[1:]):
        PICTURE.write_text(shown(demo, "tourney project elo --format svg"), encoding="utf-8")
        renew_sessions("demo", demo)
        with own.server() as fake, TemporaryDirectory() as folder:
            own.lay_out(Path(folder), fake.url)
            renew_sessions("own", Path(folder))
        with TemporaryDirectory() as folder:
            renew_sessions("judged", own.lay_out_judged(Path(folder) / "judged"))


def renew_sessions(mark: str, folder: Path) -> None:
    """Run the sessions of a mark in a folder, and write their output where it has changed."""
    sessions = (each for each in blocks(*PAGES) if (each.language, each.mark) == ("console", mark))
    for session in sessions:
        renewed = "".join(_renewed(step, folder) for step in steps(session.text))
        text = session.page.read_text(encoding="utf-8")
        session.page.write_text(text.replace(session.text, renewed), encoding="utf-8")


def _renewed(step: Step, folder: Path) -> str:
    now = "\n".join(line.rstrip() for line in shown(folder, step.command).splitlines())
    is_same = masked(now) == masked(step.output)
    return f"$ {step.line}\n{step.output}" if is_same else f"$ {step.line}\n{now}\n"


if __name__ == "__main__":
    main()
