"""[[entrants]] and [[evaluations]]: what each kind takes, and what it refuses."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from commands.settings.schema import Settings
from commands.settings.sections import (
    EndpointSection,
    EvaluationOptions,
    EvaluationSection,
    HfSection,
    HydraSection,
)
from tests.support.builders.commands import (
    MINIMAL,
    entrant_section,
    faults_in,
    settings,
    settings_in,
)


def test_a_table_says_which_evaluation_and_on_what_terms() -> None:
    """Terms are the user's; parameters are the evaluation's own."""
    section = EvaluationSection(
        id="copying", uses="copying", length=7, temperature=0.5, parameters={"n_words": 3}
    )

    assert section.options == EvaluationOptions(length=7, temperature=0.5)
    assert type(section.options) is EvaluationOptions


@pytest.mark.parametrize("wrong", [{"id": "a b"}, {"uses": ""}, {"length": 0}])
def test_a_label_is_a_word_and_a_length_a_number_of_items(wrong: dict[str, object]) -> None:
    """Labels are typed behind options, and a run on no items measures nothing."""
    table = {"id": "copying", "uses": "copying", **wrong}

    with pytest.raises(ValidationError) as caught:
        EvaluationSection.model_validate(table)

    assert [error["loc"] for error in caught.value.errors()] == [tuple(wrong)]


HYDRA = """\
[[entrants]]
id = "poe"
loader = "hydra"
weights = "weights"
security = "hydra/security"
"""
SERVED = """\
[[entrants]]
id = "hosted"
loader = "endpoint"
model = "org/large"
base_url = "http://localhost:8000/v1"
"""


def test_a_hydra_has_its_documented_defaults(tmp_path: Path) -> None:
    """Nine heads of three layers that draft four tokens: as the product was published."""
    poe = settings_in(tmp_path, MINIMAL + HYDRA).entrants[2]

    assert poe == HydraSection(
        id="poe",
        loader="hydra",
        weights=Path("weights"),
        security=Path("hydra/security"),
        heads=9,
        heads_depth=3,
        robustness=None,
        rob_checkpoint=None,
        uncertainty=None,
        needs_uncertainty=False,
        bypass_jury=False,
        beta=1.0,
        temperature=None,
        max_new_tokens=None,
    )


def test_a_hydra_takes_all_that_it_is_asked(tmp_path: Path) -> None:
    """Each key reaches the entrant, and a checkpoint may be a step."""
    keys = {
        "robustness": "'hydra/robustness'",
        "rob_checkpoint": "50",
        "uncertainty": "'hydra/uncertainty'",
        "needs_uncertainty": "true",
        "bypass_jury": "true",
        "temperature": "0.98",
        "beta": "0.5",
        "heads": "3",
        "heads_depth": "2",
        "max_new_tokens": "40",
    }
    added = "".join(f"{key} = {value}\n" for key, value in keys.items())

    poe = settings_in(tmp_path, MINIMAL + HYDRA + added).entrants[2]

    assert (
        poe.model_dump(mode="json").items()
        >= {
            "robustness": "hydra/robustness",
            "rob_checkpoint": 50,
            "uncertainty": "hydra/uncertainty",
            "needs_uncertainty": True,
            "bypass_jury": True,
            "temperature": 0.98,
            "beta": 0.5,
            "heads": 3,
            "heads_depth": 2,
            "max_new_tokens": 40,
        }.items()
    )


def test_what_a_server_serves_is_named_by_the_server(tmp_path: Path) -> None:
    """Where the weights lie is the server's business; eight requests wait there at a time."""
    hosted = settings_in(tmp_path, MINIMAL + SERVED).entrants[2]

    assert hosted == EndpointSection(
        id="hosted",
        loader="endpoint",
        model="org/large",
        base_url="http://localhost:8000/v1",
        revision=None,
        concurrency=8,
        temperature=None,
        max_new_tokens=None,
    )


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        (
            "weights = 'weights'",
            "[[entrants]] 'hosted': unknown key 'weights'; it is for loader 'hf', and this",
        ),
        (
            "base_ulr = 'x'",
            "[[entrants]] 'hosted': unknown key 'base_ulr'; did you mean 'base_url'?",
        ),
        (
            "revision = ''",
            "[[entrants]] 'hosted': 'revision' is '': must not be empty",
        ),
        (
            "concurrency = 0",
            "[[entrants]] 'hosted': 'concurrency' is 0: must be 1 or more",
        ),
    ],
)
def test_a_fault_of_a_served_entrant_is_told(tmp_path: Path, added: str, fault: str) -> None:
    """Somebody who changes the loader forgets the folder."""
    (found,) = faults_in(tmp_path, f"{MINIMAL}{SERVED}{added}\n")

    assert fault in found


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("localhost:8000/v1", "is 'localhost:8000/v1', but "),
        ("https://key:word@host/v1", ""),
        ("https://host/v1?key=word", ""),
        ("https://host/v1#word", ""),
    ],
)
def test_an_address_is_one_and_holds_no_key(tmp_path: Path, url: str, shown: str) -> None:
    """Settings are recorded, and a ledger is shown to others; so are messages."""
    (found,) = faults_in(tmp_path, MINIMAL + SERVED.replace("http://localhost:8000/v1", url))

    assert found == (
        f"tournament.toml:19: [[entrants]] 'hosted': 'base_url' {shown}must be an address such as"
        " http://localhost:8000/v1, without a user name, password or query; export the key in the"
        " variable that 'api_key_env' names"
    )


