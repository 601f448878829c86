"""The judge's instructions are the user's: what is sent, what a change asks again, what is kept."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
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


@dataclass
class Trivia:
    """A tournament on trivia, its two servers, and what its judge was asked."""

    folder: Path
    server: FakeOpenAI
    anthropic: FakeAnthropic
    asked: list[str] = field(default_factory=list)  # of Anthropic's models: both texts

    def tourney(self, *words: str) -> Ended:
        """Run a command that finds its key and the provider's address in its environment."""
        return paid.tourney(self.folder, *words, url=self.anthropic.url)

    def set_judge(self, keys: str) -> None:
        """Write the settings, with these keys in [judge]."""
        text = (SETTINGS + keys).format(url=self.server.url)
        (self.folder / "tournament.toml").write_text(text, encoding="utf-8")

    @property
    def chats(self) -> list[Json]:
        """The requests to the judge at the endpoint, as they arrived."""
        return [body for body in self.server.traffic.asked if body["model"] == "judge-70b"]


@pytest.fixture
def trivia(tmp_path: Path) -> Iterator[Trivia]:
    """Give a tournament on trivia whose instructions are those that ship."""
    write_bank(
        tmp_path / "bank.jsonl",
        (
            {"prompt_id": name, "source": "own", "subject": "trivia", "text": text}
            | {"gold_answer": gold}
            for name, (text, gold) in TRIVIA.items()
        ),
    )
    (tmp_path / "truth.md").write_text(RUBRIC, encoding="utf-8")
    asked: list[str] = []

    def answering(about: Params) -> Reply:
        asked.append(f"{about.system_text}\n{about.user}")
        return Reply("Both were read.\n\nVERDICT: A")

    with FakeOpenAI(_say) as server, FakeAnthropic(answering=answering) as anthropic:
        server.traffic.models = None
        yield Trivia(tmp_path, server, anthropic, asked)


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


def test_no_medical_word_is_sent_about_trivia(trivia: Trivia) -> None:
    """A judge that is told to be a clinician looks for other faults than the rubric's author."""
    ran(trivia, AT_ENDPOINT)
    ran(trivia, AT_ANTHROPIC)

    sent = [*map(str, trivia.chats), *trivia.asked]
    assert (len(trivia.chats), len(trivia.asked)) == (N_QUERIES, N_QUERIES)
    assert all(read_instructions(None).guidance in text for text in trivia.asked)
    assert not [found[0] for text in sent if (found := MEDICAL.search(text))]
    assert MEDICAL.search("the same medical question, as a careful clinician")


def with_own_instructions(trivia: Trivia, keys: str, line: str) -> None:
    """Change one line of the instructions."""
    text = read_instructions(None).text.replace("- Length: more words are not more quality", line)
    assert line in text
    (trivia.folder / "judge.md").write_text(text, encoding="utf-8")
    trivia.set_judge(f'{keys}instructions = "judge.md"\n')


def test_one_changed_line_asks_every_query_again_and_a_plan_says_why(trivia: Trivia) -> None:
    """A bill that comes as a surprise is the last thing that a user wants."""
    ran(trivia, AT_ENDPOINT)
    assert json.loads(trivia.tourney("plan", "judge", "--json").out)["asked_again"] == []

    with_own_instructions(trivia, AT_ENDPOINT, "- Length: a short answer is enough")
    words = trivia.tourney("plan", "judge").out.splitlines()
    plan = json.loads(trivia.tourney("plan", "judge", "--json").out)

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


