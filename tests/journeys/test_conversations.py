"""Prompts that are conversations, from the bank to the report; servers say what they got."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest

from ledger.events.conversations import transcript
from ledger.events.responses import ResponseGenerated
from ledger.store import Ledger
from tests.providers.openai import MODEL, FakeOpenAI, Json, Said
from tests.support.builders.commands import write_bank
from tests.support.command_line.launching import done
from tests.support.command_line.served import Served
from tests.support.command_line.settled import events_in
from tests.support.command_line.warm import begin
from tests.support.faults.death import Death

NIGHTLY = pytest.mark.nightly
ENTRANTS = ("first", "second", "third")
N_TALKS = 3
TALKS: Sequence[Mapping[str, object]] = [
    {"prompt_id": f"mt{n}", "turns": [f"Write a verse on {n}.", "Make it rhyme."]}
    for n in range(N_TALKS)
]
SYSTEM = {"role": "system", "content": "Answer as a pirate."}
OTHERS: Sequence[Mapping[str, object]] = [
    {"prompt_id": "plain", "prompt": "Why is the sky blue?"},
    {"prompt_id": "told", "messages": [SYSTEM, {"role": "user", "content": "Who are you?"}]},
    {
        "prompt_id": "given",
        "messages": [
            {"role": "user", "content": "What is 2 + 2?"},
            {"role": "assistant", "content": "5"},
            {"role": "user", "content": "Are you sure?"},
        ],
    },
]
N_REQUESTS = 2 * N_TALKS + len(OTHERS)  # to each entrant


def turns_of(body: Json) -> list[tuple[str, str]]:
    """Return the turns of a request."""
    messages = body["messages"]
    assert isinstance(messages, list)
    return [(turn["role"], turn["content"]) for turn in messages]


def reply(name: str, body: Json) -> Said:
    """Say who answers which turn to what."""
    turns = turns_of(body)
    return Said(f"{name} says {len(turns)}: {turns[-1][1]} ```")


@pytest.fixture
def servers() -> Iterator[Mapping[str, FakeOpenAI]]:
    """Give a server of each entrant, and one that judges."""
    with (
        FakeOpenAI(lambda body: reply("first", body)) as first,
        FakeOpenAI(lambda body: reply("second", body)) as second,
        FakeOpenAI(lambda body: reply("third", body)) as third,
        FakeOpenAI(lambda _: Said("VERDICT: A")) as judge,
    ):
        yield {"first": first, "second": second, "third": third, "judge": judge}


@pytest.fixture
def folder(tmp_path: Path, servers: Mapping[str, FakeOpenAI]) -> Path:
    """Give a tournament of conversations and plain prompts."""
    lay_out(tmp_path, servers, [*TALKS, *OTHERS])
    return tmp_path


def lay_out(
    folder: Path, servers: Mapping[str, FakeOpenAI], bank: Sequence[Mapping[str, object]]
) -> None:
    """Write the files of a tournament of three servers."""
    place = Served(folder, servers["judge"], n_prompts=0)
    write_bank(folder / "bank.jsonl", bank)
    entrants = {
        name: f'model = "{MODEL}"\nrevision = "{name}"\nbase_url = "{servers[name].url}"\n'
        for name in ENTRANTS
    }
    place.configure(entrants, further="[generation]\nmax_new_tokens = 40\n")


def require_right_turns(name: str, server: FakeOpenAI) -> None:
    """Each request of two has the server's own answer to the first question, and is sent once."""
    asked = [turns_of(body) for body in server.traffic.asked]
    assert len(asked) == N_REQUESTS
    for number in range(N_TALKS):
        first = [("user", f"Write a verse on {number}.")]
        answer = f"{name} says 1: Write a verse on {number}. ```"
        second = [*first, ("assistant", answer), ("user", "Make it rhyme.")]
        assert [turns for turns in asked if turns[0] == first[0]] == [first, second]
    assert asked.count([("user", "Why is the sky blue?")]) == 1
    assert asked.count([("system", "Answer as a pirate."), ("user", "Who are you?")]) == 1
    given = [("user", "What is 2 + 2?"), ("assistant", "5"), ("user", "Are you sure?")]
    assert asked.count(given) == 1


def test_a_bank_of_conversations_becomes_a_report(
    folder: Path, servers: Mapping[str, FakeOpenAI]
) -> None:
    """Every server gets its own answers back; the judge, battles and the report show all turns."""
    planned = json.loads(done(folder, "plan", "generate", "--json").stdout)
    done(folder, "run", "--yes")

    assert planned["n_owed"] == 3 * N_REQUESTS
    for name in ENTRANTS:
        require_right_turns(name, servers[name])
    judged = [turns_of(body)[-1][1] for body in servers["judge"].traffic.asked]
    assert len(judged) == 3 * 2 * (N_TALKS + len(OTHERS))
    [talk, *_] = [text for text in judged if "verse on 0" in text and "second says" in text]
    answers = [f"{name} says 1: Write a verse on 0. ```" for name in ("first", "second")]
    assert "user:\n```\nMake it rhyme.\n```" in talk
    assert any(f"assistant:\n````\n{answer}\n````" in talk for answer in answers)
    assert "Judge the assistant's last answer" in talk
    plain = next(text for text in judged if "sky" in text)
    assert "conversation" not in plain

    done(folder, "report")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Make it rhyme." in page
    assert "Answer as a pirate." in page
    battle = done(folder, "battle", "mt0", "first", "second").stdout
    assert "Write a verse on 0." in battle
    assert "first says 3: Make it rhyme." in battle
    rows = json.loads(done(folder, "project", "responses", "--json").stdout)["rows"]
    assert "first says 3: Make it rhyme." in next(
        row["text"] for row in rows if (row["prompt"], row["entrant"]) == ("mt0", "first")
    )
    done(folder, "verify")
    done(folder, "replay")
    done(folder, "run", "--yes")
    for name in ENTRANTS:
        assert len(servers[name].traffic.asked) == N_REQUESTS