def test_an_entrant_is_plain_weights_unless_it_says_more(tmp_path: Path) -> None:
    """Files written before there were other loaders go on as they are."""
    base = settings_in(tmp_path).entrants[0]

    assert base == HfSection(id="base", loader="hf", weights=Path("weights/base"), adapters=())


def test_sections_that_are_made_already_are_taken_as_they_are() -> None:
    """Settings may be put together by a program, too."""
    poe = entrant_section("poe", loader="hydra", security="security")
    made = settings(entrants=[entrant_section("base"), poe])

    again = Settings(
        tournament=made.tournament, entrants=made.entrants, rubrics=made.rubrics, elo=made.elo
    )

    assert again == made


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        ("bata = 3  #!", "[[entrants]] 'poe': unknown key 'bata'; did you mean 'beta'?"),
        (
            "adapters = ['x']  #!",
            "[[entrants]] 'poe': unknown key 'adapters'; it is for loader 'hf', and",
        ),
        ("beta = 0  #!", "[[entrants]] 'poe': 'beta' is 0: must be above 0"),
        (
            "heads = 1  #!",
            "[[entrants]] 'poe': 'heads' is 1: must be 2 or more",
        ),
        (
            "heads_depth = 0  #!",
            "[[entrants]] 'poe': 'heads_depth' is 0: must be 1 or more",
        ),
        ("beta = inf  #!", "[[entrants]] 'poe': 'beta' is inf: must be a finite number"),
        (
            "temperature = -0.98  #!",
            "[[entrants]] 'poe': 'temperature' is -0.98: must be above 0",
        ),
        (
            "max_new_tokens = 0  #!",
            "[[entrants]] 'poe': 'max_new_tokens' is 0: must be above 0",
        ),
        (
            "rob_checkpoint = 50  #!",
            "[[entrants]] 'poe': 'rob_checkpoint' is 50: the folder of robustness",
        ),
        (
            "robustness = 'x'\nrob_checkpoint = 0  #!",
            "[[entrants]] 'poe': 'rob_checkpoint' is 0: must be a step, or -1 for the final",
        ),
        (
            "robustness = 'x'\nrob_checkpoint = -2  #!",
            "[[entrants]] 'poe': 'rob_checkpoint' is -2: must be a step, or -1 for the final",
        ),
        (
            "robustness = 5  #!\nrob_checkpoint = -1",
            "[[entrants]] 'poe': 'robustness' is 5: must be a text",
        ),
        (
            "needs_uncertainty = true  #!",
            "[[entrants]] 'poe': 'needs_uncertainty' is True: the folder of uncertainty is left",
        ),
        (
            "[[entrants]]\nid = 'x'\nweights = 'x'\nsecurity = 'x'  #!",
            "[[entrants]] 'x': unknown key 'security'; it is for loader 'hydra', and this",
        ),
        (
            "[[entrants]]\nid = 'x'\nweights = 'x'\nloader = 'vllm'  #!",
            "[[entrants]] 'x': 'loader' is 'vllm': must be 'hf', 'hydra', 'endpoint' or 'recorded'",
        ),
        (
            "[[entrants]]  #!\nid='x'\nloader='hydra'\nweights='x'",
            "[[entrants]] 'x': 'security' is missing",
        ),
    ],
)
def test_a_fault_of_an_entrant_is_told_with_its_line(
    tmp_path: Path, added: str, fault: str
) -> None:
    """Without the loader's name that pydantic puts into the place."""
    text = f"{MINIMAL}{HYDRA}{added}\n"
    line = 1 + text[: text.index("#!")].count("\n")

    (found,) = faults_in(tmp_path, text)

    assert found.startswith(f"tournament.toml:{line}: {fault}")


def test_faults_of_several_entrants_are_told_at_once(tmp_path: Path) -> None:
    """Of whatever loader, and of each all of its own."""
    text = f"{MINIMAL}{HYDRA}heads = 1\nbeta = 0\n[[entrants]]\nid = 'x'\nwieghts = 'x'\n"

    found = faults_in(tmp_path, text)

    assert [fault.split("'")[1:4:2] for fault in found] == [
        ["poe", "heads"],
        ["poe", "beta"],
        ["x", "weights"],
        ["x", "wieghts"],
    ]


def test_an_entrant_that_is_no_table_is_told(tmp_path: Path) -> None:
    """It has no loader that could be looked at."""
    text = f"entrants = ['base', 'tuned']\n{MINIMAL.replace('[[entrants]]', '[[others]]')}"

    found = faults_in(tmp_path, text)

    assert "tournament.toml:1: 'entrants.1' is 'base': must be a table" in str(found)


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        ("top_k = 5", "greedy decoding ignores it: set a temperature"),
        ('prompt_format = "Q:"', "must have {prompt} once"),
        ("template_arguments = { tokenize = true }", "tourney sets tokenize itself"),
        ("extra_body = { seed = 1, stream = true }", "tourney sets seed, stream itself"),
        (
            "extra_body = { max_completion_tokens = 256 }",
            "set max_new_tokens instead: tourney sends it under the name that the server takes",
        ),
        (
            'system = "be short"\ntemplate = "none"',
            "without a chat template nothing reads system",
        ),
    ],
)
def test_a_setting_that_nothing_would_read_is_refused(
    tmp_path: Path, added: str, fault: str
) -> None:
    """Who sets it believes that it counts."""
    (found,) = faults_in(tmp_path, f"{MINIMAL}{SERVED}{added}\n")

    assert fault in found
