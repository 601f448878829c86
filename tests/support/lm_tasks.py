"""Task files of lm-evaluation-harness, drawn at random, on small data of their columns made here.

A test draws them again, and compares with DRAWN.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

SEED: Final = 39
N_DOCUMENTS: Final = 7
N_EXAMPLES: Final = 6
Row = Mapping[str, Any]


class DrawnTask(NamedTuple):
    """A task file, the rows of its data, and the splits of what is asked and of examples."""

    file: str  # in lm_eval/tasks
    row: Callable[[Random], Row]
    split: str = "test"
    examples: str = "validation"


def _words(rng: Random, n: int) -> str:
    return " ".join(rng.choices(["red", "blue", "sky", "sea", "stone", "tree", "moon"], k=n))


def _letters(rng: Random) -> Row:
    options = {f"option_{letter}": _words(rng, 2) for letter in "abcd"}
    return {"question": _words(rng, 6), "answer": rng.choice("ABCD"), **options}


def _global(language: str, subject: str) -> DrawnTask:
    file = f"global_mmlu/full/{language}/global_mmlu_full_{language}_{subject}.yaml"
    return DrawnTask(file, lambda rng: {"subject": subject, **_letters(rng)}, examples="dev")


def _openai(language: str, subject: str) -> DrawnTask:
    def row(rng: Random) -> Row:
        options = {letter: _words(rng, 2) for letter in "ABCD"}
        asked = {"Question": _words(rng, 6), "Answer": rng.choice("ABCD")}
        return {"Subject": subject, **asked, **options}

    return DrawnTask(f"openai-mmmlu/default/mmmlu_{language}_{subject}.yaml", row)


def _pair(rng: Random) -> Row:
    return {"sen": _words(rng, 5), "wrong_sen": _words(rng, 5)}


def _intent(rng: Random) -> Row:
    return {"text": _words(rng, 6), "intent": rng.choice(["alarm", "time", "weather"])}


def _prox(rng: Random) -> Row:
    options = {f"option_{n}": _words(rng, 2) for n in range(6)}
    lacking = {f"option_{n}": None for n in range(6, 10)}
    told = {"cot_content": f"A: {_words(rng, 5)}", "answer": rng.choice("ABCDEF")}
    return {"category": "physics", "question": _words(rng, 6), **told, **options, **lacking}


def _mmlu(rng: Random) -> Row:
    choices = [_words(rng, 2) for _ in range(4)]
    return {"question": _words(rng, 6), "choices": choices, "answer": rng.randrange(4)}


def _nli(rng: Random) -> Row:
    return {"premise": _words(rng, 5), "hypothesis": _words(rng, 3), "label": rng.randrange(3)}


def _paws(rng: Random) -> Row:
    said = {f"sentence{n}": f"{_words(rng, 4)} ." for n in (1, 2)}
    return {**said, "label": rng.randrange(2)}


def _long(rng: Random) -> Row:
    return {"context": _words(rng, 60), **_mmlu(rng), "answer": rng.choice("ABCD")}


def _arabic(rng: Random) -> Row:
    choices = {f"sol{n}": _words(rng, 2) for n in range(1, 5)}
    return {"query": _words(rng, 6), "label": str(rng.randrange(4)), **choices}


def _columns(rng: Random) -> Row:
    choices = {f"choice{n}": _words(rng, 2) for n in range(1, 5)}
    return {"question": _words(rng, 6), "answer": rng.choice("ABCD"), **choices}


def _winogrande(rng: Random) -> Row:
    shots = {
        f"winogrande_{what}_shot_{n}": value
        for n in range(1, 6)
        for what, value in {
            "prompt": f"{_words(rng, 3)} _ {_words(rng, 2)}",
            "answer": rng.choice("12"),
            "idx": n,
            "option1": _words(rng, 1),
            "option2": _words(rng, 1),
        }.items()
    }
    options = {"option1": _words(rng, 1), "option2": _words(rng, 1), "answer": rng.choice("12")}
    sentence = f"{_words(rng, 3)} _ {_words(rng, 3)}"
    return {"sentence": sentence, "allfiveshot_longprompt": "", **options, **shots}


DRAWN: Final = (
    _global("tr", "computer_security"),
    DrawnTask("multiblimp/multiblimp_gla.yaml", _pair, "train"),
    DrawnTask("afrobench/injongointent/prompt_4/injongointent_swa.yaml", _intent),
    _global("it", "high_school_statistics"),
    _openai("it_it", "high_school_statistics"),
    _openai("es_la", "world_religions"),
    DrawnTask("mmlu_prox/yo/mmlu_prox_lite_yo_physics.yaml", _prox),
    DrawnTask("llama3/instruct/mmlu/mmlu_college_mathematics.yaml", _mmlu, examples="dev"),
    DrawnTask("afrixnli/direct/prompt_2/afrixnli_amh.yaml", _nli),
    _global("sn", "abstract_algebra"),
    _global("en", "world_religions"),
    _global("ha", "professional_law"),
    DrawnTask("paws-x/paws_en.yaml", _paws, examples="train"),
    _openai("ar_xy", "high_school_physics"),
    _openai("id_id", "high_school_biology"),
    DrawnTask("longbench2/detective.yaml", _long, "train"),
    DrawnTask(
        "arabic_leaderboard_complete/arabic_leaderboard_arabic_mt_arc_easy/arabic_mt_arc_easy.yaml",
        _arabic,
    ),
    DrawnTask("mmlu/flan_cot_fewshot/mmlu_moral_disputes.yaml", _mmlu),
    DrawnTask(
        "mmlusr/question_only/question_only_electrical_engineering.yaml", _columns, examples="train"
    ),
    _openai("pt_br", "moral_scenarios"),
    DrawnTask("metabench/metabench_winogrande_permute.yaml", _winogrande, "primary"),
)
"""Those that can be loaded without a network: two more that were drawn fetch metrics from it."""

FETCHING: Final = frozenset(
    {"darija_bench/darija_summarization/summarization.yaml", "mts_dialog/mts_dialog.yaml"}
)


def name_of(task: DrawnTask) -> str:
    """Return the name of a task in the files written here."""
    return Path(task.file).stem


def write_task(folder: Path, task: DrawnTask, theirs: Path) -> Path:
    """Write data, and a file that includes theirs with it; return the file."""
    rng, name = Random(name_of(task)), name_of(task)  # noqa: S311  # an order is no secret
    sizes = {task.examples: N_EXAMPLES, task.split: N_DOCUMENTS}
    files = {}
    for split, n_rows in sizes.items():
        file = folder / f"{name}-{split}.jsonl"
        lines = (json.dumps(task.row(rng)) for _ in range(n_rows))
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files[split] = str(file)
    own = {
        "include": str(theirs / task.file),
        "task": name,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(own), encoding="utf-8")
    return path


def draw(theirs: Path, load: Callable[[Path], Mapping[str, Any]]) -> Iterator[str]:
    """Yield the task files of a folder in the order of the draw; no groups, and no parts of files.

    Args:
        theirs: The folder.
        load: Reads a file with what it includes.
    """
    files = sorted(str(path.relative_to(theirs)) for path in theirs.rglob("*.yaml"))
    Random(SEED).shuffle(files)  # noqa: S311  # as above
    for file in files:
        try:
            keys = load(theirs / file)
        except Exception:  # noqa: BLE001, S112  # a template that lacks what it includes
            continue
        if isinstance(keys.get("task"), str) and "group" not in keys:
            yield file