@pytest.mark.parametrize("steps", [(20, 40, 60), pytest.param(range(3, 69, 3), marks=NIGHTLY)])
def test_whatever_is_killed_no_question_is_answered_twice(
    folder: Path, servers: Mapping[str, FakeOpenAI], steps: Iterable[int]
) -> None:
    """An answer is on the ledger before the question after it is asked, and is sent with that."""
    numbers = count()
    for name in ENTRANTS:  # no two answers are alike
        servers[name].traffic.say = lambda _: Said(f"answer {next(numbers)}")

    for step in steps:
        begin(folder, ("apply", "generate", "--yes"), os.environ, death=Death(step)).wait()
    done(folder, "apply", "generate", "--yes")

    responses = events_in(folder, ResponseGenerated)
    assert len({each.response_key for each in responses}) == len(responses) == 3 * N_REQUESTS
    followed = {each.follows.answer for each in responses if each.follows}
    said = {each.text for each in responses if each.response_key in followed}
    asked = [turns for name in ENTRANTS for turns in map(turns_of, servers[name].traffic.asked)]
    sent = {turns[1][1] for turns in asked if turns[-1] == ("user", "Make it rhyme.")}
    assert sent == said
    assert len(said) == 3 * N_TALKS


SHARED: Sequence[Mapping[str, object]] = [  # also a beginning of another, and one twice
    {"prompt_id": "short", "turns": ["Write a verse on 0.", "Shorter?"]},
    *({"prompt_id": f"s{n}", "turns": ["Write a verse on 0.", f"And {n}?"]} for n in range(3)),
    {"prompt_id": "long", "turns": ["Write a verse on 0.", "Shorter?", "Longer?"]},
    {"prompt_id": "again", "turns": ["Write a verse on 0.", "Shorter?"]},
]


@pytest.mark.parametrize("others", [SHARED, pytest.param((), marks=NIGHTLY)])
def test_a_dialogue_whose_first_answer_was_redacted_is_not_asked_again(
    folder: Path, servers: Mapping[str, FakeOpenAI], others: Sequence[Mapping[str, object]]
) -> None:
    """Its outcomes stay, of all prompts that share it, and everything is verified and replayed."""
    lay_out(folder, servers, [*TALKS[:2], *others])
    done(folder, "run", "--yes")
    before = done(folder, "project", "bt", "--json").stdout
    with Ledger.read_only(folder / "tournament.db") as ledger:
        [position] = [
            each.position
            for each in ledger.read()
            if isinstance(each.event, ResponseGenerated)
            and each.event.text.startswith("first says 1: Write a verse on 0.")
        ]
    done(folder, "redact", str(position), "--why", "it names somebody", "--yes")
    n_asked = [len(server.traffic.asked) for server in servers.values()]

    done(folder, "apply", "generate", "--yes")
    done(folder, "apply", "judge", "--yes")
    done(folder, "verify")
    done(folder, "replay")

    assert n_asked == [len(server.traffic.asked) for server in servers.values()]
    after = json.loads(done(folder, "project", "bt", "--json").stdout)
    assert after["rows"] == json.loads(before)["rows"]


def test_answers_that_one_has_enter_by_the_text_of_a_conversation(tmp_path: Path) -> None:
    """A table of conversations and two systems' answers is a tournament."""
    rows = [
        {**each, "a": ["A verse.", f"{n} rhymes"], "b": ["Verse.", "No rhyme."]}
        for n, each in enumerate(TALKS)
    ]
    rows += [  # the first question was answered otherwise each time, as people begin with "Hi"
        {"turns": ["Hi", f"And {n}?"], "a": [f"Hello {n}", "x"], "b": ["Hey", f"y {n}"]}
        for n in range(3)
    ]
    run = [
        {"role": "assistant", "content": "", "tool_calls": [{"name": "see", "arguments": "{}"}]},
        {"role": "tool", "content": "VERDICT: A"},
        {"role": "assistant", "content": "Blue."},
    ]
    rows.append({**OTHERS[0], "a": run, "b": "It is blue."})
    rows.append({**OTHERS[1], "a": "Arr.", "b": "A model."})
    (tmp_path / "table.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))

    with FakeOpenAI(lambda _: Said("VERDICT: A")) as server:
        judge = f"{MODEL}@{server.url}"
        done(tmp_path, "init", "mine", "--from", "table.jsonl", "--judge", judge)
        mine = tmp_path / "mine"
        done(mine, "run", "--yes")
        asked = [turns_of(body)[-1][1] for body in server.traffic.asked]

    assert len(asked) == 2 * len(rows)
    shown = transcript(
        (("assistant", "A verse."), ("user", "Make it rhyme."), ("assistant", "0 rhymes"))
    )
    assert sum(shown in text for text in asked) == 2
    assert sum("system:\n```\nAnswer as a pirate.\n```" in text for text in asked) == 2
    called = "assistant calls:\n```\nsee({})\n```\n\ntool:\n```\nVERDICT: A\n```"
    assert sum(called in text for text in asked) == 2
    done(mine, "report")
    report = (mine / "report.html").read_text(encoding="utf-8")
    assert "assistant calls" in report
    assert "see({})" in report
    done(mine, "verify")
    done(mine, "replay")
