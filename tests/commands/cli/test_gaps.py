"""A run that ends without an outcome for every pair says so, and why."""

from pathlib import Path

from tests.commands.builders import lay_out
from tests.commands.cli.conftest import launch
from tests.openai_api.server import MODEL, FakeOpenAI, Said

SETTINGS = """\
[tournament]
id = "kept_back"

[[entrants]]
id = "greedy"
loader = "endpoint"
model = "{model}"
base_url = "{url}"

[[entrants]]
id = "sampled"
loader = "endpoint"
model = "{model}"
base_url = "{url}"
temperature = 0.7

[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"
"""


def test_a_run_without_a_response_does_not_say_that_all_are_there(tmp_path: Path) -> None:
    """Nothing is owed, and nothing is known either."""
    folder = lay_out(tmp_path)

    with FakeOpenAI(lambda _: Said("To", finish_reason="content_filter")) as fake:
        text = SETTINGS.format(model=MODEL, url=fake.url)
        (folder / "tournament.toml").write_text(text, encoding="utf-8")
        launch(folder, "run")
        again = launch(folder, "run")

    said = "nothing remains to be done, but 2 pairs have no outcome: 2 no_response"
    assert said in again.stderr.splitlines()
    assert "every response and verdict" not in again.stderr
    assert again.returncode == 6
