"""[[entrants]] and [[evaluations]]: what each kind takes, and what it refuses."""

from pathlib import Path

import pytest

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


def test_a_table_says_which_evaluation_and_on_what_terms() -> None:
    """Terms are the user's; parameters are the evaluation's own."""
    section = EvaluationSection(
        id="copying", uses="copying", length=7, temperature=0.5, parameters={"n_words": 3}
    )

    assert section.options == EvaluationOptions(length=7, temperature=0.5)
    assert type(section.options) is EvaluationOptions


def test_entrants_have_their_documented_defaults(tmp_path: Path) -> None:
    """Files written before there were other loaders go on as they are: these are plain weights.

    A Hydra has nine heads of three layers, as the product was published; a server is asked eight
    requests at a time.
    """
    base, _, poe, hosted = settings_in(tmp_path, MINIMAL + HYDRA + SERVED).entrants

    assert base == HfSection(id="base", loader="hf", weights=Path("weights/base"), adapters=())
    assert poe == HydraSection(
        id="poe",
        loader="hydra",
        weights=Path("weights"),
        security=Path("hydra/security"),
        robustness=None,
        rob_checkpoint=None,
        uncertainty=None,
        needs_uncertainty=False,
        bypass_jury=False,
        beta=1.0,
        temperature=None,
        max_new_tokens=None,
    )
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


def test_a_hydra_takes_all_that_it_is_asked(tmp_path: Path) -> None:
    """Each key reaches the entrant, and a checkpoint may be a step."""
    keys = {
        "robustness": ("'hydra/robustness'", "hydra/robustness"),
        "rob_checkpoint": ("50", 50),
        "uncertainty": ("'hydra/uncertainty'", "hydra/uncertainty"),
        "needs_uncertainty": ("true", True),
        "bypass_jury": ("true", True),
        "temperature": ("0.98", 0.98),
        "beta": ("0.5", 0.5),
        "max_new_tokens": ("40", 40),
    }
    added = "".join(f"{key} = {text}\n" for key, (text, _) in keys.items())

    poe = settings_in(tmp_path, MINIMAL + HYDRA + added).entrants[2]

    found = {key: value for key, (_, value) in keys.items()}
    assert poe.model_dump(mode="json").items() >= found.items()


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


def test_sections_that_are_made_already_are_taken_as_they_are() -> None:
    """Settings may be put together by a program, too."""
    poe = entrant_section("poe", loader="hydra", security="security")
    made = settings(entrants=[entrant_section("base"), poe])

    again = Settings(
        tournament=made.tournament, entrants=made.entrants, rubrics=made.rubrics, elo=made.elo
    )

    assert again == made


