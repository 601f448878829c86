"""Builders of what commands are given: commands, settings, scripts, and files on the disk."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from math import prod
from pathlib import Path
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from commands.decisions.commands import OpenTournament, RecordResponse
from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError
from commands.ports import GenerationFailure, GenerationTask, Reply
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from ledger.events.judging import JudgeQueryFailed, JudgeQuerySubmitted
from ledger.events.ratings import BradleyTerryParameters, EloParameters, PublicationTerms
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import Event
from ledger.events.values import type_name
from ledger.identity import Digest, EntrantId, PromptId
from ledger.store import Ledger
from projections.tournament.matches import planned_responses
from projections.tournament.remaining import OpenQuery
from projections.verdicts.policies import DEFAULT_POLICY
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.events import judge, opened, valid
from tests.support.builders.money import put
from tests.support.scripted import ScriptedGenerator, ScriptedJudge

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

JUDGE = judge()
P1, P2 = PromptId("p1"), PromptId("p2")
BASE_SHAPES: Shapes = {"model.q_proj.weight": (6, 4), "model.v_proj.weight": (2, 4)}
MLP_SHAPES: Shapes = {"gate_proj": (6, 4), "up_proj": (6, 4), "down_proj": (4, 6)}
LORA_SHAPES: Shapes = {
    "base_model.model.model.q_proj.lora_A.weight": (3, 4),
    "base_model.model.model.q_proj.lora_B.weight": (6, 3),
}


class PowerCut(Exception):
    """The process ends where nobody expected it to."""


def open_tournament(events: Sequence[Event] | None = None) -> OpenTournament:
    """Return the command whose events these are; without events the usual one."""
    opening, *others = opened() if events is None else events
    assert isinstance(opening, TournamentOpened)
    return OpenTournament(opening, tuple(each for each in others if isinstance(each, Registered)))


def submitted(
    query: OpenQuery, *, attempt: int = 1, batch_key: Digest | None = None
) -> JudgeQuerySubmitted:
    """Return the event that puts a query to the judge."""
    event = put(query.match, query.asked, by=JUDGE.judge_id, attempt=attempt)
    return replace(event, batch_key=batch_key)


def failed(query_key: Digest, *, attempt: int = 1, **fields: object) -> JudgeQueryFailed:
    """Return the event that a reply without a verdict was read as."""
    given = {"reason": "unreadable", "reply": "Both are fine.", "stop_reason": "end_turn"}
    always = {"judge": JUDGE.judge_id, "parser": "final-line@2", "model": "chrF2"}
    return valid(
        JudgeQueryFailed, {**given, **always, "query_key": query_key, "attempt": attempt, **fields}
    )


def reply(query_key: Digest, text: str = "VERDICT: A", stop_reason: str = "end_turn") -> Reply:
    """Return a reply of the usual judge."""
    return Reply(query_key, text, stop_reason, model="chrF2")


def terms(**fields: object) -> PublicationTerms:
    """Return terms over two entrants and two prompts, rated over few orders."""
    given = {"mode": "headline", "judge": JUDGE.judge_id, "policy": DEFAULT_POLICY}
    return valid(
        PublicationTerms,
        {
            **given,
            "elo": EloParameters(permutations=5, k_sweep=(8.0, 16.0)),
            "entrants": (EntrantId("base"), EntrantId("tuned")),
            "prompts": (P1, P2),
            "bradley_terry": BradleyTerryParameters(),
            **fields,
        },
    )


def echo(task: GenerationTask) -> str:
    """Answer with who is asked what."""
    return f"{task.entrant.entrant_id} on {task.prompt_text}"


def echoing(*, stops_after: int | None = None) -> ScriptedGenerator:
    """Return a generator that echoes, and may be cut off after so many responses."""
    made = count()

    def answer(task: GenerationTask) -> str | GenerationFailure:
        if next(made) == stops_after:
            raise PowerCut
        return echo(task)

    return ScriptedGenerator(answer)


def prefer_tuned(query: JudgeQuery) -> str:
    """Find the response of `tuned` better, in whatever slot it is shown."""
    assert isinstance(query, PairQuery)
    return "VERDICT: A" if query.shown_a.startswith("tuned") else "VERDICT: B"


def preferring_tuned() -> ScriptedJudge:
    """Return a judge that always finds `tuned` better."""
    return ScriptedJudge(prefer_tuned)


def record_answers(recorder: Recorder, events: Sequence[Event] | None = None) -> Recorder:
    """Open a tournament and record an echo for every response that it wants."""
    recorder.record(open_tournament(events))
    wanted = planned_responses(recorder.state, [prompt.prompt_id for prompt in recorder.state.bank])
    for cell in wanted:
        task = GenerationTask(cell.response_key, cell.entrant, cell.prompt.text, cell.seed)
        for (result,) in echoing().generate([task]):
            recorder.record(RecordResponse(cell, result))
    return recorder


def types_of(ledger: Ledger) -> list[str]:
    """Return the names of a ledger's events, in order."""
    return [type_name(recorded.event) for recorded in ledger.read()]