def test_a_juror_may_have_instructions_of_its_own(trivia: Trivia) -> None:
    """Another wording is tried on the same answers, before it judges alone."""
    ran(trivia, AT_ENDPOINT)
    juror = f'{AT_ENDPOINT}[[jury]]\nid = "brief"\ninstructions = "brief.md"\n{AT_ENDPOINT}'
    trivia.set_judge(juror.replace("pilot_model", "# pilot_model"))
    (trivia.folder / "brief.md").write_text("<!-- version: 1 -->\n\nBe brief.\n")
    judged = trivia.tourney("apply", "judge", "--judge", "brief", "--yes")
    assert judged.code == 0, judged.err

    sent = [str(body["messages"]) for body in trivia.chats]
    assert ["Be brief." in text for text in sent] == [False] * N_QUERIES + [True] * N_QUERIES
    assert json.loads(trivia.tourney("plan", "judge", "--json").out)["n_owed"] == 0
    compared = trivia.tourney("project", "compare-judges", "judge-70b", "brief")
    assert (compared.code, trivia.tourney("verify").code) == (0, 0), compared.err

    (trivia.folder / "brief.md").write_text("<!-- version: 2 -->\n\nBe very brief.\n")
    plan = json.loads(trivia.tourney("plan", "judge", "--judge", "brief", "--json").out)
    assert plan["n_owed"] == N_QUERIES
    assert [change["instructions_changed"] for change in plan["asked_again"]] == [True]
    assert json.loads(trivia.tourney("plan", "judge", "--json").out)["n_owed"] == 0

    assert trivia.tourney("plan", "generate").code == 0
    assert trivia.tourney("apply", "judge", "--judge", "brief", "--limit", "0", "--yes").code == 0
    unasked = trivia.tourney("project", "compare-judges", "judge-70b", "brief")
    assert unasked.code == 2
    assert "run `tourney apply judge --judge brief`, or name an earlier version: brief@1" in (
        unasked.err
    )
    (trivia.folder / "brief.md").write_text("")
    checked = trivia.tourney("doctor")
    assert checked.code == 1
    assert "not ready: instructions of [[jury]] 'brief'" in checked.err


def test_a_changed_rubric_is_told_likewise(trivia: Trivia) -> None:
    """Its queries are paid for again, too."""
    ran(trivia, AT_ENDPOINT)

    text = RUBRIC.replace("names what", "clearly names what")
    (trivia.folder / "truth.md").write_text(text, encoding="utf-8")
    words = trivia.tourney("plan", "judge").out.splitlines()
    applied = trivia.tourney("apply", "judge").err

    assert "the rubric of truth changed: 6 queries are asked again" in words
    assert "the rubric of truth changed: 6 queries are asked again" in applied


def test_edited_prompts_are_told_by_name(trivia: Trivia) -> None:
    """As instructions and rubrics are: which answers and verdicts are paid for again, and why."""
    ran(trivia, AT_ENDPOINT)
    bank = trivia.folder / "bank.jsonl"
    prompts = [json.loads(line) for line in bank.read_text(encoding="utf-8").splitlines()]
    first, second = (prompt["prompt_id"] for prompt in prompts[:2])

    prompts[0]["gold_answer"] = "corrected"
    prompts[1]["text"] += " Say why."
    bank.write_text("\n".join(map(json.dumps, prompts)), encoding="utf-8")
    generate = trivia.tourney("plan", "generate").out.splitlines()
    judge = trivia.tourney("plan", "judge").out.splitlines()

    text = f"the text of {second} changed: it is answered again"
    gold = f"the gold answer or expected behaviour of {first} changed: 2 queries are asked again"
    assert text in generate
    assert text in judge
    assert gold in judge
    assert not any(first in line for line in generate)


def test_the_ledger_alone_says_what_each_judge_was_told(trivia: Trivia) -> None:
    """Instructions, rubric and settings may be lost or edited; what was published must follow."""
    ran(trivia, AT_ENDPOINT)
    until = head_of(trivia.folder / "tournament.db").position
    before = outcomes(trivia.folder)
    with_own_instructions(trivia, AT_ENDPOINT, "- Length: a short answer is enough")
    assert trivia.tourney("run", "--yes").code == 0
    elsewhere = trivia.folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(trivia.folder / "tournament.db", elsewhere)

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