EVALUATION = "[[evaluations]]\nid = 'x'\nuses = 'x'\n"


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        (f"{HYDRA}bata = 3  #!", "'poe': unknown key 'bata'; did you mean 'beta'?"),
        (f"{HYDRA}adapters = ['x']  #!", "'poe': unknown key 'adapters'; it is for loader 'hf', a"),
        (f"{HYDRA}beta = 0  #!", "'poe': 'beta' is 0: must be above 0"),
        (
            f"{HYDRA}heads = 9  #!",
            "'poe': 'heads' was withdrawn; leave it out: there is a head for",
        ),
        (
            f"{HYDRA}heads_depth = 2  #!",
            "'poe': 'heads_depth' was withdrawn; leave it out: the sha",
        ),
        (f"{HYDRA}beta = inf  #!", "'poe': 'beta' is inf: must be a finite number"),
        (f"{HYDRA}rob_checkpoint = 50  #!", "'poe': 'rob_checkpoint' is 50: the folder of robustn"),
        (
            f"{HYDRA}robustness = 'x'\nrob_checkpoint = 0  #!",
            "'poe': 'rob_checkpoint' is 0: must be a step, or -1 for the final",
        ),
        (
            f"{HYDRA}robustness = 5  #!\nrob_checkpoint = -1",
            "'poe': 'robustness' is 5: must be a text",
        ),
        (
            f"{HYDRA}needs_uncertainty = true  #!",
            "'poe': 'needs_uncertainty' is True: the folder of uncertainty is left",
        ),
        (
            "[[entrants]]\nid = 'x'\nweights = 'x'\nsecurity = 'x'  #!",
            "'x': unknown key 'security'; it is for loader 'hydra', and this",
        ),
        (
            "[[entrants]]\nid = 'x'\nweights = 'x'\nloader = 'vllm'  #!",
            "'x': 'loader' is 'vllm': must be 'hf', 'hydra', 'endpoint' or 'recorded'",
        ),
        (
            "[[entrants]]  #!\nid='x'\nloader='hydra'\nweights='x'",
            "'x': 'security' is missing",
        ),
        (
            f"{SERVED}weights = 'x'  #!",
            "'hosted': unknown key 'weights'; it is for loader 'hf', an",
        ),
        (
            f"{SERVED}base_ulr = 'x'  #!",
            "'hosted': unknown key 'base_ulr'; did you mean 'base_url'?",
        ),
        (
            f"{SERVED}top_k = 5  #!",
            "'hosted': 'top_k' is 5: greedy decoding ignores it: set a temperature",
        ),
        (
            f'{SERVED}prompt_format = "Q:"  #!',
            "'hosted': 'prompt_format' is 'Q:': must have {prompt} once",
        ),
        (
            f"{SERVED}template_arguments = {{ tokenize = true }}  #!",
            "'hosted': 'template_arguments' is {'tokenize': True}: tourney sets tokenize itself",
        ),
        (
            f"{SERVED}extra_body = {{ seed = 1, stream = true }}  #!",
            "'hosted': 'extra_body' is {'seed': 1, 'stream': True}: tourney sets seed, stream its",
        ),
        (
            f"{SERVED}extra_body = {{ max_completion_tokens = 256 }}  #!",
            "'hosted': 'extra_body' is {'max_completion_tokens': 256}: set max_new_tokens instead:",
        ),
        (
            f'{SERVED}system = "be short"\ntemplate = "none"  #!',
            "'hosted': 'template' is 'none': without a chat template nothing reads system",
        ),
        (f"{EVALUATION}length = 0  #!", "'x': 'length' is 0: must be 1 or more"),
        (
            "[[evaluations]]\nid = 'a b'  #!\nuses = 'x'",
            "'a b': 'id' is 'a b': must have letters, digits, dots,",
        ),
        (
            "[[evaluations]]\nid = 'x'\nuses = ''  #!",
            "'x': 'uses' is '': must not be empty",
        ),
    ],
)
def test_a_fault_of_a_table_is_told_with_its_line(tmp_path: Path, added: str, fault: str) -> None:
    """Without the loader's name that pydantic puts into the place.

    Whoever sets what nothing would read believes that it counts.
    """
    text = f"{MINIMAL}{added}\n"
    line = 1 + text[: text.index("#!")].count("\n")
    section = "[[evaluations]]" if "[[evaluations]]" in added else "[[entrants]]"

    (found,) = faults_in(tmp_path, text)

    assert found.startswith(f"tournament.toml:{line}: {section} {fault}")


def test_faults_of_several_entrants_are_told_at_once(tmp_path: Path) -> None:
    """Of whatever loader, and of each all of its own."""
    text = f"{MINIMAL}{HYDRA}rob_checkpoint = 50\nbeta = 0\n[[entrants]]\nid = 'x'\nwieghts = 'x'\n"

    found = faults_in(tmp_path, text)

    assert [fault.split("'")[1:4:2] for fault in found] == [
        ["poe", "rob_checkpoint"],
        ["poe", "beta"],
        ["x", "weights"],
        ["x", "wieghts"],
    ]


def test_an_entrant_that_is_no_table_is_told(tmp_path: Path) -> None:
    """It has no loader that could be looked at."""
    text = f"entrants = ['base', 'tuned']\n{MINIMAL.replace('[[entrants]]', '[[others]]')}"

    found = faults_in(tmp_path, text)

    assert "tournament.toml:1: 'entrants.1' is 'base': must be a table" in str(found)
