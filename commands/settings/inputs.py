"""Read the files that tournament.toml names: the bank, the rubrics and the judge's instructions.

A file of instructions has a version on its first line, then Markdown for the judge. A rubric file
has TOML front matter between the two:

    <!-- version: 1 -->
    +++
    needs_gold = true
    +++
    # Factuality
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Final, Literal, TypeVar, get_args

import msgspec
from pydantic import NonNegativeFloat, ValidationError, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

import rubrics
from commands.errors import ConfigurationError, fault_of_pydantic, place_and_fault
from commands.settings.sections import Section
from commands.settings.toml import UTF16, closest, looks_utf16, nearest, no_utf8, parsed
from commands.settings.turns import with_turns
from ledger.events.registration import Instructions, Prompt, Rubric, ScoreScale
from ledger.identity import Dimension, PromptId, digest_of_bytes


def read_text(path: Path, what: str, *, key: str) -> str:
    """Read a file that a key of the settings names, or an option.

    Raises:
        ConfigurationError: It is missing, cannot be read, or is no text.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows begin with a mark
    except FileNotFoundError as error:
        remedy = f"correct {key}" + " (paths start beside the settings)" * key.startswith("[")
        raise ConfigurationError([f"{path}: there is no such {what}; {remedy}"]) from error
    except OSError as error:
        why = f"the {what} cannot be read: {error.strerror}; correct {key}, which names a file"
        raise ConfigurationError([f"{path}: {why}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError([f"{path}: the {what} {no_utf8(error)}"]) from error
    if looks_utf16(text):
        raise ConfigurationError([f"{path}: the {what} {UTF16}"])
    return text


_FIELDS: Final = {field.name: field for field in msgspec.structs.fields(Prompt)}  # of a prompt
_N_NAMED: Final = 5  # lines that have the same fault


def read_bank(path: Path, n_samples: int = 1) -> tuple[Prompt, ...]:
    """Read a prompt bank, of JSON lines or a JSON array.

    Raises:
        ConfigurationError: As `prompts_in`, or the file cannot be read.
    """
    return prompts_in(path, read_text(path, "prompt bank", key="[prompts] bank"), n_samples)


def prompts_in(place: Path | str, text: str, n_samples: int = 1) -> tuple[Prompt, ...]:
    """Return the prompts of a bank's text.

    A prompt's `_provenance` is for people and is not kept. A further sample of prompt `p` is the
    prompt `p#2`: its text is the same, so its responses differ by their seeds alone. All second
    samples follow all first ones, so a design that draws pairs keeps those of the first.

    Raises:
        ConfigurationError: There is none, a line is not a prompt, or an id is there twice; every
            kind of fault is listed with its lines.
    """
    prompts: list[Prompt] = []
    faulty: dict[str, list[int]] = {}  # lines by fault
    firsts: dict[str, tuple[int, Prompt]] = {}  # lines and prompts by id
    for number, entry in _entries(place, text):
        try:
            prompt = _prompt(entry)
        except ConfigurationError as error:
            for fault in error.faults:
                faulty.setdefault(fault, []).append(number)
            continue
        line, first = firsts.setdefault(prompt.prompt_id, (number, prompt))
        if first is not prompt:
            faulty.setdefault(_repeats(line, first, prompt), []).append(number)
        prompts.append(prompt)
    if not prompts and not faulty:
        fault = f"{place}: the prompt bank is empty; it holds one JSON object a line"
        raise ConfigurationError([fault])
    if faulty:
        raise ConfigurationError([with_lines(place, *fault) for fault in faulty.items()])
    further = [
        msgspec.structs.replace(prompt, prompt_id=PromptId(f"{prompt.prompt_id}#{n}"))
        for n in range(2, n_samples + 1)
        for prompt in prompts
    ]
    if taken := [sample.prompt_id for sample in further if sample.prompt_id in firsts]:
        fault = f"{place}: prompt_id {taken[0]!r} names a sample of another prompt; rename it"
        raise ConfigurationError([fault])
    return (*prompts, *further)


def _repeats(line: int, first: Prompt, prompt: Prompt) -> str:
    """Say that a prompt has the id of an earlier one, which may follow from an equal text."""
    if prompt.text == first.text and prompt.prompt_id == _id_of(prompt.text):
        remedy = "remove one of them, or give each a prompt_id to ask both"
        return f"the text is that of line {line}; {remedy}"
    return f"prompt_id {prompt.prompt_id!r} is taken by line {line}; give each prompt its own"


def _entries(place: Path | str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the JSON of each prompt, with its line: of an array its entries, else the lines.

    Raises:
        ConfigurationError: It is an array that is no JSON, or one object over several lines.
    """
    begin = text.lstrip()[:1]
    if begin == "[":
        yield from _array_entries(place, text)
        return
    if begin == "{" and "\n" in text.strip() and _is_json(text):
        fault = "one JSON object over several lines; write one object a line, or a list of them"
        raise ConfigurationError([f"{place}: {fault}"])
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_BETWEEN: Final = " \t\n\r,"  # between the entries of an array


def _array_entries(place: Path | str, text: str) -> Iterator[tuple[int, str]]:
    try:
        _decoded(text)
    except ConfigurationError as error:
        raise ConfigurationError([f"{place}: {fault}" for fault in error.faults]) from error
    scan = json.JSONDecoder().raw_decode
    end = text.index("[") + 1
    line = 1 + text.count("\n", 0, end)
    while True:
        start = next(n for n in range(end, len(text)) if text[n] not in _BETWEEN)
        line += text.count("\n", end, start)
        if text[start] == "]":
            return
        _, end = scan(text, start)
        yield line, text[start:end]
        line += text.count("\n", start, end)


def with_lines(place: Path | str, fault: str, lines: Sequence[int]) -> str:
    """Return a fault with the lines that have it, of which the first few are named."""
    if len(lines) == 1:
        return f"{place}:{lines[0]}: {fault}"
    n_more = len(lines) - _N_NAMED
    named = ", ".join(map(str, lines[:_N_NAMED])) + (f" and {n_more} more" if n_more > 0 else "")
    return f"{place}:{lines[0]}: {fault} (on {len(lines)} lines: {named})"


def _prompt(line: str) -> Prompt:
    """Read one line.

    Raises:
        ConfigurationError: It is not a prompt; the faults do not name the line.
    """
    found = _decoded(line)
    if not isinstance(found, dict):
        kind = next(name for of, name in _KINDS.items() if isinstance(found, of))
        raise ConfigurationError([f"a prompt is a JSON object, this is {kind}"])
    found.pop("_provenance", None)
    record = with_defaults(with_turns(found))
    if faults := [*_faulty_keys(record)]:
        raise ConfigurationError(faults)
    try:
        return msgspec.convert(record, Prompt)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise ConfigurationError([f"{place!r}: {why}{_choices(place)}"]) from error


def _decoded(text: str) -> object:
    """Decode JSON.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text.strip() else ""
        fault = f"not JSON: {error.msg} at {line}column {error.colno}"
        raise ConfigurationError([fault]) from error
    except RecursionError as error:
        raise ConfigurationError(["nested too deeply"]) from error
    except ValueError as error:
        raise ConfigurationError(["a number has too many digits"]) from error


_KINDS: Final[Mapping[type | UnionType, str]] = {
    list: "a list",
    str: "a text",
    bool: "true or false",
    int | float: "a number",
    NoneType: "null",
}
"""What we call the values of JSON that are no objects; the first that fits."""


_KEPT: Final = "surrogatepass"  # what UTF-8 cannot encode is a fault that is told later


def with_defaults(record: Mapping[str, object]) -> dict[str, object]:
    """Return a prompt with what may be left out; `prompt` is another name of `text`.

    The id follows from the text: it stays the same wherever the line stands. A blank gold answer is
    none: a judge would compare with nothing.
    """
    given = dict(record)
    if isinstance(gold := given.get("gold_answer"), str) and not gold.strip():
        del given["gold_answer"]
    if "text" not in given and "prompt" in given:
        given["text"] = given.pop("prompt")
    name = _id_of(str(given.get("text")))
    return {"prompt_id": name, "source": "own", "subject": "general", **given}


def _id_of(text: str) -> str:
    return f"p_{digest_of_bytes(text.encode(errors=_KEPT))[:8]}"


_TURNS: Final = frozenset({"conversation", "conversations", "dialogue", "system"})
"""How other programs call the messages of a prompt, or one of them."""


def _faulty_keys(record: Mapping[str, object]) -> Iterator[str]:
    """Yield which keys of a prompt are unknown, and which are missing and not misspelt."""
    known = (*_FIELDS, *sorted(_SAY_TEXT.difference(_FIELDS)))
    unknown = [key for key in record if key not in _FIELDS]
    meant = {key: "text" if key in _TURNS else closest(key, known) for key in unknown}
    for key in meant:
        if key == "prompt":  # read as `text` where that is missing
            yield "the question stands twice, as 'prompt' and as 'text'; keep one"
        elif key in _TURNS:
            remedy = "write the turns of a conversation, a system prompt first, as 'messages'"
            yield f"unknown field {key!r}; {remedy}"
        else:
            yield f"unknown field {key!r}{nearest(key, known)}"
    misspelt = {*meant.values()}
    for name, field in _FIELDS.items():
        says = _SAY_TEXT if name == "text" else {name}
        if field.required and name not in record and not says & misspelt:
            yield f"{name!r} is missing"
    for name, value in record.items():
        texts = value if isinstance(value, list) else [value]
        if half := _HALF_PAIR.search("".join(text for text in texts if isinstance(text, str))):
            yield f"{name!r} has {half[0]!a}, half of a surrogate pair, which is no character"


_SAY_TEXT: Final = frozenset({"text", "prompt", "messages", "turns"})
"""The keys that may say what is asked."""
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


def _choices(field: str) -> str:
    """List the values that a field may have, if it has a list."""
    kinds = {name: get_args(field.type) for name, field in _FIELDS.items()}
    literals = [value for kind in kinds.get(field, ()) for value in get_args(kind)]
    return f", it is one of {', '.join(map(repr, literals))}" if literals else ""


RUBRICS: Final = Path(rubrics.__path__[0])
"""The folder of the rubrics and instructions that ship."""
_VERSION: Final = re.compile(r"<!--\s*version:\s*(\S+)\s*-->")
_FRONT_MATTER: Final = re.compile(r"\+\+\+ *\n(.*?)^\+\+\+ *$", re.DOTALL | re.MULTILINE)


class FrontMatter(Section):
    """What a judge sees of a prompt beside its text."""

    needs_gold: bool
    shows_expected_behavior: bool = False
    turns: Literal["last", "all"] = "last"  # which of an entrant's answers are judged


class ScoringFrontMatter(Section):
    """Whether a judge sees the expected answer, and which scores it may give."""

    needs_gold: bool
    score: Literal["pass/fail"] | tuple[NonNegativeFloat, NonNegativeFloat]

    @property
    def scale(self) -> ScoreScale:
        """The scores."""
        return ScoreScale(None if self.score == "pass/fail" else self.score)

    @field_validator("score")
    @classmethod
    def _rises(cls, score: str | tuple[float, float]) -> str | tuple[float, float]:
        if not isinstance(score, str) and score[0] >= score[1]:
            raise PydanticCustomError("score", "the lowest score comes first, then the highest")
        return score


AnyFrontMatter = TypeVar("AnyFrontMatter", FrontMatter, ScoringFrontMatter)


def read_rubric(path: Path, dimension: Dimension) -> Rubric:
    """Read a rubric file.

    Raises:
        ConfigurationError: The file is missing, has no version, or its front matter is wrong.
    """
    text, version, front = _rubric_parts(path, "[[rubrics]] path", FrontMatter)
    return Rubric(
        dimension=dimension,
        version=version,
        needs_gold=front.needs_gold,
        shows_expected_behavior=front.shows_expected_behavior,
        text=text,
        turns="all" if front.turns == "all" else msgspec.UNSET,
    )


def read_scoring_rubric(path: Path, evaluation: str) -> Rubric:
    """Read a rubric file by which the answers of an evaluation are scored.

    Raises:
        ConfigurationError: As `read_rubric`.
    """
    text, version, front = _rubric_parts(path, "[[evaluations]] rubric", ScoringFrontMatter)
    return Rubric(
        dimension=Dimension(evaluation),
        version=version,
        needs_gold=front.needs_gold,
        text=text,
        scale=front.scale,
    )


def _rubric_parts(
    path: Path, key: str, kind: type[AnyFrontMatter]
) -> tuple[str, str, AnyFrontMatter]:
    """Return a rubric's text, its version, and its front matter."""
    text = read_text(path, "rubric", key=key)
    version, rest = _version(path, text, "a rubric begins with its")
    return text, version, _front_matter(path, rest, kind)


def read_instructions(path: Path | None, key: str = "[judge] instructions") -> Instructions:
    """Read the judge's instructions; without a path, those that ship.

    Raises:
        ConfigurationError: The file is missing, is no text, has no version, or says nothing else.
    """
    path = path or RUBRICS / "judge.md"
    text = read_text(path, "file of instructions", key=key)
    if not _VERSION.sub("", text, count=1).strip():
        remedy = f"write what the judge must do, or leave out {key}"
        raise ConfigurationError([f"{path}: the file of instructions is empty; {remedy}"])
    version, _ = _version(path, text, "the judge's instructions begin with their")
    instructions = Instructions(version=version, text=text)
    if instructions.guidance.startswith("+++"):
        fault = f"{path}: the judge would read the front matter (+++) as text; remove it"
        raise ConfigurationError([fault])
    return instructions


def _version(path: Path, text: str, begins: str) -> tuple[str, str]:
    """Return the version on the first line, and the rest."""
    first_line, _, rest = text.partition("\n")
    version = _VERSION.fullmatch(first_line.strip())
    if version is None:
        raise ConfigurationError([f"{path}:1: {begins} version, as in <!-- version: 1 -->"])
    return version[1], rest


def _front_matter(path: Path, rest: str, kind: type[AnyFrontMatter]) -> AnyFrontMatter:
    block = _FRONT_MATTER.match(rest)
    if block is None:
        keys = _KEYS[kind]
        raise ConfigurationError([f"{path}:2: front matter is missing: +++, then {keys}, then +++"])
    try:
        return kind.model_validate(parsed(block[1]))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError([f"{path}:2: the front matter is not TOML: {error}"]) from error
    except ValidationError as error:
        faults = dict.fromkeys(_in_one_line(detail, kind) for detail in error.errors())
        raise ConfigurationError([f"{path}:2: front matter: {why}" for why in faults]) from error


_SCORES: Final = 'score = "pass/fail", or the lowest and the highest as score = [1, 10]'
_GOLD: Final = "needs_gold = true or false"
_KEYS: Final[Mapping[type[Section], str]] = {
    FrontMatter: _GOLD,
    ScoringFrontMatter: f"{_GOLD} and {_SCORES}",
}


def _in_one_line(error: ErrorDetails, kind: type[Section]) -> str:
    """Say what is wrong with a key, without pydantic's links."""
    name = str(error["loc"][0])
    if name == "score" and error["type"] != "extra_forbidden":
        return f"say {_SCORES}, neither below 0"
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key {name!r}{nearest(name, kind.model_fields)}"
        case "missing":
            return f"{name!r} is missing; say {name} = true or false"
        case _:
            return f"{name!r} is {error['input']!r}: {fault_of_pydantic(error)}"


_PACKAGE: Final = Path(__file__).parents[1]


def shipped_data() -> Path:
    """Return the folder of the shipped data: data/ of the repository, or its copy in the wheel."""
    in_wheel = _PACKAGE / "shipped_data"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "data"
