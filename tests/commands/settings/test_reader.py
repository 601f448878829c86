"""Reading tournament.toml: defaults, the environment, and every fault with its place."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings.reader import read_settings
from commands.settings.schema import PilotSection, PromptsSection
from commands.settings.sections import HfSection, HydraSection
from ledger.events.ratings import BradleyTerryParameters, EloParameters
from ledger.identity import EntrantId
from tests.support.builders.commands import MINIMAL, faults_in, settings_in

ENTRANTS, RUBRICS = MINIMAL.index("[[entrants]]"), MINIMAL.index("[[rubrics]]")


def test_what_a_file_leaves_out_has_its_documented_default(tmp_path: Path) -> None:
    """Four lines of TOML are enough to begin; the page of settings has the others.

    Who says nothing more than a provider gets a cache, no needless question, and no cap.
    """
    settings = settings_in(tmp_path)

    judge = settings.judge
    assert settings.tournament.ledger == Path("tournament.db")
    assert settings.prompts == PromptsSection(bank="bank.jsonl")
    assert settings.pilot == PilotSection(size=50, seed=20260427, strata=None)
    assert (judge.provider, judge.retries) == ("reference", 1)
    assert (judge.cache, judge.concurrency) == ("5m", 8)
    assert (judge.max_usd, judge.prices, judge.base_url) == (None, None, None)
    assert settings.elo.parameters == EloParameters(k_sweep=(1, 4, 8, 16, 32), bootstraps=400)
    assert settings.bradley_terry.parameters == BradleyTerryParameters()
    assert (settings.evaluations, settings.jury) == ((), ())


def test_a_path_may_begin_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shells read `~`, so people write it; what names nobody stays as it is."""
    monkeypatch.setenv("HOME", "/home/me")
    text = """
[tournament]
id = "x"
ledger = "~/runs/x.db"
[prompts]
bank = "~nobody-of-this-name/bank.jsonl"
[judge]
prices = "~/prices.toml"
[[entrants]]
loader = "hf"
id = "a"
weights = "~/models/a"
adapters = ["~/adapters/b", "lab/c"]
[[entrants]]
loader = "hydra"
id = "b"
weights = "models/a"
security = "~/security"
[[rubrics]]
dimension = "factuality"
path = "~/rubric.md"
"""

    settings = settings_in(tmp_path, text)

    [entrant, hydra], [rubric], home = settings.entrants, settings.rubrics, Path("/home/me")
    assert isinstance(entrant, HfSection)
    assert isinstance(hydra, HydraSection)
    assert settings.tournament.ledger == home / "runs/x.db"
    assert settings.prompts.bank == "~nobody-of-this-name/bank.jsonl"
    assert settings.judge.prices == home / "prices.toml"
    assert (entrant.weights, rubric.path) == (home / "models/a", home / "rubric.md")
    assert entrant.adapters == (home / "adapters/b", Path("lab/c"))
    assert (hydra.weights, hydra.security) == (Path("models/a"), home / "security")


def test_sections_that_share_keys_share_no_values(tmp_path: Path) -> None:
    """Each juror has a name and settings of its own; so have Elo and Bradley-Terry."""
    juror = '[[jury]]\nid = "{}"\nprovider = "endpoint"\nmodel = "org/judge"\n'
    strengths = '[bradley_terry]\nanchor = "base"\nanchor_rating = 1200\nties = "davidson"\n'
    text = f"{MINIMAL}\n{juror.format('one')}effort = 'max'\n{juror.format('two')}{strengths}"

    settings = settings_in(tmp_path, text)

    jury = [(each.id, each.model, each.effort) for each in settings.jury]
    assert jury == [("one", "org/judge", "max"), ("two", "org/judge", None)]
    assert settings.bradley_terry.parameters == BradleyTerryParameters(
        ties="davidson", anchor=EntrantId("base"), anchor_rating=1200.0
    )
    assert settings.elo.ties == "drop"