def test_the_request_to_an_endpoint_is_shown_as_it_arrives(trivia: Trivia) -> None:
    """Whoever writes a rubric wants to read what the judge reads, to the byte."""
    ran(trivia, AT_ENDPOINT)

    (row,) = json.loads(shown(trivia, "--json").out)["rows"]
    (sent,) = [body for body in trivia.chats if body == row["request"]]

    texts = [turn["content"] for turn in sent["messages"]]  # type: ignore[attr-defined]  # JSON
    assert texts == [row["system"], row["user"]]
    assert (row["dimension"], row["prompt"], row["order"]) == ("truth", "t2", "forward")


def test_the_request_to_anthropic_is_shown_as_it_arrives(trivia: Trivia) -> None:
    """Model, effort, cache and all."""
    ran(trivia, AT_ANTHROPIC)
    n_sent = len(trivia.anthropic.bill().lines)

    (row,) = json.loads(shown(trivia, "--json").out)["rows"]

    digests = [line.digest for line in trivia.anthropic.bill().lines]
    assert digest_of(row["request"]) in digests
    assert f"{row['system']}\n{row['user']}" in trivia.asked
    assert len(digests) == n_sent


def test_people_read_the_parameters_once_and_then_both_texts(trivia: Trivia) -> None:
    """Text of a model keeps its lines, and its invisible characters are spelt out."""
    ran(trivia, AT_ANTHROPIC)

    (row,) = json.loads(shown(trivia, "--json").out)["rows"]
    heading, _, rest = shown(trivia).out.partition("\n----- request -----\n")
    request, _, rest = rest.partition("\n----- system text -----\n")
    system, _, rest = rest.partition("\n----- user text -----\n")

    assert heading == (
        "truth: prompt t2, forward, small against large; judge claude-opus-5-5 (anthropic)"
    )
    assert json.loads(request)["messages"] == [{"role": "user", "content": "(the user text)"}]
    assert json.loads(request)["output_config"] == {"effort": "high"}
    assert system == row["system"]
    assert rest == row["user"].replace("\u2028", "\\u2028") + "\n----- end -----\n"


def test_a_judge_that_is_sent_no_request_says_so(trivia: Trivia) -> None:
    """The texts are shown all the same: a rubric may be written before a judge is chosen."""
    ran(trivia, AT_ENDPOINT).set_judge('provider = "reference"\n')

    (row,) = json.loads(shown(trivia, "--json").out)["rows"]
    text = shown(trivia).out

    assert row["request"] is None
    assert "no request is sent: this judge compares with gold answers" in text
    assert row["system"] in text


def test_a_prompt_that_is_not_there_is_a_usage_error(trivia: Trivia) -> None:
    """A typing error, with the nearest name."""
    trivia.set_judge(AT_ENDPOINT)

    done = trivia.tourney("plan", "judge", "--show-prompt", "t12")

    assert (done.code, done.out) == (2, "")
    assert "--show-prompt 't12' is not a prompt_id; did you mean" in done.err


def test_a_bank_without_gold_answers_is_told_why_nothing_is_judged(trivia: Trivia) -> None:
    """Zero pairs alone send nobody to the bank, where the answers are missing."""
    bank = trivia.folder / "bank.jsonl"
    prompts = map(json.loads, bank.read_text(encoding="utf-8").splitlines())
    lines = (json.dumps({**each, "gold_answer": None}) for each in prompts)
    bank.write_text("\n".join(lines), encoding="utf-8")
    trivia.set_judge(AT_ENDPOINT)

    done = [trivia.tourney(*words) for words in (("plan", "judge"), ("run",), ("apply", "judge"))]

    assert [each.code for each in done] == [0, 2, 2]
    why = "truth: nothing can be judged: the rubric needs gold answers, but no prompt has one; add"
    assert all(why in each.err for each in done)
