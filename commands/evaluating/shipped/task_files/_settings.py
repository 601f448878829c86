"""The keys of a task file that are supported, checked; every other key is a fault."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from commands.errors import ConfigurationError, fault_of_pydantic
from commands.evaluating.shipped.task_files._yaml import Keys, function_faults

OutputType = Literal["multiple_choice", "loglikelihood", "loglikelihood_rolling", "generate_until"]

METRICS: Final[Mapping[OutputType, Mapping[str, str]]] = {
    "multiple_choice": {
        "acc": "mean",
        "acc_norm": "mean",
        "acc_bytes": "mean",
        "acc_mutual_info": "mean",
        "exact_match": "mean",
    },
    "loglikelihood": {"acc": "mean", "perplexity": "perplexity"},
    "loglikelihood_rolling": {
        "word_perplexity": "weighted_perplexity",
        "byte_perplexity": "weighted_perplexity",
        "bits_per_byte": "bits_per_byte",
    },
    "generate_until": {"exact_match": "mean"},
}
"""The metrics of each kind of task, each with the only aggregation that it has here."""


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MetricKeys(_Keys):
    """An entry of metric_list."""

    metric: str
    aggregation: str | None = None
    higher_is_better: bool | None = None
    hf_evaluate: bool = False
    ignore_case: bool = False
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: tuple[str, ...] = ()


class RegexFilter(_Keys):
    """Keeps what a pattern finds, as the first, or as the one at `group_select`."""

    function: Literal["regex"]
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)"  # lm-evaluation-harness's own default
    group_select: int = 0
    fallback: str = "[invalid]"


class TakeFirst(_Keys):
    """Keeps the first of several answers; here each item has one."""

    function: Literal["take_first"]


class RemoveWhitespace(_Keys):
    """Strips spaces and line ends at both ends."""

    function: Literal["remove_whitespace"]


FilterStep = Annotated[RegexFilter | TakeFirst | RemoveWhitespace, Field(discriminator="function")]


class FilterKeys(_Keys):
    """An entry of filter_list: steps under a name."""

    name: str
    filter: tuple[FilterStep, ...]


class GenerationKeys(_Keys):
    """How an answer is generated: greedily, up to a length or a text."""

    until: str | tuple[str, ...] | None = None  # None: the fewshot_delimiter
    max_gen_toks: PositiveInt = 256
    do_sample: Literal[False] = False
    temperature: float = Field(default=0.0, ge=0, le=0)


class FewshotKeys(_Keys):
    """How examples are chosen and shown; what is left out is as for the question."""

    sampler: Literal["default", "first_n"] = "default"
    split: str | None = None
    samples: tuple[dict[str, Any], ...] | None = None
    doc_to_text: str | None = None
    doc_to_target: str | int | None = None
    doc_to_choice: str | tuple[str, ...] | None = None
    fewshot_delimiter: str | None = None
    target_delimiter: str | None = None
    gen_prefix: str | None = None


class DatasetKeys(_Keys):
    """The files of a data set: one list, or one for each split."""

    data_files: str | tuple[str, ...] | dict[str, str | tuple[str, ...]] | None = None


class TaskKeys(_Keys):
    """The keys of one task."""

    task: str
    output_type: OutputType = "generate_until"
    dataset_path: str
    dataset_name: str | None = None
    dataset_kwargs: DatasetKeys = DatasetKeys()
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    fewshot_split: str | None = None
    doc_to_text: str = ""
    doc_to_target: str | int
    doc_to_choice: str | tuple[str, ...] | dict[str, str] | None = None
    description: str = ""
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"
    gen_prefix: str | None = None
    num_fewshot: NonNegativeInt = 0
    fewshot_config: FewshotKeys = FewshotKeys()
    metric_list: tuple[MetricKeys, ...] = ()
    generation_kwargs: GenerationKeys = GenerationKeys()
    filter_list: tuple[FilterKeys, ...] = ()
    repeats: Literal[1] = 1

    @property
    def shots_split(self) -> str | None:
        """The split of the examples, if one is named."""
        return self.fewshot_config.split or self.fewshot_split

    @property
    def chat_delimiter(self) -> str:
        """What stands before a choice where the turn of the model begins, or has begun."""
        prefix = self.gen_prefix
        return self.target_delimiter if prefix and not prefix[-1].isspace() else ""

    @property
    def stop(self) -> tuple[str, ...]:
        """The texts that end an answer."""
        until = self.generation_kwargs.until
        found = self.fewshot_delimiter if until is None else until
        return tuple(each for each in ([found] if isinstance(found, str) else found) if each)


_SILENT: Final = frozenset(
    {"task_alias", "tag", "group", "group_alias", "metadata", "should_decontaminate"}
    | {"doc_to_decontamination_query"}
)
"""Keys of names and notes, which change no result."""


def task_keys(path: Path, keys: Keys) -> TaskKeys:
    """Return the keys of a task, checked.

    Raises:
        ConfigurationError: A key is not supported, is missing, or has another value; all faults
            are listed.
    """
    faults = [*function_faults(path, keys)]
    spoken = {key: value for key, value in keys.items() if key not in _SILENT}
    faults += [
        f"{path}: {key} is not supported{_nearest(key)}"
        for key in spoken
        if key not in TaskKeys.model_fields and not any(f"{path}: {key} is" in f for f in faults)
    ]
    if faults:
        raise ConfigurationError(faults)
    try:
        found = TaskKeys.model_validate(spoken)
    except ValidationError as error:
        raise ConfigurationError([f"{path}: {_said(each)}" for each in error.errors()]) from error
    if unknown := [*_metric_faults(found)]:
        raise ConfigurationError([f"{path}: {each}" for each in unknown])
    return found


def _nearest(key: str) -> str:
    close = difflib.get_close_matches(key, TaskKeys.model_fields, n=1, cutoff=0.85)
    return f"; did you mean {close[0]}?" if close else ""


def _said(error: Any) -> str:  # noqa: ANN401  # pydantic's ErrorDetails
    place = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "missing":
            return f"{place} is missing"
        case "extra_forbidden":
            return f"{place} is not supported"
        case _:
            why = fault_of_pydantic(error)
            return f"{place} is {error['input']!r:.80}, which is not supported: {why}"


def _metric_faults(keys: TaskKeys) -> list[str]:
    """Return what is wrong with metric_list."""
    known = METRICS[keys.output_type]
    faults = []
    for each in keys.metric_list:
        if each.metric not in known:
            faults.append(
                f"metric_list.{each.metric} is not supported for {keys.output_type};"
                f" choose of {', '.join(known)}"
            )
        elif each.aggregation not in {None, known[each.metric]}:
            faults.append(
                f"metric_list.{each.metric}.aggregation is {each.aggregation!r}, which is not"
                f" supported; it is {known[each.metric]!r}"
            )
        elif each.higher_is_better not in {None, known[each.metric] == "mean"}:
            faults.append(
                f"metric_list.{each.metric}.higher_is_better is {each.higher_is_better}, which is"
                " not supported"
            )
    return faults
