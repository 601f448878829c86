"""All answers to a prompt, and who beat whom."""

from commands.report.answers import AnswerGrid, grids_of
from commands.report.battles import WhichBattles, battles_of
from ledger.events.registry import Event
from projections.results.ratings import FragilityRow
from tests.support.builders.events import known, opened, prompt, responses
from tests.support.builders.reports import subject
from tests.support.builders.worlds import A, B, Fate, become, court, cup, heard, history, matches_of

WON: tuple[Fate, ...] = ("a",) * 6
DECISIVE = FragilityRow("factuality", "zoe", "amy", 12.0, 1, 2, ("p2", None))


def grids(
    *events: Event,
    which: WhichBattles = "all",
    fragile: tuple[FragilityRow, ...] = (),
) -> list[AnswerGrid]:
    """Return the answers that a report on events shows."""
    about = subject(*events)
    is_sample = which == "sample"
    return grids_of(about, battles_of(about, which), fragile, is_sample=is_sample)


def test_whoever_won_most_on_the_prompt_comes_first() -> None:
    """The row's outcome against the column is the opposite of the column's against the row."""
    (found,) = grids(*history(cup(1), "b", "tie", "a"))

    assert [(each.entrant, each.won, each.lost, each.tied) for each in found.answers] == [
        *(("amy", 2, 0, 0), ("zoe", 0, 1, 1), ("kim", 0, 1, 1)),
    ]
    ((dimension, outcomes),) = found.outcomes
    assert (dimension, outcomes.columns) == ("factuality", ("amy", "zoe", "kim"))
    assert [[cell and (cell.text, cell.shade) for cell in row] for row in outcomes.cells] == [
        [None, ("won", 5), ("won", 5)],
        [("lost", -5), None, ("tie", 0)],
        [("lost", -5), ("tie", 0), None],
    ]
    assert (found.prompt.turns[0].text, found.gold, found.marks) == ("Question p1?", "aspirin", ())


def test_prompts_that_are_worth_a_look_come_first_and_say_why() -> None:
    """Where all agree there is less to learn."""
    differing = grids(*heard(court(2), [A, A, A, A, A, A], [A, A, A, A, B, A]))
    decisive = grids(*history(cup(), *WON), fragile=(DECISIVE,))
    unsure = grids(*history(cup(), *WON[1:], "inconsistent"))

    marks = [[(each.prompt_id, each.marks) for each in some] for some in (differing, decisive)]
    assert marks == [
        [("p2", ("judges differ",)), ("p1", ())],
        [("p2", ("decisive",)), ("p1", ())],
    ]
    assert [each.marks for each in unsure] == [("orders differ",), ()]


def test_a_sample_has_few_prompts_and_cut_texts() -> None:
    """The page stays small; with all battles it has all answers, whole."""
    opening = opened(prompts=[prompt(f"p{n}") for n in range(9)])
    long = {"base": "x" * 5_000, "tuned": "y"}
    texts = {(name, f"p{n}"): text for n in range(9) for name, text in long.items()}
    answered = (*opening, *responses(known(*opening), texts))
    outcomes = (each for match in matches_of(known(*answered)) for each in become(match, "a"))
    events = (*answered, *outcomes)

    some, every = grids(*events, which="sample"), grids(*events)

    assert (len(some), len(every)) == (5, 9)
    (cut, *_), (whole, *_) = some[0].answers, every[0].answers
    assert (len(cut.text.turns[0].text), cut.text.n_left_out) == (800, 4_200)
    assert (len(whole.text.turns[0].text), whole.text.n_left_out) == (5_000, 0)
