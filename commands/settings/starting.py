"""Lay out the files of a tournament: of a new one, of the demo that ships, or of an example."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.settings.inputs import RUBRICS, shipped_data
from commands.settings.makers import MAKERS, split_maker
from commands.settings.schema import SCHEMA_FILE, SCHEMA_LINE, schema_of_settings
from commands.settings.toml import from_home
from ledger.errors import CannotWrite
from ledger.storage.files import cannot_write, write_files, write_whole

SETTINGS: Final = "tournament.toml"
_BANK: Final = "bank.jsonl"
_SERVED: Final = re.compile(r"(?P<model>[^@\s]+)@(?P<url>https?://\S+)")
_EXAMPLES: Final = ("model-a@http://localhost:8000/v1", "model-b@http://localhost:8000/v1")

FIRST_PROMPTS: Final[Sequence[Mapping[str, object]]] = (
    {"prompt": "Why is the sky blue?", "gold_answer": "Air scatters blue light more than red."},
    {"prompt": "What is 17 times 24?", "gold_answer": "408"},
    {"prompt": "Which planet is the largest of the solar system?", "gold_answer": "Jupiter"},
    {"prompt": "Who wrote the play Hamlet?", "gold_answer": "William Shakespeare"},
    {"prompt": "At what temperature does water boil at sea level?", "gold_answer": "100 °C"},
)
"""The prompts of a new tournament, to be replaced by one's own."""

_HEAD: Final = """\
{schema}# A tournament. tournament.schema.json explains every key.

[tournament]
id = {id}

[prompts]
bank = {bank} # one prompt a line: {{"prompt": "..."}}, and "gold_answer" where there is one

[generation]
max_new_tokens = 256 # the longest response
# dtype = "float32"  # of weights on this machine; bfloat16 if left out

# Who competes: a model behind an OpenAI-compatible server, or a folder of weights.
# A server's key is read from the variable OPENAI_API_KEY, or from the one that api_key_env names.
"""
_RUBRIC: Final = """
# What is compared: one table for each dimension.
[[rubrics]]
dimension = {dimension}
path = {path}

# Who judges. `tourney plan judge` shows what it costs, and sends nothing.
[judge]
instructions = "rubrics/judge.md" # what the judge is told before the rubric
"""
_OFFLINE: Final = """\
provider = "reference" # compares with the gold answers, offline; only to try things out
# provider = "endpoint"
# model = "..."
# base_url = "http://localhost:8000/v1"
"""

_CAP: Final = "# max_usd = 10.0 # nothing is sent beyond it\n"


class NewTournament(NamedTuple):
    """What a new tournament is made of; entrants and judge as on the command line."""

    prompts: Sequence[Mapping[str, object]] = FIRST_PROMPTS
    entrants: Sequence[str] = ()
    judge: str | None = None
    recorded: Mapping[str, Mapping[str, str]] = {}  # keys of entrants of recorded answers, by id
    files: Mapping[str, str] = {}  # further ones, as those of such answers