def test_the_environment_overrules_the_file(tmp_path: Path) -> None:
    """One run in a hundred differs in one number; nobody should edit a file for it."""
    text = f"{MINIMAL}\n[elo]\nk = 24\n"
    environ = {
        "TOURNEY_ELO_K": "32",
        "TOURNEY_JUDGE_RETRIES": "3",
        "TOURNEY_GENERATION_DEVICE": "cuda:1",
        "TOURNEY_PROMPTS_BANK": "other.jsonl",
        "TOURNEY_ELO_K_SWEEP": "[8, 16]",
        "TOURNEY_JUDGE_MAX_USD": "2.5",
        "TOURNEY_JUDGE_PRICES": "mine.toml",
        "TOURNEY_JUDGE_PROVIDER": "endpoint",
        "TOURNEY_JUDGE_BASE_URL": "http://[::1]:8000/v1",
    }

    settings = settings_in(tmp_path, text, environ)

    assert (settings.elo.k, settings.elo.k_sweep) == (32, (8, 16))
    assert (settings.judge.retries, settings.judge.max_usd) == (3, 2.5)
    assert settings.judge.prices == Path("mine.toml")
    assert settings.judge.base_url == "http://[::1]:8000/v1"
    assert settings.generation.device == "cuda:1"
    assert settings.prompts.bank == "other.jsonl"


def test_other_variables_of_the_environment_do_not_matter(tmp_path: Path) -> None:
    """TOURNEY_LEDGER belongs to the command line, and most variables to other programs."""
    others = {"ELO_K": "1", "PATH": "/bin", "TOURNEY_PORT": "tcp://10.0.0.1:80"}
    settings = settings_in(tmp_path, environ={"TOURNEY_LEDGER": "x.db", **others})

    assert settings == settings_in(tmp_path)


OF_NO_SECTION = "names no key of a plain section: tour"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("TOURNEY_ELO_KK", "names no key of [elo]: k,"),
        ("TOURNEY_JUGDE_MAX_USD", OF_NO_SECTION),
        ("TOURNEY_MAX_USD", OF_NO_SECTION),
        ("TOURNY_JUDGE_MAX_USD", OF_NO_SECTION),
        ("TOURNEY_ELOK", OF_NO_SECTION),
        (
            "TOURNEY_TOURNAMENT_NETWORK_LEDGER",
            "names a key that was withdrawn; export TOURNEY_NETWORK_LEDGER=true on that machine",
        ),
    ],
)
def test_a_misspelt_variable_of_ours_is_refused(tmp_path: Path, name: str, why: str) -> None:
    """A cap on money that is passed over in silence is found on the bill."""
    (found,) = faults_in(tmp_path, environ={name: "0.1"})

    assert found.startswith(f"environment variable {name} {why}")
    assert found.endswith(("; correct or unset it", "on that machine"))


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("TOURNEY_ELO_K", "fast", "'elo.k' is 'fast': must be a number"),
        (
            "TOURNEY_BRADLEY_TERRY_ANCHOR",
            "nobody",
            "'bradley_terry.anchor' is 'nobody': not an entrant; known: base, tuned",
        ),
    ],
)
def test_a_fault_in_the_environment_names_the_variable(
    tmp_path: Path, name: str, value: str, fault: str
) -> None:
    """The user would look in vain at a line of the file."""
    (found,) = faults_in(tmp_path, f"{MINIMAL}\n[elo]\nk = 24\n", {name: value})

    assert found.startswith(f"{name}: {fault}")


