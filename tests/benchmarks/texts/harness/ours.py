"""The reader at work on the same items."""

import time
from collections.abc import Mapping, Sequence
from math import log
from typing import Final

from commands.backends.huggingface.reader import HfLikelihoodModel
from commands.backends.huggingface.worker import LastLoaded
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure
from ledger.identity import digest_of
from projections.evaluations.scores import credit
from tests.benchmarks.texts.harness.items import N_CHOICES, WEIGHTS, Items
from tests.support.builders.events import entrant

BATCH_TOKENS: Final = 8192  # as tourney has it, unless told otherwise


class Ours:
    """A reader of the quickstart's weights, which loads them once."""

    def __init__(self, items: Items) -> None:
        """Read these items."""
        who = entrant(
            "base",
            loader="hf",
            weights=str(WEIGHTS),
            weights_digest=digest_of(str(WEIGHTS)),
            dtype="float32",
        )
        self._items = items
        self._reader = HfLikelihoodModel(BATCH_TOKENS, device="cpu", load=LastLoaded())
        self._passages: Mapping[str, Sequence[Continuation]] = {
            "questions": [
                Continuation(f"{n} {place}", who, question.context, f" {choice}")
                for n, question in enumerate(items.questions)
                for place, choice in enumerate(question.choices)
            ],
            "documents": [
                Continuation(str(n), who, "", text, rolls=True)
                for n, text in enumerate(items.documents)
            ],
        }

    def weigh(self, kind: str) -> list[float]:
        """Return the log-likelihoods, in the order of the items."""
        passages = self._passages[kind]
        found = {
            each.key: each for batch in self._reader.log_likelihoods(passages) for each in batch
        }
        return [_log_likelihood(found[passage.key]) for passage in passages]

    def seconds(self, kind: str) -> float:
        """Return how long that takes."""
        began = time.perf_counter()
        self.weigh(kind)
        return time.perf_counter() - began

    def acc(self, log_likelihoods: Sequence[float]) -> float:
        """Return the share of questions whose gold answer is the likeliest."""
        earned = [
            credit(log_likelihoods[n * N_CHOICES : (n + 1) * N_CHOICES], question.gold)
            for n, question in enumerate(self._items.questions)
        ]
        return sum(earned) / len(earned)

    def bits_per_byte(self, log_likelihoods: Sequence[float]) -> float:
        """Return the bits that a byte of the documents takes."""
        n_bytes = sum(len(text.encode()) for text in self._items.documents)
        return -sum(log_likelihoods) / (n_bytes * log(2))


def _log_likelihood(read: ContinuationLikelihood | LikelihoodFailure) -> float:
    """Require that a passage was read whole: contexts that are too long are cut unlike theirs."""
    assert isinstance(read, ContinuationLikelihood)
    assert not read.is_truncated
    return read.log_likelihood
