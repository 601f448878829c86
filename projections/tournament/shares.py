"""The share of the prompts that a judge is asked on, as the strong judge of a cascade.

Each prompt draws a number by the seed, whoever else is in the bank, and a judge is asked on those
whose number is below its share. So a larger share asks all that a smaller one does, a further
prompt leaves the earlier ones as they were, and of two judges the one with the smaller share is
asked on a part of the other's prompts. All pairs of a prompt are asked about, or none: prompts are
what intervals are clustered by.
"""

from collections.abc import Collection

from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, PromptId, drawn_by
from projections.tournament.state import Tournament


def share_of(tournament: Tournament, judge: JudgeSettings) -> float | None:
    """Return the share of the prompts that a judge is asked on; None: all of them."""
    jury = tournament.configuration.get("jury", ())
    shares = {juror["id"]: juror.get("share") for juror in jury}
    return shares.get(judge.judge_id)


def asked_prompts(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Collection[PromptId]:
    """Return those of some prompts that a judge is asked on."""
    share, opening = share_of(tournament, judge), tournament.opening
    if share is None or opening is None:
        return prompts
    chosen = frozenset(prompts)
    return frozenset(
        prompt.prompt_id
        for prompt in tournament.bank
        if prompt.prompt_id in chosen and _number(prompt.text, opening.generation_seed) < share
    )


def _number(text: str, seed: int) -> float:
    """Draw a prompt's number, in [0, 1)."""
    return drawn_by(["share", seed, text]) / 2.0**64


def stronger_judges(tournament: Tournament, judge: JudgeSettings) -> tuple[JudgeId, ...]:
    """Return the other judges that have a share of the prompts: each may correct this one."""
    others = (other for other in tournament.panel if other.judge_id != judge.judge_id)
    return tuple(each.judge_id for each in others if share_of(tournament, each) is not None)


def without_shares(tournament: Tournament) -> Tournament:
    """Return a tournament where every judge is asked on all prompts, whatever the settings say."""
    jury = tournament.configuration.get("jury", ())
    if all(juror.get("share") is None for juror in jury):
        return tournament  # with all that was computed of it
    return tournament.configured_as("jury", [juror | {"share": None} for juror in jury])


def outside_share(tournament: Tournament, judge: JudgeSettings) -> tuple[str, ...]:
    """Return a sentence on the prompts that a judge is not asked on, if it has a share."""
    share = share_of(tournament, judge)
    if share is None:
        return ()
    bank = [prompt.prompt_id for prompt in tournament.bank]
    n_asked = len(asked_prompts(tournament, bank, judge))
    asked = f"{judge.judge_id} is asked on {n_asked} of {len(bank)} prompts"
    return (f"share = {share:g}: {asked}, drawn by the seed; the others are not planned for it",)
