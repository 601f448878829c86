"""What all evaluations have in common: items with a name, observed sample by sample."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commands.errors import LeftUnanswered
from commands.evaluating.samples import (
    Inference,
    Named,
    Sample,
    Seen,
    Unseen,
    intermediates,
    named_items,
    subset,
)
from commands.evaluating.user_code import blaming, text
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import EvaluationKind, Observation
from ledger.events.registration import Entrant
from ledger.identity import Json, digest_of


class HeldBack:
    """What was left unanswered, held back so that nothing behind it waits for another run."""

    def __init__(self) -> None:
        self._details: dict[str, list[str]] = {}

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold back what is left unanswered inside; all other errors end it at once."""
        try:
            yield
        except LeftUnanswered as error:
            self.add(error.details)

    def add(self, details: Mapping[str, Sequence[str]]) -> None:
        """Hold back what servers said, by whom they were asked for."""
        for whom, said in details.items():
            self._details.setdefault(whom, []).extend(said)

    def tell(self) -> None:
        """Raise what was held back, now that everything had its turn.

        Raises:
            LeftUnanswered: There is something.
        """
        if self._details:
            raise LeftUnanswered(self._details)


Scores = NDArray[np.float64]
Observed = Seen | Unseen


class Steps(NamedTuple):
    """How a data set is cut: rows of a batch on each device, and batches."""

    batch_size: int | None
    n_steps: int | None


class Evaluation(ABC):
    """Items, what is asked of an entrant on each, and how what it does is scored.

    A subclass of one of the four kinds says what the items are; registered by entry point or in
    tournament.toml, it runs by `tourney apply evaluate`, and called by itself, without a ledger.
    """

    kind: ClassVar[EvaluationKind]
    higher_is_better: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in tables, and its metrics begin with."""

    @abstractmethod
    def __len__(self) -> int:
        """Count the items."""

    def label(self, index: int) -> str:
        """Say which item this is, for people."""
        return f"{self.name}[{index}]"

    @abstractmethod
    def content(self, index: int) -> Json:
        """Return all that an item is; its name is the digest of this."""

    @abstractmethod
    def configured(self, inference: Inference, terms: EvaluationOptions) -> Entrant:
        """Return the entrant with the decoding that is asked for."""

    @abstractmethod
    def settings(self, inference: Inference, terms: EvaluationOptions) -> Mapping[str, Json]:
        """Return what else determines an observation, the entrant apart.

        Raises:
            ConfigurationError: The entrant cannot be evaluated so.
        """

    def n_samples(self, terms: EvaluationOptions) -> int:  # noqa: ARG002  # of rollouts it depends on them
        """Count the tries at each item."""
        return 1

    @abstractmethod
    def observe(
        self, inference: Inference, samples: Sequence[Sample], terms: EvaluationOptions
    ) -> Iterator[tuple[Observed, ...]]:
        """Yield what comes of each finished batch, in any order, each sample exactly once."""

    @abstractmethod
    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the score of all samples, or of each; None is unscorable, and counts for nothing.

        "mean" and "sum" are of those with a score, NaN where there are none; "none" gives all, (n,)
        in the order of the samples, NaN for the unscorable.
        """

    def rescored(self, observation: Observation) -> Observation:
        """Return an observation as it would be scored now: its facts are what they were."""
        return observation

    def samples(self, terms: EvaluationOptions) -> tuple[Sample, ...]:
        """Return what is to be observed: the tries at an item follow one another.

        Raises:
            EvaluationFault: Its code fails, or an item is not as its kind asks.
        """
        with blaming(self.name, "reading its items"):
            named = named_items(self.content(index) for index in range(len(self)))
            index_of = {each.item: index for index, each in enumerate(named)}
            return tuple(
                sample
                for item in subset([*index_of], terms.length, terms.seed)
                for sample in self._tries(named[index_of[item]], index_of[item], terms)
            )

    def _tries(self, named: Named, index: int, terms: EvaluationOptions) -> Iterator[Sample]:
        label = text(self.label(index), f"{type(self).__name__}.label({index}) gives")
        for number in range(self.n_samples(terms)):
            yield Sample(named.item, number, index, label, named.content)

    def observe_all(
        self, inference: Inference, samples: Sequence[Sample], terms: EvaluationOptions
    ) -> Iterator[tuple[Observed, ...]]:
        """Observe samples, handing over a chunk of them at a time.

        Raises:
            EvaluationFault: Its code fails, or an item is no longer what it was named by.
            LeftUnanswered: To some there came no answer, after all had their turn.
        """
        waiting, held = iter(samples), HeldBack()
        while chunk := tuple(islice(waiting, terms.chunk_size)):
            self._require_unchanged(chunk)
            with held.holding():
                yield from self.observe(inference, chunk, terms)
        held.tell()

    def _require_unchanged(self, samples: Sequence[Sample]) -> None:
        """Refuse what would be recorded under the name of an item that nobody was asked."""
        for sample in {each.index: each for each in samples}.values():
            with blaming(self.name, f"getting {sample.label}"):
                if digest_of(self.content(sample.index)) != sample.content:
                    raise ValueError(
                        f"{type(self).__name__}.get({sample.index}) gives something else than"
                        " before; whatever it draws, draw it once, in the constructor"
                    )

    def __call__(
        self,
        inference: Inference,
        reduce: Reduce = "mean",
        *,
        return_intermediates: bool = False,
        **chosen: Any,  # noqa: ANN401  # the fields of EvaluationOptions, checked there
    ) -> Any:  # noqa: ANN401  # of three types, as the arguments ask
        """Run on all items, or on a subset; nothing is recorded.

        Args:
            inference: Who is evaluated.
            reduce: What to return: see `reduce`.
            return_intermediates: Return each sample's tokens too, in the order of the samples.
            chosen: Fields of `EvaluationOptions`.

        Returns:
            The score, or the scores (n,); with intermediates, a pair of that and a list of
            `Intermediates`.

        Raises:
            ConfigurationError: The entrant cannot be evaluated so.
        """
        terms = EvaluationOptions(**chosen)
        samples = self.samples(terms)
        batches = self.observe_all(inference, samples, terms)
        seen = {each.sample: each for batch in batches for each in batch if isinstance(each, Seen)}
        score = self.reduce([_observation(seen.get(sample)) for sample in samples], reduce)
        if not return_intermediates:
            return score
        rows = [seen[sample].rows if sample in seen else () for sample in samples]
        return score, intermediates(rows)

    @staticmethod
    def find_accumulation_steps(dataset_size: int, max_batch_size: int, dp_replicate: int) -> Steps:
        """Return the largest batch that cuts a data set without a remainder.

        Args:
            dataset_size: Rows in all.
            max_batch_size: Rows that a device holds, at most.
            dp_replicate: Devices that each take a batch.

        Returns:
            Rows of a batch and batches: their product times the devices is dataset_size; None and
            None where there is no such batch.
        """
        for batch_size in range(max_batch_size, 0, -1):
            if dataset_size % (batch_size * dp_replicate) == 0:
                return Steps(batch_size, dataset_size // (batch_size * dp_replicate))
        return Steps(None, None)


def _observation(seen: Seen | None) -> Observation | None:
    return None if seen is None else seen.observation


def reduced(scores: Sequence[float], reduce: Reduce) -> float | Scores:
    """Return the mean or the sum of the scores that are numbers, or all of them, (n,)."""
    every = np.asarray(scores, dtype=np.float64)
    known = every[~np.isnan(every)]
    if reduce == "none":
        return every
    if not len(known):
        return float("nan")
    return float(known.mean() if reduce == "mean" else known.sum())
