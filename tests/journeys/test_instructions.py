"""The judge's instructions are the user's: what is sent, what a change asks again, what is kept."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from commands.settings.inputs import read_instructions
from tests.providers.anthropic.messages import Reply
from tests.providers.anthropic.prompt import Params, digest_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.builders.commands import write_bank
from tests.support.command_line import paid
from tests.support.command_line.settled import head_of
from tests.support.command_line.warm import Ended, run_warm

MEDICAL: Final = re.compile(
    r"\b(clinic\w*|cures?|diagnos\w+|diseases?|doctors?|doses?|dosage|drugs?|guidelines?|health\w*"
    r"|hospitals?|illness\w*|medic\w+|nurses?|patients?|pharmac\w+|physicians?|surg\w+|symptoms?"
    r"|therap\w+|treat\w*)\b",
    re.IGNORECASE,
)
TRIVIA: Final = {
    "t1": ("Which planet has the most moons?", "Saturn"),
    "t2": ("In which sport is the Ashes urn played for?", "Cricket"),
    "t3": ("Who painted Guernica?", "Pablo Picasso"),
}
N_QUERIES: Final = 6  # three prompts, one pair, both orders
RUBRIC: Final = """\
<!-- version: 1 -->
+++
needs_gold = true
+++

# Truth

Say which response names what the reference answer names.
"""
SETTINGS: Final = """\
[tournament]
id = "trivia"

[[entrants]]
id = "small"
loader = "endpoint"
model = "small-3b"
base_url = "{url}"

[[entrants]]
id = "large"
loader = "endpoint"
model = "large-32b"
base_url = "{url}"

[[rubrics]]
dimension = "truth"
path = "truth.md"

[elo]
permutations = 5

[judge]
"""
AT_ENDPOINT: Final = """\
provider = "endpoint"
pilot_model = "judge-70b"
model = "judge-70b"
base_url = "{url}"
protocol = "schema"
"""
AT_ANTHROPIC: Final = 'provider = "anthropic"\neffort = "high"\ncache = "1h"\n'


@dataclass(frozen=True)
class Trivia:
    """A tournament on trivia, its two servers, and what its judge was asked."""

    folder: Path
    server: FakeOpenAI
    anthropic: FakeAnthropic
    chats: Sequence[Json] = ()  # of the judge at the endpoint, as they arrived
    asked: Sequence[str] = ()  # of Anthropic's model: both texts

    def tourney(self, *words: str) -> Ended:
        """Run a command that finds its key and the provider's address in its environment."""
        return paid.tourney(self.folder, *words, url=self.anthropic.url)

    def set_judge(self, keys: str) -> None:
        """Write the settings, with these keys in [judge]."""
        text = (SETTINGS + keys).format(url=self.server.url)
        (self.folder / "tournament.toml").write_text(text, encoding="utf-8")


Asked = list[str]


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[FakeOpenAI, FakeAnthropic, Asked]]:
    """Give a server of all models, Anthropic, and the texts that Anthropic is asked."""
    asked = Asked()

    def answering(about: Params) -> Reply:
        asked.append(f"{about.system_text}\n{about.user}")
        return Reply("Both were read.\n\nVERDICT: A")

    with FakeOpenAI(_say) as server, FakeAnthropic(answering=answering) as anthropic:
        server.traffic.models = None
        yield server, anthropic, asked


@pytest.fixture(scope="module")
def at_endpoint_once(
    servers: tuple[FakeOpenAI, FakeAnthropic, Asked], tmp_path_factory: pytest.TempPathFactory
) -> Trivia:
    """Give one that a judge at the endpoint has judged, to be copied."""
    server, anthropic, _ = servers
    n_before = len(server.traffic.asked)
    trivia = ran(Trivia(lay_out(tmp_path_factory.mktemp("judged")), server, anthropic), AT_ENDPOINT)
    chats = [each for each in server.traffic.asked[n_before:] if each["model"] == "judge-70b"]
    return replace(trivia, chats=chats)


@pytest.fixture(scope="module")
def at_anthropic_once(
    servers: tuple[FakeOpenAI, FakeAnthropic, Asked], tmp_path_factory: pytest.TempPathFactory
) -> Trivia:
    """Give one that Anthropic has judged, to be copied."""
    server, anthropic, asked = servers
    folder = lay_out(tmp_path_factory.mktemp("judged"))
    return replace(ran(Trivia(folder, server, anthropic), AT_ANTHROPIC), asked=[*asked])


@pytest.fixture
def at_endpoint(at_endpoint_once: Trivia, tmp_path: Path) -> Trivia:
    """Give one that a judge at the endpoint has judged."""
    return replace(
        at_endpoint_once, folder=shutil.copytree(at_endpoint_once.folder, tmp_path / "t")
    )


