"""The base class of evaluations: items identified by content, observed sample by sample."""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from msgspec.structs import replace

from commands.entrants.chats import (
    BETWEEN,
    Chat,
    ChatForm,
    after_system,
    messages_of,
    user_turn,
)
from commands.errors import ConfigurationError, DeferredFailures, counted
from commands.evaluating.samples import (
    Inference,
    ObservedSample,
    Sample,
    UnscorableSample,
    intermediates,
    named_items,
    subset,
)
from commands.evaluating.user_code import (
    Scores,
    blame_evaluation,
    reduce_scores,
    require_boolean,
    require_reduce,
    require_text,
)
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.conversations import Messages
from ledger.events.evaluations import (
    EvaluationItem,
    EvaluationKind,
    ItemRegistered,
    Observation,
    SampleObserved,
    SampleScore,
    TaskReference,
    TaskResults,
    UnscorableReason,
    WayOfAsking,
)
from ledger.events.registration import Entrant
from ledger.identity import Digest, Json

SampleResult = ObservedSample | UnscorableSample

Observed: TypeAlias = Mapping[Sample, Observation]
"""A plan's samples that have an observation."""


class Completion(NamedTuple):
    """What is recorded of a plan when all of its samples are there."""

    scores: Sequence[SampleScore] = ()
    results: TaskResults | None = None