SERVED = """
[[entrants]]
id = "{id}"
loader = "endpoint"
model = "default"
base_url = "{base_url}"
"""
FIRST = SERVED.format(id="fp16", base_url="http://a/v1")
CLAUDE = '[[entrants]]\nid = "opus"\nmodel = "anthropic/claude-opus-5-5"\n'


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        ("[judge]\nretires = 1  #!", "unknown key 'judge.retires'; did you mean 'retries'?"),
        ("[prompts]\nx = 1  #!", "unknown key 'prompts.x'; known here: bank"),
        ("[jugde]  #!\nretries = 1", "unknown key 'jugde'; did you mean 'judge'?"),
        ("[generation]\nbatch = true  #!", "'generation.batch' needs an entrant at Anthropic, as"),
        ("[elo]\nk = 0  #!", "'elo.k' is 0: must be above 0"),
        ("[elo]\nk = 1e7  #!", "'elo.k' is 10000000.0: must be at most 1,000,000"),
        ("[elo]\nk_sweep = [1, 'x']  #!", "'elo.k_sweep.2' is 'x': must be a number"),
        ("[elo]\ninitial_rating = -1e7  #!", "'elo.initial_rating' is -10000000.0: must be -1,00"),
        ("[elo]\npermutations = 100_000_000_000  #!", "'elo.permutations' is 100000000000: must"),
        ("[elo]\nbootstraps = 100_000_000_000  #!", "'elo.bootstraps' is 100000000000: must"),
        ("[elo]\nbootstraps = 39  #!", "'elo.bootstraps' is 39: a 95 % interval needs at least 4"),
        ("[bradley_terry]\nprior_sd = 1e-300  #!", "'bradley_terry.prior_sd' is 1e-300: must"),
        ("[bradley_terry]\nanchor_rating = 1e308  #!", "'bradley_terry.anchor_rating' is 1e+308:"),
        ("[bradley_terry]\nlevel = 0.9  #!", "'bradley_terry.level' was withdrawn; leave it out: "),
        (
            '[bradley_terry]\nanchor = "nobody"  #!',
            "'bradley_terry.anchor' is 'nobody': not an entrant; known: base, tuned",
        ),
        (
            '[bradley_terry]\ninterval = "bayesian"  #!',
            "'bradley_terry.interval' was withdrawn; leave it out: intervals are cluster-robust",
        ),
        ("[judge]\ngreedy = false  #!", "'judge.greedy' was withdrawn; leave it out: a server"),
        (
            "[judge]\nprovider = 'anthropic'\neffort = 'hgh'  #!",
            "'judge.effort' is 'hgh': Anthropic knows none, low, medium, high, xhigh, max",
        ),
        ("[judge]\nreasoning_effort = 'low'  #!", "'judge.reasoning_effort' was withdrawn; call"),
        (
            "[[jury]]\nid = 'j'\nmodel = 'openai/m'\ntie_band = 2.0  #!",
            "[[jury]] 'j': 'tie_band' was withdrawn; leave it out: responses",
        ),
        ("[judge]\ntie_band = 2.0  #!", "'judge.tie_band' was withdrawn; leave it out: responses"),
        ("[judge]\nskip_identical = false  #!", "'judge.skip_identical' was withdrawn; leave it"),
        ("[judge]\nrevision = 'v1'  #!", "'judge.revision' was withdrawn; write it behind the"),
        (
            "[[entrants]]\nid = 'c'\nweights = 'o/n'\nrevision = 'v1'  #!",
            "[[entrants]] 'c': 'revision' was withdrawn; write it behind the name, as weights = ",
        ),
        ("[judge]\npoll_s = 1  #!", "'judge.poll_s' was withdrawn; leave it out: batches are"),
        (
            "[[evaluations]]\nid = 'x'\nuses = 'x'\nchunk_size = 7  #!",
            "[[evaluations]] 'x': 'chunk_size' was withdrawn; leave it out: 200 samples",
        ),
        ("[pilot]\nsize = 1.5  #!", "'pilot.size' is 1.5: must be a whole number"),
        ("[generation]\ndtype = 'int8'  #!", "'generation.dtype' is 'int8': must be 'float32', "),
        ("[generation]\ndevice = 'gpu'  #!", "'generation.device' is 'gpu': must be auto, cpu,"),
        ("[generation]\nsamples = 2  #!", "'generation.samples' is 2, but greedy decoding gives "),
        ("[judging]\nsparse = 2  #!", "'judging.sparse' is 2: 2 entrants have 1 pair; leave it"),
        ("[judging]\nlooks = 1  #!", "'judging.looks' is 1: must be a whole number, 2 to 20, or"),
        (
            "[judging]\nbaseline = 'base'\nsparse = 1  #!",
            "'judging.sparse' and 'judging.baseline' are both set; leave one out",
        ),
        ("[[rubrics]]  #!\ndimension = 'x'", "[[rubrics]] 'x': 'path' is missing"),
        ("[[entrants]]  #!\nweights = 'x'", "[[entrants]] 3: 'id' is missing"),
        ("[[evaluations]]  #!\nid = 'x'", "[[evaluations]] 'x': 'uses' is missing"),
        (
            "[[entrants]]\nid = 'c'\nmodle = 'x'  #!",
            "[[entrants]] 'c': unknown key 'modle'; did you mean 'model'?",
        ),
        ("[judge]\nprovider = 'openai'  #!", "'judge.provider' is 'openai': must be 'reference"),
        ("[judge]\ncache = '2h'  #!", "'judge.cache' is '2h': must be '5m', '1h' or 'off'"),
        ("[judge]\nextra_body = { n = 4 }  #!", "'judge.extra_body' is {'n': 4}: tourney sets n"),
        (
            "[judge]\nextra_body = { reasoning_effort = 'low' }  #!",
            "'judge.extra_body' is {'reasoning_effort': 'low'}: set effort instead",
        ),
        ("[judge]\nid = 'x'  #!", "'judge.id' is for [[jury]]: [judge] has the name of its model"),
        ("[judge]\nshare = 0.3  #!", "'judge.share' is for [[jury]]: [judge] is asked on all pr"),
        ("[[jury]]  #!\nid = 'x'", "[[jury]] 'x': 'model' is missing"),
        ("[[jury]]  #!\nmodel = 'x'", "[[jury]] 1: 'id' is missing"),
        (
            "[[jury]]\nid = 'x'\nmodel = 'x'\nretries = 2  #!",
            "[[jury]] 'x': 'retries' is a key of [judge] only",
        ),
        (
            "[[jury]]\nid = 'x'\nmodel = 'x'\n[[jury]]\nid = 'x'  #!\nmodel = 'y'",
            "[[jury]] id 'x' is there twice",
        ),
        ("[[entrants]]\nid = 'base'  #!\nweights = 'x'", "[[entrants]] id 'base' is there twice"),
        ("[[rubrics]]\ndimension = 'factuality'  #!\npath = 'x'", "[[rubrics]] dimension 'factua"),
        (
            "[[evaluations]]\nid = 'x'\nuses = 'x'\n[[evaluations]]\nid = 'x'  #!\nuses = 'y'",
            "[[evaluations]] id 'x' is there twice",
        ),
        (
            FIRST + SERVED.format(id="int8", base_url="http://b/v1").rstrip() + "  #!",
            "[[entrants]] 'int8': 'base_url' is 'http://b/v1': entrants 'fp16' and 'int8' diff",
        ),
        *(
            (
                f"{CLAUDE}{line}  #!",
                f"[[entrants]] 'opus': {key!r} is {value}, and Anthropic's {why}",
            )
            for line, key, value, why in (
                ("temperature = 0.7", "temperature", 0.7, "API has no temperature: set it to 1, "),
                ("temperature = 1.0\ntop_p = 0.9", "top_p", 0.9, "API has no top_p: leave it out"),
                ("temperature = 1.0\nmin_p = 0.1", "min_p", 0.1, "API has no min_p: leave it out"),
                ('template = "none"', "template", "'none'", "API has no template: leave it out"),
                ("template_arguments = { a = 1 }", "template_arguments", {"a": 1}, "API has no te"),
                (
                    "repetition_penalty = 1.2",
                    "repetition_penalty",
                    1.2,
                    "API has no repetition_pen",
                ),
            )
        ),
    ],
)
def test_each_kind_of_fault_is_told_with_its_line(tmp_path: Path, added: str, fault: str) -> None:
    """A message that names the line is one that needs no search."""
    text = f"{MINIMAL}\n{added}\n"
    line = 1 + text[: text.index("#!")].count("\n")

    found = faults_in(tmp_path, text)

    assert any(each.startswith(f"tournament.toml:{line}: {fault}") for each in found), found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (MINIMAL[ENTRANTS:], "tournament.toml:1: 'tournament' is missing"),
        (MINIMAL[:RUBRICS], "tournament.toml:1: 'rubrics' is missing"),
        (MINIMAL[:ENTRANTS] + MINIMAL[RUBRICS:], "tournament.toml:1: 'entrants' is missing"),
        (
            MINIMAL.replace('"main"\n', '"main"\ndescription = ""\n'),
            "tournament.toml:3: 'tournament.description' was withdrawn; write it as a comment",
        ),
        (MINIMAL.replace('"main"', '"a b"'), "tournament.toml:2: 'tournament.id' is 'a b'"),
    ],
)
def test_a_section_that_must_be_there_is_missed(tmp_path: Path, text: str, fault: str) -> None:
    """There is no default tournament, entrant or rubric that could pass for the user's."""
    (found,) = faults_in(tmp_path, text)

    assert found.startswith(fault)