def lay_out(folder: Path) -> Path:
    """Write a bank of trivia and its rubric."""
    write_bank(
        folder / "bank.jsonl",
        (
            {"prompt_id": name, "source": "own", "subject": "trivia", "text": text}
            | {"gold_answer": gold}
            for name, (text, gold) in TRIVIA.items()
        ),
    )
    (folder / "truth.md").write_text(RUBRIC, encoding="utf-8")
    return folder


def _say(body: Json) -> Said:
    """Answer as an entrant, each in its own words, or as the judge."""
    if body["model"] == "judge-70b":
        return Said(json.dumps({"reasoning": "Both were read.", "verdict": "A"}))
    return Said(f"{body['model']} says é \u2028 and no more.")


def ran(trivia: Trivia, keys: str) -> Trivia:
    """Run the tournament with these keys in [judge]."""
    trivia.set_judge(keys)
    done = trivia.tourney("run", "--yes")
    assert done.code == 0, done.err
    return trivia


def test_no_medical_word_is_sent_about_trivia(
    at_endpoint_once: Trivia, at_anthropic_once: Trivia
) -> None:
    """A judge that is told to be a clinician looks for other faults than the rubric's author."""
    chats, asked = at_endpoint_once.chats, at_anthropic_once.asked

    sent = [*map(str, chats), *asked]
    assert (len(chats), len(asked)) == (N_QUERIES, N_QUERIES)
    assert all(read_instructions(None).guidance in text for text in asked)
    assert not [found[0] for text in sent if (found := MEDICAL.search(text))]
    assert MEDICAL.search("the same medical question, as a careful clinician")


def with_own_instructions(trivia: Trivia, keys: str, line: str) -> None:
    """Change one line of the instructions."""
    text = read_instructions(None).text.replace("- Length: more words are not more quality", line)
    assert line in text
    (trivia.folder / "judge.md").write_text(text, encoding="utf-8")
    trivia.set_judge(f'{keys}instructions = "judge.md"\n')


def test_one_changed_line_asks_every_query_again_and_a_plan_says_why(at_endpoint: Trivia) -> None:
    """A bill that comes as a surprise is the last thing that a user wants."""
    assert json.loads(at_endpoint.tourney("plan", "judge", "--json").out)["asked_again"] == []

    with_own_instructions(at_endpoint, AT_ENDPOINT, "- Length: a short answer is enough")
    words = at_endpoint.tourney("plan", "judge").out.splitlines()
    plan = json.loads(at_endpoint.tourney("plan", "judge", "--json").out)

    assert "6 queries are open" in words
    assert "the judge's instructions changed: 6 queries are asked again" in words
    assert plan["n_owed"] == N_QUERIES
    assert plan["asked_again"] == [
        {
            "instructions_changed": True,
            "changed_rubric": None,
            "n_queries": N_QUERIES,
            "changed_settings": [],
        }
    ]


def test_a_juror_may_have_instructions_of_its_own(at_endpoint: Trivia) -> None:
    """Another wording is tried on the same answers, before it judges alone."""
    juror = f'{AT_ENDPOINT}[[jury]]\nid = "brief"\ninstructions = "brief.md"\n{AT_ENDPOINT}'
    at_endpoint.set_judge(juror.replace("pilot_model", "# pilot_model"))
    n_before = len(at_endpoint.server.traffic.asked)
    (at_endpoint.folder / "brief.md").write_text("<!-- version: 1 -->\n\nBe brief.\n")
    judged = at_endpoint.tourney("apply", "judge", "--judge", "brief", "--yes")
    assert judged.code == 0, judged.err

    sent = [str(body["messages"]) for body in at_endpoint.server.traffic.asked[n_before:]]
    assert ["Be brief." in text for text in sent] == [True] * N_QUERIES
    assert not any("Be brief." in str(body["messages"]) for body in at_endpoint.chats)
    assert json.loads(at_endpoint.tourney("plan", "judge", "--json").out)["n_owed"] == 0
    compared = at_endpoint.tourney("project", "compare-judges", "judge-70b", "brief")
    assert (compared.code, at_endpoint.tourney("verify").code) == (0, 0), compared.err

    (at_endpoint.folder / "brief.md").write_text("<!-- version: 2 -->\n\nBe very brief.\n")
    plan = json.loads(at_endpoint.tourney("plan", "judge", "--judge", "brief", "--json").out)
    assert plan["n_owed"] == N_QUERIES
    assert [change["instructions_changed"] for change in plan["asked_again"]] == [True]
    assert json.loads(at_endpoint.tourney("plan", "judge", "--json").out)["n_owed"] == 0

    assert at_endpoint.tourney("plan", "generate").code == 0
    assert (
        at_endpoint.tourney("apply", "judge", "--judge", "brief", "--limit", "0", "--yes").code == 0
    )
    unasked = at_endpoint.tourney("project", "compare-judges", "judge-70b", "brief")
    assert unasked.code == 2
    assert "run `tourney apply judge --judge brief`, or name an earlier version: brief@1" in (
        unasked.err
    )
    (at_endpoint.folder / "brief.md").write_text("")
    checked = at_endpoint.tourney("doctor")
    assert checked.code == 1
    assert "not ready: instructions of [[jury]] 'brief'" in checked.err