class Evaluation(ABC):
    """A set of items, what an entrant does with each, and how that is scored.

    Subclass one of the four kinds to define the items. An evaluation registered by entry point or
    in tournament.toml runs with `tourney apply evaluate`; calling it runs it without a ledger.
    """

    kind: ClassVar[EvaluationKind]
    higher_is_better: ClassVar[bool] = True
    chunk_size: int = 200  # samples at a time: what a killed command on several GPUs may lose
    bos: bool = True  # begin texts with the BOS token; False: if the tokenizer does so by itself
    task: TaskReference | None = None  # of lm-evaluation-harness
    between: str = BETWEEN  # a system prompt and what the system's turn of a chat says itself
    _id: str | None = None  # of the table that it is made from
    _chat_form: ChatForm | None = None  # None: as the class has it

    @property
    def name(self) -> str:
        """The name where no table gives one: the class's, as `word_order` of WordOrder."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def id(self) -> str:
        """The name in tables, and the prefix of its metrics: the table's, or its own."""
        return self._id or require_text(self.name, f"{type(self).__name__}.name is")

    def called(self, table: str) -> Self:
        """Name the evaluation as its table does, and return it."""
        self._id = table
        return self

    def asked_as(self, options: EvaluationOptions) -> Self:
        """Return the evaluation with its questions asked as the options say.

        Raises:
            ConfigurationError: It has no questions, or a system prompt but no chat.
        """
        fault, is_plain = None, options.chat in {None, "none"}
        if options.system and is_plain:
            fault = 'system is set, but plain text has no place for it; set chat = "turns"'
        elif not is_plain and self.kind not in {"rollout", "comparison"}:
            fault = f"kind {self.kind!r} reads texts and asks no questions; leave out chat"
        if fault:
            raise ConfigurationError([f"evaluation {self.id!r}: {fault}"])
        if options.chat == self._chat_form:
            return self
        asked = copy(self)
        asked._chat_form = options.chat  # noqa: SLF001  # its own
        return asked

    def decided(self, options: EvaluationOptions) -> EvaluationOptions:
        """Return the options, with those that the evaluation itself decides."""
        return options

    def chat_turns(self, index: int) -> Chat:
        """Return an item's examples and question as turns of a chat: its first part as a turn."""
        return user_turn(self.get(index)[0])

    @property
    def has_chat(self) -> bool:
        """Whether its table says that a chat template shows the questions."""
        return self._chat_form not in {None, "none"}

    def chat_form(self, inference: Inference) -> ChatForm:  # noqa: ARG002  # rollouts use it
        """Return how a chat template shows the questions; none: as plain text."""
        return self._chat_form or "none"

    def asking(self, inference: Inference, configured: Entrant) -> WayOfAsking:
        """Return how the entrant, with the decoding that the evaluation sets, is asked."""
        form = self.chat_form(inference)
        return WayOfAsking(
            chat=form,
            system=None if form == "none" else configured.chosen.system,
            temperature=configured.temperature,
            max_new_tokens=configured.max_new_tokens if self.kind == "rollout" else None,
        )

    def chat_messages(self, index: int, system: str | None = None) -> Messages:
        """Return what a chat template is to show for an item; nothing if it is plain text.

        A system prompt goes before it, which is no part of the item.
        """
        if not self.has_chat:
            return ()
        messages = messages_of(self.chat_turns(index), self._chat_form or "none")
        return after_system(system, messages, self.between)

    def prefix(self) -> str:
        """Return how the names of its metrics begin."""
        return f"{self.id}_"

    @abstractmethod
    def __len__(self) -> int:
        """Count the items."""

    @property
    def n_available(self) -> int:
        """Count the items, those that are left out because few are asked for included."""
        return len(self)

    def label(self, index: int) -> str:
        """Return a name of the item for people."""
        return f"{self.id}[{index}]"

    @abstractmethod
    def get(self, index: int) -> Any:  # noqa: ANN401  # of each kind its own
        """Return an item's parts."""

    @abstractmethod
    def item(self, index: int) -> EvaluationItem:
        """Return what `get` gives, checked; its digest identifies the item.

        Raises:
            TypeError or ValueError: `get` returns something else.
        """

    @property
    def scorer(self) -> Digest | None:
        """Digest of the code that scores what is recorded; None: metrics alone do."""
        return None

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:  # noqa: ARG002  # rollouts use them
        """Return the entrant with the decoding that the evaluation sets, by default none."""
        return replace(inference.entrant, temperature=None, max_new_tokens=1)

    @abstractmethod
    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the settings, other than the entrant's, that determine an observation.

        Raises:
            ConfigurationError: The entrant does not support this evaluation.
        """

    def beginning(self) -> Mapping[str, Json]:
        """Return how texts begin, if not as by default; TypeError if `bos` is no truth value."""
        begins = require_boolean(self.bos, f"{type(self).__name__}.bos is")
        between = self.between if self.has_chat else BETWEEN
        return {
            **({} if begins else {"bos": False}),
            **({} if between == BETWEEN else {"between": between}),
        }

    def n_samples(self, options: EvaluationOptions) -> int:  # noqa: ARG002  # rollouts use them
        """Return the number of samples per item."""
        return 1

    @abstractmethod
    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Yield the results of each finished batch, in any order, each sample exactly once."""

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the score of all samples together, or of each; None stands for an unscorable one.

        "mean" and "sum" are over the samples with a score, NaN if there are none; "none" returns
        all scores, (n,) in the order of the samples, NaN for the unscorable. By default no sample
        has a score of its own.
        """
        return reduce_scores([float("nan")] * len(observations), reduce)

    def rescore(self, observation: Observation) -> Observation:
        """Return an observation scored by the present code; what was observed stays the same."""
        return observation

    def score_together(self, observations: Sequence[Observation]) -> Sequence[Observation]:
        """Return all observations of a run, with the scores that need all of them."""
        return observations

    def subject_evaluations(self, table: str) -> Mapping[str, Self]:  # noqa: ARG002  # some use it
        """Return the subjects of what a table uses as evaluations of their own, by name."""
        return {}

    @property
    def member_evaluations(self) -> Sequence["Evaluation"]:
        """Those whose observations `completion` needs; none: it scores its own, one by one."""
        return ()

    def completion(self, observed: Mapping["Evaluation", Observed]) -> Completion:  # noqa: ARG002  # those with members
        """Return the scores and results that all observations of its members have together."""
        return Completion()

    def samples(self, options: EvaluationOptions) -> tuple[Sample, ...]:
        """Return the samples to observe, those of one item next to one another.

        Raises:
            ConfigurationError: It has no items, or its class lacks what scores them.
            EvaluationFault: The evaluation's code fails, or an item does not fit its kind.
        """
        with blame_evaluation(self.id, "reading its items"):
            named = named_items(self._read_item(index).content for index in range(len(self)))
            place_of = {item: (index, copy) for index, (item, copy) in enumerate(named)}
            samples = tuple(
                Sample(item, number, index, label, copy)
                for item in self.drawn([*place_of], options)
                for index, copy in (place_of[item],)
                for label in (self._checked_label(index),)
                for number in range(self.n_samples(options))
            )
        if not samples:
            raise ConfigurationError([f"evaluation {self.id!r} has no items"])
        return samples

    def _read_item(self, index: int) -> EvaluationItem:
        with blame_evaluation(self.id, f"reading item {index}"):
            return self.item(index)

    def _checked_label(self, index: int) -> str:
        with blame_evaluation(self.id, f"naming item {index}"):
            return require_text(self.label(index), f"{type(self).__name__}.label({index}) gives")

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:
        """Return the items to observe, in their order."""
        return subset(items, options.length, options.seed)

    def observe_all(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Observe samples in chunks; yield each batch of results.

        Raises:
            EvaluationFault: The evaluation's code fails, or an item changed since it was planned.
            LeftUnanswered: Some requests got no answer; raised after all had their turn.
        """
        waiting, held = iter(samples), DeferredFailures()
        while chunk := tuple(islice(waiting, self.chunk_size)):
            for sample in {each.index: each for each in chunk}.values():
                self.registered(sample)  # which must not have changed
            with held.collecting():
                yield from self.observe(inference, chunk, options)
        held.raise_collected()

    def registered(self, sample: Sample) -> ItemRegistered:
        """Return the item of a sample as it is recorded.

        Raises:
            EvaluationFault: The evaluation's code fails, or gives another item than before.
        """
        with blame_evaluation(self.id, f"getting {sample.label}"):
            asked = self.item(sample.index)
            event = ItemRegistered(item=sample.item, copy=sample.copy, asked=asked)
            if not event.is_sound:
                raise ValueError(
                    f"{type(self).__name__}.get({sample.index}) gives another item than"
                    " before; draw random items once, in the constructor"
                )
            return event

    def __call__(  # the first four are the seed's
        self,
        inference: Inference,
        encoding: object = None,
        reduce: Reduce = "mean",
        return_intermediates: bool = False,  # as above
        **chosen: Any,  # noqa: ANN401  # the fields of EvaluationOptions, checked there
    ) -> Any:  # noqa: ANN401  # of three types, as the arguments ask
        """Evaluate all items, or a subset, without recording anything.

        Args:
            inference: The entrant to evaluate.
            encoding: Not needed: an entrant is read with its own tokenizer.
            reduce: How to combine the scores: see `reduce`.
            return_intermediates: Also return each sample's tokens, in the order of the samples.
            chosen: Fields of `EvaluationOptions`.

        Returns:
            The score, or the scores (n,); with intermediates, a pair of that and a list of
            `Intermediates`.

        Raises:
            ConfigurationError: The entrant does not support this evaluation, or an argument is
                wrong.
        """
        require_reduce(reduce)
        if isinstance(encoding, str):
            fault = f"encoding is {encoding!r}, no tokenizer; write reduce={encoding!r} by its name"
            raise ConfigurationError([fault])
        options = self.decided(EvaluationOptions(**chosen))
        asked = self.asked_as(options)
        samples = asked.samples(options)
        batches = asked.observe_all(inference, samples, options)
        results = [each for batch in batches for each in batch]
        seen = {result.sample: result for result in results if isinstance(result, ObservedSample)}
        score = asked.score_of(
            {sample: seen[sample].observation for sample in seen}, samples, reduce
        )
        lost = [result for result in results if isinstance(result, UnscorableSample)]
        warn_of_lost(self.id, len(samples), [(sample.reason, sample.detail) for sample in lost])
        if not return_intermediates:
            return score
        rows = [seen[sample].rows if sample in seen else () for sample in samples]
        return score, intermediates(rows)

    def score_of(
        self, seen: Mapping[Sample, Observation], samples: Sequence[Sample], reduce: Reduce
    ) -> float | Scores:
        """Return the score of samples together, or of each: see `reduce`.

        Raises:
            EvaluationFault: The evaluation's code fails.
        """
        with blame_evaluation(self.id, "scoring its samples"):
            found = dict(zip(seen, self.score_together([*seen.values()]), strict=True))
            return self.reduce([found.get(sample) for sample in samples], reduce)

    @staticmethod
    def find_accumulation_steps(
        dataset_size: int, max_batch_size: int, dp_replicate: int
    ) -> tuple[int, int] | tuple[None, None]:
        """Return the largest batch size that splits a data set without a remainder.

        Args:
            dataset_size: Number of rows.
            max_batch_size: Most rows that a device can hold.
            dp_replicate: Number of devices that each take a batch.

        Returns:
            Batch size and number of steps, with batch_size * n_steps * dp_replicate ==
            dataset_size; None and None if no batch size fits.
        """
        for batch_size in range(max_batch_size, 0, -1):
            if dataset_size % (batch_size * dp_replicate) == 0:
                return batch_size, dataset_size // (batch_size * dp_replicate)
        return None, None