@pytest.mark.parametrize(
    ("base_url", "changed"),
    [
        ("http://b/v1", 'revision = "int8"'),
        ("http://b/v1", "temperature = 0.5"),
        ("http://b/v1", "max_new_tokens = 8"),
        ("http://a/v1", ""),
    ],
)
def test_what_is_told_apart_may_have_servers_of_its_own(
    tmp_path: Path, base_url: str, changed: str
) -> None:
    """Weights that differ are served apart; at one server it is truly the same entrant."""
    second = SERVED.format(id="int8", base_url=base_url) + changed

    assert len(settings_in(tmp_path, MINIMAL + FIRST + second).entrants) == 4


def test_one_entrant_alone_is_no_tournament(tmp_path: Path) -> None:
    """There would be nothing to compare it with."""
    second = MINIMAL.rindex("[[entrants]]")

    (found,) = faults_in(tmp_path, MINIMAL[:second] + MINIMAL[RUBRICS:])

    assert found == "tournament.toml:4: a tournament needs 2 or more [[entrants]]; there is 1"


def test_all_faults_are_told_at_once_and_only_they(tmp_path: Path) -> None:
    """Mending one fault a run is slow; a fault that only follows from another misleads."""
    text = MINIMAL.replace("weights =", "wieghts =") + "\n[judge]\nretries = -1\n"

    found = faults_in(tmp_path, text)

    assert [fault.partition(": ")[0] for fault in found] == [
        "tournament.toml:4",
        "tournament.toml:6",
        "tournament.toml:8",
        "tournament.toml:10",
        "tournament.toml:17",
    ]