def test_edited_prompts_are_told_by_name(at_endpoint: Trivia) -> None:
    """As instructions and rubrics are: which answers and verdicts are paid for again, and why."""
    bank = at_endpoint.folder / "bank.jsonl"
    prompts = [json.loads(line) for line in bank.read_text(encoding="utf-8").splitlines()]
    first, second = (prompt["prompt_id"] for prompt in prompts[:2])

    prompts[0]["gold_answer"] = "corrected"
    prompts[1]["text"] += " Say why."
    bank.write_text("\n".join(map(json.dumps, prompts)), encoding="utf-8")
    generate = at_endpoint.tourney("plan", "generate").out.splitlines()
    judge = at_endpoint.tourney("plan", "judge").out.splitlines()

    text = f"the text of {second} changed: it is answered again"
    gold = f"the gold answer or expected behaviour of {first} changed: 2 queries are asked again"
    assert text in generate
    assert text in judge
    assert gold in judge
    assert not any(first in line for line in generate)


def test_the_ledger_alone_says_what_each_judge_was_told(at_endpoint: Trivia) -> None:
    """Instructions, rubric and settings may be lost or edited; what was published must follow."""
    until = head_of(at_endpoint.folder / "tournament.db").position
    before = outcomes(at_endpoint.folder)
    with_own_instructions(at_endpoint, AT_ENDPOINT, "- Length: a short answer is enough")
    assert at_endpoint.tourney("run", "--yes").code == 0
    elsewhere = at_endpoint.folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(at_endpoint.folder / "tournament.db", elsewhere)

    verified = run_warm(elsewhere, ("verify",), os.environ)
    replayed = run_warm(elsewhere, ("replay",), os.environ)

    assert verified.code == 0, verified.err
    assert (replayed.code, replayed.out.strip()) == (0, "2 runs rebuilt, 0 differences")
    assert len(before) == len(TRIVIA)
    assert outcomes(elsewhere, "--as-of", str(until)) == before
    assert {row["status"] for row in outcomes(elsewhere)} == {"inconsistent"}


def outcomes(folder: Path, *options: str) -> list[dict[str, Any]]:
    """Return what became of each pair."""
    done = run_warm(folder, ("project", "matches", "--json", *options), os.environ)
    assert done.code == 0, done.err
    rows: list[dict[str, Any]] = json.loads(done.out)["rows"]
    return rows


def shown(trivia: Trivia, *options: str) -> Ended:
    """Show the request about a prompt, in an environment that holds no key."""
    without = {name: text for name, text in os.environ.items() if not name.endswith("_API_KEY")}
    done = run_warm(trivia.folder, ("plan", "judge", "--show-prompt", "t2", *options), without)
    assert done.code == 0, done.err
    return done


def test_the_request_to_an_endpoint_is_shown_as_it_arrives(at_endpoint: Trivia) -> None:
    """Whoever writes a rubric wants to read what the judge reads, to the byte."""
    (row,) = json.loads(shown(at_endpoint, "--json").out)["rows"]
    (sent,) = [body for body in at_endpoint.chats if body == row["request"]]

    texts = [turn["content"] for turn in sent["messages"]]  # type: ignore[attr-defined]  # JSON
    assert texts == [row["system"], row["user"]]
    assert (row["dimension"], row["prompt"], row["order"]) == ("truth", "t2", "forward")


def test_the_request_to_anthropic_is_shown_as_it_arrives(at_anthropic_once: Trivia) -> None:
    """Model, effort, cache and all."""
    n_sent = len(at_anthropic_once.anthropic.bill().lines)

    (row,) = json.loads(shown(at_anthropic_once, "--json").out)["rows"]

    digests = [line.digest for line in at_anthropic_once.anthropic.bill().lines]
    assert digest_of(row["request"]) in digests
    assert f"{row['system']}\n{row['user']}" in at_anthropic_once.asked
    assert len(digests) == n_sent


def test_people_read_the_parameters_once_and_then_both_texts(at_anthropic_once: Trivia) -> None:
    """Text of a model keeps its lines, and its invisible characters are spelt out."""
    (row,) = json.loads(shown(at_anthropic_once, "--json").out)["rows"]
    heading, _, rest = shown(at_anthropic_once).out.partition("\n----- request -----\n")
    request, _, rest = rest.partition("\n----- system text -----\n")
    system, _, rest = rest.partition("\n----- user text -----\n")

    assert heading == (
        "truth: prompt t2, forward, small against large; judge claude-opus-5-5 (anthropic)"
    )
    assert json.loads(request)["messages"] == [{"role": "user", "content": "(the user text)"}]
    assert json.loads(request)["output_config"] == {"effort": "high"}
    assert system == row["system"]
    assert rest == row["user"].replace("\u2028", "\\u2028") + "\n----- end -----\n"
