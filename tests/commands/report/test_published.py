"""The report for other places: a data set's card, and what a tracker is told."""

from huggingface_hub import DatasetCard

from commands.report.published import card_of, tracked_run
from tests.support.builders.events import entrant, opened, prompt
from tests.support.builders.reports import HOSTILE, subject
from tests.support.builders.worlds import cup, history


def test_a_card_names_its_files_and_shows_the_ratings() -> None:
    """What the Hub reads stands in front."""
    card = DatasetCard(card_of(subject(*history(cup(), "a", "b"))))

    assert [each["data_files"] for each in card.data["configs"]] == [
        "battles.parquet",
        "responses.parquet",
    ]
    assert "| Rank | Entrant | Rating |" in card.text


def test_a_run_has_ratings_with_intervals_and_the_report() -> None:
    """Under names that a tracker takes, whatever an entrant is called."""
    names = [entrant(HOSTILE[0]), entrant("b")]
    prompts = [prompt(f"p{n}") for n in range(10)]
    known = subject(*history(opened(prompts=prompts, entrants=names), *"ab" * 5))

    run = tracked_run(known, None)

    low, rating, high = (run.metrics[f"factuality/b/{each}"] for each in ("low", "rating", "high"))
    assert low < rating < high
    assert "factuality/_script_alert_1__/script_/elo" in run.metrics
    assert run.name == f"{run.project}@{known.head.position}"
    assert sorted(run.files) == ["report.html", "report.md"]
    assert tracked_run(known, "mine").name == "mine"
