"""Data for task files of lm-evaluation-harness, made here, and files that include theirs."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tests.benchmarks.bench import CORPUS

N_DOCUMENTS: Final = 24
N_EXAMPLES: Final = 8
_RNG: Final = Random(7)  # noqa: S311  # an order is no secret
_WORDS: Final = sorted({*CORPUS.read_text(encoding="utf-8").split()})
Row = Mapping[str, Any]


class HarnessTask(NamedTuple):
    """A task file of theirs, what its rows look like, and what a file that includes it changes."""

    file: str  # in lm_eval/tasks
    row: Callable[[int], Row]
    changes: Mapping[str, Any] = {}


def words(n: int) -> str:
    """Return n words of the corpus."""
    return " ".join(_RNG.choices(_WORDS, k=n))


def _options(n: int) -> list[str]:
    return [f"{words(1 + place)} {place}" for place in range(n)]


def _arc(_: int) -> Row:
    chosen = _RNG.choice("ABCD")
    choices = {"text": _options(4), "label": [*"ABCD"]}
    return {"question": words(8), "choices": choices, "answerKey": chosen}


def _mmlu(_: int) -> Row:
    return {"question": f" {words(9)} ", "choices": _options(4), "answer": _RNG.randrange(4)}


def _five(n: int) -> Row:
    return {**_arc(n), "choices": {"text": _options(5), "label": [*"ABCDE"]}}


def _piqa(_: int) -> Row:
    return {"goal": words(6), "sol1": words(5), "sol2": words(3), "label": _RNG.randrange(2)}


def _sciq(_: int) -> Row:
    wrong = {f"distractor{n}": option for n, option in enumerate(_options(3), start=1)}
    return {"support": words(12), "question": words(5), "correct_answer": words(2), **wrong}


def _boolq(_: int) -> Row:
    return {"passage": words(14), "question": words(5), "label": _RNG.randrange(2)}


def _swag(_: int) -> Row:
    endings = {f"ending{n}": option for n, option in enumerate(_options(4))}
    return {"startphrase": words(7), "label": _RNG.randrange(4), **endings}


def _blimp(_: int) -> Row:
    return {"sentence_good": words(6), "sentence_bad": words(6)}


def _anli(_: int) -> Row:
    return {"premise": words(10), "hypothesis": words(5), "label": _RNG.randrange(3)}


def _truthful(_: int) -> Row:
    labels = [1, 0, 0, 0]
    return {"question": words(6), "mc1_targets": {"choices": _options(4), "labels": labels}}


def _book(_: int) -> Row:
    choices = {"text": _options(4), "label": [*"ABCD"]}
    return {"question_stem": words(6), "choices": choices, "answerKey": _RNG.choice("ABCD")}


def _document(n: int) -> Row:
    text = words(4 if n % 3 else 900)  # several windows
    return {"text": f" {text}\n" if n % 2 else text}


def _sum(_: int) -> Row:
    a, b = _RNG.randrange(50), _RNG.randrange(50)
    return {"question": f"{words(4)} {a} and {b}", "answer": f"{words(3)} #### {a + b:,}"}


def _asked(_: int) -> Row:
    return {"question": words(5), "answer": words(2)}


def _instructed(_: int) -> Row:
    return {"content": words(12), "ideal": _RNG.choice("ABCD")}


TASKS: Final[Mapping[str, HarnessTask]] = {
    "mmlu_anatomy": HarnessTask("mmlu/default/mmlu_anatomy.yaml", _mmlu, {"num_fewshot": 5}),
    "mmlu_astronomy": HarnessTask("mmlu/default/mmlu_astronomy.yaml", _mmlu, {"num_fewshot": 5}),
    "arc_easy": HarnessTask("arc/arc_easy.yaml", _arc),
    "arc_prefixed": HarnessTask(
        "arc/arc_easy.yaml", _arc, {"gen_prefix": "The answer is", "num_fewshot": 2}
    ),
    "arc_challenge": HarnessTask("arc/arc_challenge.yaml", _arc, {"num_fewshot": 3}),
    "piqa": HarnessTask("piqa/piqa.yaml", _piqa),
    "sciq": HarnessTask("sciq/sciq.yaml", _sciq, {"num_fewshot": 1}),
    "openbookqa": HarnessTask("openbookqa/openbookqa.yaml", _book),
    "boolq": HarnessTask("super_glue/boolq/default.yaml", _boolq, {"num_fewshot": 2}),
    "swag": HarnessTask("swag/swag.yaml", _swag),
    "blimp_anaphor_gender_agreement": HarnessTask("blimp/anaphor_gender_agreement.yaml", _blimp),
    "anli_r1": HarnessTask("anli/anli_r1.yaml", _anli, {"num_fewshot": 2}),
    "truthfulqa_mc1": HarnessTask("truthfulqa/truthfulqa_mc1.yaml", _truthful),
    "commonsense_qa": HarnessTask("commonsense_qa/default.yaml", _five),
    "lambada_openai": HarnessTask("lambada/lambada_openai.yaml", _document),
    "pile_10k": HarnessTask("pile_10k/pile_10k.yaml", _document),
    "gsm8k": HarnessTask(
        "gsm8k/gsm8k.yaml",
        _sum,
        {"generation_kwargs": {"until": ["Question:", "</s>"], "max_gen_toks": 48}},
    ),
    "nq_open": HarnessTask(
        "nq_open/nq_open.yaml",
        _asked,
        {"generation_kwargs": {"until": ["\n", ".", ","], "max_gen_toks": 16}, "num_fewshot": 2},
    ),
    "logieval": HarnessTask("logiqa2/logieval.yaml", _instructed),
}
GROUP: Final = "mmlu_two"
MEMBERS: Final = ("mmlu_anatomy", "mmlu_astronomy")


def write_tasks(folder: Path, theirs: Path) -> None:
    """Write data, and for each task a file that includes theirs, with that data."""
    for name, task in TASKS.items():
        file = {split: folder / f"{name}-{split}.jsonl" for split in ("asked", "examples")}
        write_rows(file["asked"], [task.row(n) for n in range(N_DOCUMENTS)])
        write_rows(file["examples"], [task.row(n) for n in range(N_EXAMPLES)])
        own = {
            "include": str(theirs / task.file),
            "task": name,
            "dataset_path": "json",
            "dataset_name": None,
            "dataset_kwargs": {
                "data_files": {"test": str(file["asked"]), "train": str(file["examples"])}
            },
            "test_split": "test",
            "fewshot_split": "train",
            **task.changes,
        }
        (folder / f"{name}.yaml").write_text(json.dumps(own), encoding="utf-8")
    group = {
        "group": GROUP,
        "task": list(MEMBERS),
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
    }
    (folder / f"{GROUP}.yaml").write_text(json.dumps(group), encoding="utf-8")


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Write rows as JSON lines."""
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