def warn_of_lost(name: str, n_samples: int, lost: Sequence[tuple[UnscorableReason, str]]) -> None:
    """Warn of a model that has diverged, or of an evaluation of which nothing could be scored.

    Args:
        name: Of the evaluation.
        n_samples: How many were to be scored.
        lost: Why some could not be: the reason, and its detail.
    """
    diverged = [each for each in lost if each[0] == "not_finite"]
    told = diverged or (lost if len(lost) == n_samples else [])
    if told:
        reason, detail = told[0]
        n = f"{len(told)} of {counted(n_samples, 'sample')}"
        warnings.warn(f"{name}: {n} could not be scored: {reason}: {detail}", stacklevel=2)


def rescored(
    evaluation: Evaluation, recorded: Sequence[SampleObserved]
) -> tuple[SampleObserved, ...]:
    """Return the recorded samples of a run scored by the present code.

    Raises:
        EvaluationFault: The evaluation's own code fails.
    """
    again = []
    for sample in recorded:
        with blame_evaluation(evaluation.id, f"scoring {sample.label}"):
            again.append(evaluation.rescore(sample.observation))
    with blame_evaluation(evaluation.id, "scoring its samples"):
        scored = evaluation.score_together(again)
    pairs = zip(recorded, scored, strict=True)
    return tuple(replace(each, observation=observation) for each, observation in pairs)
