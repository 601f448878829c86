"""Full PoE, whose drafts are judged at once, against the same product of experts without drafts.

All heads read a token in one pass, so a draft costs its head's share of the pass and what is
measured of it, and saves nothing: it is there for what it tells of the jury.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from statistics import fmean
from typing import Final

from commands.backends.hydra.net import HydraNet
from commands.errors import counted
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import Work, per_second, rate
from tests.benchmarks.heads.references import decode_jointly
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, compared
from tests.support.weights.hydra import decode

N_TOKENS: Final = {1: 32, 8: 16}  # of an answer, by how many prompts there are


def measure(bench: Bench, nets: Mapping[float, HydraNet]) -> Iterator[Row]:
    """Compare tokens per second, for Hydras by how strong their heads' LoRA is."""
    for n_prompts, n_tokens in N_TOKENS.items():
        yield from _compared(bench, nets, Work(n_prompts, bench.scaled(n_tokens, at_least=4)))


def _compared(bench: Bench, nets: Mapping[float, HydraNet], work: Work) -> Iterator[Row]:
    names = {strength: f"{strength:.0%}" for strength in nets}
    any_net = next(iter(nets.values()))  # without drafts, all take equally long
    rounds = interleaved(
        bench.n_rounds,
        {
            "jointly": partial(rate, any_net, work, decode_jointly),
            **{names[strength]: partial(rate, net, work) for strength, net in nets.items()},
        },
    )
    jointly = per_second(rounds.median("jointly"))
    for strength, net in nets.items():
        name = names[strength]
        yield compared(
            f"full PoE of {counted(work.n_prompts, 'prompt')}, LoRA of {name} of the weights",
            f"{per_second(rounds.median(name))}, {acceptance(net, work):.0%} of drafts accepted",
            f"without drafts: {jointly}",
            rounds.ratio(name, "jointly"),
        )


def acceptance(net: HydraNet, work: Work) -> float:
    """Return how many drafts are accepted, as a share of those that came to be judged.

    For each that is judged a token is emitted: the draft itself, or what replaces it.
    """
    rows = work.rows(net)
    decode(net, rows, work.decoding)
    is_accepted = [each.is_accepted for row in rows for each in row.decisions]
    return fmean(is_accepted)
