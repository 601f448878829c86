"""Say why there is no verdict, and what to do: no answer, unreadable replies, no gold answer."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from commands.errors import counted
from commands.ports import Tell
from ledger.events.judging import MAY_CHANGE, PAID, JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId
from projections.tournament.matches import queries_to
from projections.tournament.remaining import WithoutGold, without_gold
from projections.tournament.state import Tournament
from projections.verdicts.parsers import LENIENT_PARSER, PARSERS

_SHOWN: Final = 100  # characters of a reply; the verdict should stand at its end


def tell_unreadable(
    state: Tournament, prompts: Collection[PromptId], judge: JudgeSettings, tell: Tell
) -> None:
    """Tell why queries have no verdict, if any: no answer came, or the reply is not readable."""
    keys = {query.query_key for query in queries_to(state, prompts, judge)}
    _tell_unanswered(_failures(state, keys), judge, tell)
    if unreadable := _tell_example(state, keys, judge, tell, "verdict"):
        tell(_remedy(state, judge, unreadable))


def tell_without_gold(state: Tournament, prompts: Collection[PromptId], tell: Tell) -> None:
    """Tell which dimensions leave out prompts that have no gold answer."""
    for note in gold_notes(without_gold(state, prompts)):
        tell(note)


def gold_notes(dimensions: Iterable[WithoutGold]) -> Iterator[str]:
    """Say how many prompts each dimension leaves out, and what to do where these are all."""
    for dimension, n_out, n_asked in dimensions:
        if 0 < n_out < n_asked:
            lacking = counted(n_out, "prompt has no gold answer", "prompts have no gold answer")
            yield f"{dimension}: {lacking}, and {'is' if n_out == 1 else 'are'} left out"
        elif n_out:
            yield (
                f"{dimension}: nothing can be judged: the rubric needs gold answers, but no prompt"
                " has one; add gold_answer to the prompts, or set needs_gold = false in the rubric"
            )


def tell_unscored(
    state: Tournament, keys: Collection[Digest], judge: JudgeSettings, tell: Tell
) -> None:
    """Tell likewise of replies without a readable score."""
    if unreadable := _tell_example(state, keys, judge, tell, "score"):
        tell(f"ask again: `tourney apply evaluate --retry {_reasons(unreadable)}`")


def _tell_example(
    state: Tournament, keys: Collection[Digest], judge: JudgeSettings, tell: Tell, wanted: str
) -> Sequence[JudgeQueryFailed]:
    """Tell how many replies are unreadable, and show one; return them."""
    failures = _failures(state, keys)
    unreadable = [each for each in failures if each.reason in MAY_CHANGE]
    if unreadable:
        n_read = sum(map(state.is_answered, keys))
        n_replies = n_read + sum(each.reason in PAID for each in failures)
        example = max(unreadable, key=lambda each: (len(each.reply) > 0, each.query_key))
        tell(
            f"{len(unreadable)} of {counted(n_replies, 'reply', 'replies')} of"
            f" {judge.judge_id!r} hold no readable {wanted}; one of them {_shown(example.reply)}"
        )
    return unreadable


def _failures(state: Tournament, keys: Collection[Digest]) -> Sequence[JudgeQueryFailed]:
    """Return the failures of queries that were not answered since, by key."""
    failed = (key for key in sorted(keys) if key in state.query_failures)
    return [state.query_failures[key] for key in failed if not state.is_answered(key)]


def _tell_unanswered(
    failures: Sequence[JudgeQueryFailed], judge: JudgeSettings, tell: Tell
) -> None:
    errored = [each for each in failures if each.reason == "errored"]
    if errored:
        tell(
            f"{counted(len(errored), 'query', 'queries')} to {judge.judge_id!r} got no answer;"
            f" one error: {errored[0].detail!r}; the next `tourney apply judge` asks again"
        )


def _shown(reply: str) -> str:
    """Return the end of a reply on one line; whoever prints it escapes hidden characters."""
    line = " ".join(reply.split())
    if not line:
        return "is empty"
    return f"reads {line!r}" if len(line) <= _SHOWN else f"ends with {line[-_SHOWN:]!r}"


def _remedy(state: Tournament, judge: JudgeSettings, unreadable: Sequence[JudgeQueryFailed]) -> str:
    """Return how to read the replies by another rule, and how to ask again."""
    n_read = {
        name: sum(read(each.reply) is not None for each in unreadable)
        for name, read in PARSERS.items()
        if name != LENIENT_PARSER  # it takes whatever it cannot read for a tie
    }
    parser = max(n_read, key=lambda name: n_read[name])
    lenient = LENIENT_PARSER.partition("@")[0]
    named = f" --judge {judge.judge_id}" if len(state.panel) > 1 else ""
    again = f"ask again: `tourney apply judge{named} --retry {_reasons(unreadable)}`"
    if not n_read[parser]:
        return f"no --parser can read them ({lenient} counts them as ties); {again}"
    name = parser.partition("@")[0]
    return f"read {n_read[parser]} of them: `tourney project elo{named} --parser {name}`; {again}"


def _reasons(unreadable: Sequence[JudgeQueryFailed]) -> str:
    """Return why they failed, as --retry takes it."""
    return ",".join(sorted({each.reason for each in unreadable}))