def test_a_file_that_cannot_be_read_is_no_traceback(tmp_path: Path) -> None:
    """None at all, as a newcomer has it; a folder; another encoding; a missing quotation mark."""
    latin, broken = tmp_path / "latin.toml", tmp_path / "broken.toml"
    latin.write_bytes(b"# caf\xe9\n")
    broken.write_text('[tournament]\nid = "main\n')

    for path, why in (
        (tmp_path / "none.toml", "there is no such file; name one with --config"),
        (tmp_path, "cannot be read: "),
        (latin, r"latin\.toml: cannot be read: "),
        (broken, r"broken\.toml:2: not TOML: .*column"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            read_settings(path, {})


@pytest.mark.parametrize("table", ["[judge]", "[[jury]]\nid = 'x'\nmodel = 'x'"])
def test_a_key_where_its_variables_name_belongs_is_not_quoted(tmp_path: Path, table: str) -> None:
    """The message goes to terminals and issues, and the key with it."""
    (fault,) = faults_in(tmp_path, f"{MINIMAL}\n{table}\napi_key_env = 'sk-proj-canary'\n")

    assert "api_key_env' is not the name of an environment variable" in fault
    assert "canary" not in fault


def test_anthropics_models_may_be_asked_several_times(tmp_path: Path) -> None:
    """They answer at temperature 1, so each sample is another."""
    several = MINIMAL.replace("\nweights", "\ntemperature = 0.7\nweights")
    text = f"{several}{CLAUDE}temperature = 1.0\n[generation]\nsamples = 2\n"

    assert settings_in(tmp_path, text).generation.samples == 2
