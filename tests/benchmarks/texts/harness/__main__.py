"""Compare what texts weigh with EleutherAI's lm-evaluation-harness, and how fast they are weighed.

`python -m tests.benchmarks.texts.harness PYTHON`, where PYTHON is of an environment with lm-eval,
which is none of the project's.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.benchmarks.bench import say
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_least, at_most, compared, machine, section, stated
from tests.benchmarks.texts.harness.items import ROOT, Items, made_items
from tests.benchmarks.texts.harness.ours import Ours
from tests.benchmarks.texts.harness.worker import Worker, at_work

N_QUESTIONS: Final = 32
BATCH_SIZES: Final = (1, 8, 32)  # of theirs: the quickest counts
_TABLE: Final = ROOT / "data" / "benchmarks-harness.md"
_INTRODUCTION: Final = """\
# Texts weighed, against lm-evaluation-harness

Made by `python -m tests.benchmarks.texts.harness PYTHON`, once; PYTHON is that of an environment
with lm-eval. Both read the quickstart's weights in float32 on one thread, each as it cuts texts
into tokens: 4 choices behind each question of the bank, and documents from one letter to several
windows. What is compared was measured in turn; medians over the rounds.
"""


def main() -> None:
    """Run the comparison and write its table."""
    parser = ArgumentParser(prog="python -m tests.benchmarks.texts.harness")
    parser.add_argument("python", help="of an environment with lm-eval")
    parser.add_argument("--rounds", type=int, default=3, help="of what is compared, in turn")
    options = parser.parse_args()
    facts = machine(ROOT)
    items = made_items(N_QUESTIONS)
    ours = Ours(items)
    with TemporaryDirectory() as folder, at_work(options.python, items, Path(folder)) as theirs:
        told = theirs.facts()
        kinds = ("questions", "documents")
        speeds = [_speed(kind, items, ours, theirs, options.rounds) for kind in kinds]
        rows = [*_agreement(ours, told), *speeds]
    for row in rows:
        say(" | ".join(row))
    versions = {**facts, "rounds": str(options.rounds), **told["versions"]}
    _TABLE.write_text(_INTRODUCTION + section(versions, rows), encoding="utf-8")


def _agreement(ours: Ours, told: Mapping[str, Any]) -> Iterator[Row]:
    questions, documents = ours.weigh("questions"), ours.weigh("documents")
    for kind, of_kind in (("questions", questions), ("documents", documents)):
        largest = max(abs(a - b) for a, b in zip(of_kind, told[kind], strict=True))
        name = f"{len(of_kind)} texts of {kind}: largest difference in nats"
        yield stated(name, f"{largest:.1e}", largest, at_most(1e-3))
    for name, mine, theirs in (
        ("acc", ours.acc(questions), told["acc"]),
        ("bits_per_byte", ours.bits_per_byte(documents), told["bits_per_byte"]),
    ):
        difference = abs(mine - theirs)
        yield stated(
            f"{name}: tourney {mine:.7g}, lm-eval {theirs:.7g}: difference",
            f"{difference:.1e}",
            difference,
            at_most(1e-6),
        )


def _speed(kind: str, items: Items, ours: Ours, theirs: Worker, n_rounds: int) -> Row:
    n_items = len(items.questions if kind == "questions" else items.documents)
    contenders = {f"batches of {n}": partial(theirs.seconds, kind, n) for n in BATCH_SIZES}
    rounds = interleaved(n_rounds, {"ours": partial(ours.seconds, kind), **contenders})
    quickest = min(contenders, key=rounds.median)
    return compared(
        f"{n_items} {kind}",
        f"{n_items / rounds.median('ours'):,.1f}/s",
        f"lm-eval in {quickest}: {n_items / rounds.median(quickest):,.1f}/s",
        rounds.ratio(quickest, "ours"),  # of seconds: the more of theirs, the quicker ours
        at_least(1.0),
    )


if __name__ == "__main__":
    main()