def lay_out(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Write the files of a new tournament into a folder, with a schema for editors; name them.

    Raises:
        ConfigurationError: One of them is there, or a text cannot be written.
        CannotWrite: The place refuses; nothing is left behind.
    """
    contents = {name: _encoded(text) for name, text in files.items()}
    contents[SCHEMA_FILE] = schema_of_settings().encode()
    if there := [name for name in contents if (folder / name).exists()]:
        fault = f"{folder}: there is a tournament's {', '.join(there)} already; name a new folder"
        raise ConfigurationError([fault])
    written: list[Path] = []
    try:
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, [content])
            written.append(folder / name)
    except (OSError, CannotWrite) as error:
        for file in written:
            file.unlink()
        if isinstance(error, OSError):
            raise cannot_write(folder, error) from error
        raise
    return tuple(contents)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        where = text[max(0, error.start - 20) : error.start]
        fault = f"a text is not UTF-8 after {where!r}; save the file that it is from as UTF-8"
        raise ConfigurationError([fault]) from error


def files_of(folder: Path, new: NewTournament) -> dict[str, str]:
    """Return the texts of a new tournament's files by name.

    Raises:
        ConfigurationError: An entrant or the judge cannot be understood, or nobody can judge.
    """
    has_gold = all("gold_answer" in prompt for prompt in new.prompts)
    if not has_gold and new.judge is None:
        why = "not every prompt has a gold answer, with which the offline judge compares"
        remedy = (
            "name a judge: --judge MAKER/MODEL, as anthropic/claude-opus-5-5, or MODEL@URL, or a"
            " folder of weights"
        )
        raise ConfigurationError([f"{why}; {remedy}"])
    if len(new.entrants) + len(new.recorded) == 1:
        fault = "a tournament compares two entrants or more; name another by --entrant"
        raise ConfigurationError([fault])
    dimension = "factuality" if has_gold else "quality"
    shipped = "factuality_general" if has_gold else "quality"  # factuality.md is for medicine
    rubric = f"rubrics/{dimension}.md"
    settings = [
        _HEAD.format(
            schema=SCHEMA_LINE, id=_toml(_plain(folder.resolve().name)), bank=_toml(_BANK)
        ),
        *_recorded_tables(folder, new),
        *_entrant_tables(folder, new),
        _RUBRIC.format(dimension=_toml(dimension), path=_toml(rubric)),
        _OFFLINE if new.judge is None else _judge_keys(folder, new.judge),
    ]
    return {
        SETTINGS: "".join(settings),
        _BANK: "".join(json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in new.prompts),
        rubric: _shipped(shipped),
        "rubrics/judge.md": _shipped("judge"),
        **new.files,
    }


def _shipped(guide: str) -> str:
    """Return the text of a rubric or of instructions that ship."""
    return (RUBRICS / f"{guide}.md").read_text(encoding="utf-8")


def _recorded_tables(folder: Path, new: NewTournament) -> Iterator[str]:
    for name, keys in new.recorded.items():
        file = keys["responses"]
        if file not in new.files:
            file = os.path.relpath(file, folder)  # paths start beside the settings
        about = {"id": name, "loader": "recorded", **keys, "responses": file}
        yield "\n[[entrants]]\n" + _lines(about)


def _entrant_tables(folder: Path, new: NewTournament) -> Iterator[str]:
    taken = set(new.recorded)
    for entrant in new.entrants or (() if new.recorded else _EXAMPLES):
        keys = _keys_of(folder, entrant, "--entrant")
        label = _plain(keys.get("model", entrant).rstrip("/").rpartition("/")[2])
        name = next(f"{label}{n}" for n in ("", *range(2, 999)) if f"{label}{n}" not in taken)
        taken.add(name)
        loader = {"loader": "endpoint"} if "model" in keys else {}
        yield "\n[[entrants]]\n" + _lines({"id": name, **loader, **keys})


def _judge_keys(folder: Path, judge: str) -> str:
    judge = judge.removeprefix("anthropic/")
    if judge.startswith("claude-"):
        return _lines({"provider": "anthropic-batch", "model": judge}) + _CAP
    keys = _keys_of(folder, judge, "--judge")
    if "base_url" in keys:
        return _lines({"provider": "endpoint", **keys})
    if "model" in keys:
        return _lines(keys) + _CAP
    return _lines({"provider": "hf", "model": keys["weights"]})


def _keys_of(folder: Path, model: str, option: str) -> dict[str, str]:
    """Return the keys that say where a model is: MAKER/MODEL, MODEL@URL, or a folder of weights."""
    if split_maker(model) and not from_home(Path(model)).exists():
        return {"model": model}
    if served := _SERVED.fullmatch(model):
        return {"model": served["model"], "base_url": served["url"]}
    weights = from_home(Path(model))
    if not weights.is_dir():
        remedy = (
            "for a model behind a server say MODEL@URL, as small-3b@http://localhost:8000/v1, or"
            f" MAKER/MODEL, as openai/gpt-5.6-luna; makers: {', '.join(MAKERS)}"
        )
        raise ConfigurationError(
            [f"{option} {model}: there is no such folder of weights; {remedy}"]
        )
    if weights.is_absolute():
        return {"weights": str(weights)}
    return {"weights": os.path.relpath(weights, folder)}  # paths start beside the settings


def _plain(name: str) -> str:
    """Return a name of letters, digits, dots, dashes and underscores only."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "tournament"


def _lines(keys: Mapping[str, str]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a basic string of TOML has the same escapes


_RECORDED: Final = {"tournament.toml": "recorded.toml", "answers.csv": "answers.csv"}
_NOT_COPIED: Final = frozenset({".py", ".txt", ".tsv"})  # what the weights were trained by and on
_COMPILED: Final = "__pycache__"  # of those, by pip


def lay_out_demo(folder: Path, *, weights: bool = True) -> None:
    """Fill a folder with the quickstart tournament, unless it holds a tournament already.

    Args:
        folder: A new folder, or an empty one, or one that holds a demo.
        weights: Whether its entrants are weights that generate; else their recorded answers.

    Raises:
        ConfigurationError: The folder holds something else.
        CannotWrite: The place refuses.
    """
    folder = folder.resolve()
    if (folder / "tournament.toml").exists():
        if weights and (folder / "answers.csv").exists():
            raise ConfigurationError([f"{folder} is a demo without weights; name a new folder"])
        return
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigurationError([f"{folder} exists and is not a demo; name a new folder"])
    quickstart = shipped_data() / "quickstart"
    if weights:
        files = dict(_with_weights(quickstart))
    else:
        files = {name: (quickstart / file).read_bytes() for name, file in _RECORDED.items()}
    for beside in ("bank.jsonl", "distractors.jsonl"):
        files[beside] = (shipped_data() / beside).read_bytes()
    for guide in ("factuality.md", "judge_medical.md"):
        files[f"rubrics/{guide}"] = (RUBRICS / guide).read_bytes()
    write_files(folder, files)


def _with_weights(quickstart: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(quickstart.rglob("*")):
        is_apart = file.parent == quickstart and (
            file.suffix in _NOT_COPIED or file.name in _RECORDED.values()
        )
        if file.is_file() and not is_apart and file.parent.name != _COMPILED:
            yield str(file.relative_to(quickstart)), file.read_bytes()


class Example(StrEnum):
    """A tournament to start from: own answers, models by name, or two prompts for one model."""

    RAG = "rag"
    MODELS = "models"
    PROMPTS = "prompts"


def files_of_example(example: Example) -> dict[str, str]:
    """Return the texts of an example's files by name."""
    folder = shipped_data() / "examples" / example
    files = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
    is_of_facts = example is Example.RAG
    guides = {"factuality": "factuality_general"} if is_of_facts else {"quality": "quality"}
    for name, shipped in {**guides, "judge": "judge"}.items():
        files[f"rubrics/{name}.md"] = (RUBRICS / f"{shipped}.md").read_text(encoding="utf-8")
    return files