def settings(**sections: object) -> Settings:
    """Return settings of two entrants and one rubric, rated over few orders."""
    given = {
        "tournament": {"id": "main"},
        "entrants": [entrant_section("base"), entrant_section("tuned")],
        "rubrics": [{"dimension": "factuality", "path": "rubrics/factuality.md"}],
        "elo": {"permutations": 5, "k_sweep": [8.0, 16.0]},
    }
    return Settings.model_validate({**given, **sections})


def entrant_section(entrant_id: str, **fields: object) -> dict[str, object]:
    """Return an [[entrants]] table."""
    return {"id": entrant_id, "weights": f"weights/{entrant_id}", **fields}


def lay_out(folder: Path) -> Path:
    """Write everything that `settings()` name."""
    write_bank(folder / "bank.jsonl", [record("p1"), record("p2")])
    write_rubric(folder / "rubrics" / "factuality.md")
    write_weights(folder / "weights" / "base", first_byte=1)
    write_weights(folder / "weights" / "tuned", first_byte=2)
    return folder


def record(prompt_id: str = "p1", **fields: object) -> dict[str, object]:
    """Return a line of a bank."""
    text = f"Question {prompt_id}?"
    given = {"source": "recall", "subject": "anatomy", "text": text, "gold_answer": "aspirin"}
    return {"prompt_id": prompt_id, **given, **fields}


def write_bank(file: Path, records: Iterable[object]) -> Path:
    """Write a bank."""
    lines = "".join(json.dumps(each) + "\n" for each in records)
    file.write_text(lines, encoding="utf-8")
    return file


def write_rubric(file: Path, *, version: str = "1", front: str = "needs_gold = true") -> Path:
    """Write a rubric whose front matter is given."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f"<!-- version: {version} -->\n+++\n{front}\n+++\n\n# A rubric\n"
    file.write_text(text, encoding="utf-8")
    return file


def write_weights(folder: Path, shapes: Shapes = BASE_SHAPES, *, first_byte: int = 0) -> Path:
    """Write a folder that holds one safetensors file, whose first byte of data is given."""
    folder.mkdir(parents=True)
    ends = [sum(map(n_bytes, list(shapes.values())[: n + 1])) for n in range(len(shapes))]
    entries = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [end - n_bytes(shape), end]}
        for (name, shape), end in zip(shapes.items(), ends, strict=True)
    }
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    data = bytes([first_byte, *bytes(max(ends, default=1) - 1)])
    content = len(header).to_bytes(8, "little") + header + data
    (folder / "model.safetensors").write_bytes(content)
    return folder


def write_olmo(folder: Path, n_layers: int = 4) -> Path:
    """Write the weights of an OLMo 2 that has MLPs and nothing else."""
    shapes = {
        f"model.layers.{layer}.mlp.{name}.weight": shape
        for layer in range(n_layers)
        for name, shape in MLP_SHAPES.items()
    }
    write_weights(folder, shapes)
    write_config(folder, model_type="olmo2", num_hidden_layers=n_layers)
    return folder


def write_config(folder: Path, **fields: object) -> None:
    """Write what a model folder says of its architecture."""
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")


def write_shard(folder: Path, *layers: int, first_byte: int = 0) -> Path:
    """Write a folder of peft that changes the MLPs of layers of `write_olmo`."""
    write_weights(folder, shard_shapes(*layers), first_byte=first_byte)
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    return folder


def shard_shapes(*layers: int) -> Shapes:
    """Return the shapes of LoRA pairs on the MLPs of layers."""
    pairs = {
        f"base_model.model.model.layers.{layer}.mlp.{name}": shape
        for layer in layers
        for name, shape in MLP_SHAPES.items()
    }
    down = {f"{module}.lora_A.weight": (3, shape[1]) for module, shape in pairs.items()}
    up = {f"{module}.lora_B.weight": (shape[0], 3) for module, shape in pairs.items()}
    return down | up


def n_bytes(shape: Sequence[int]) -> int:
    """Return how much room a tensor of float32 takes."""
    return 4 * prod(shape)


MINIMAL = """\
[tournament]
id = "main"

[[entrants]]
id = "base"
weights = "weights/base"

[[entrants]]
id = "tuned"
weights = "weights/tuned"

[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"
"""


def settings_in(
    folder: Path, text: str = MINIMAL, environ: Mapping[str, str] | None = None
) -> Settings:
    """Write a configuration and read it, in an empty environment unless one is given."""
    path = folder / "tournament.toml"
    path.write_text(text, encoding="utf-8")
    return read_settings(path, environ or {})


def faults_in(
    folder: Path, text: str = MINIMAL, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return what is wrong, each place without its folder."""
    with pytest.raises(ConfigurationError) as caught:
        settings_in(folder, text, environ)
    return tuple(fault.removeprefix(f"{folder}/") for fault in caught.value.faults)
