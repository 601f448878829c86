"""Say why there is no verdict, and what to do: no answer, unreadable replies, no gold answer.

A judge whose replies hold nothing readable is stopped.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from commands.errors import NothingReadable, counted
from commands.ports import Tell
from ledger.events.judging import MAY_CHANGE, PAID, JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId
from projections.tournament.matches import keys_of
from projections.tournament.remaining import WithoutGold, without_gold
from projections.tournament.state import Tournament
from projections.verdicts.parsers import LENIENT_PARSER, PARSERS, newest_parser

_SHOWN: Final = 100  # characters of a reply; the verdict should stand at its end
_IN_A_ROW: Final = 16  # replies without anything readable, before no more are paid for
_LATEST: Final = 50  # likewise if over half of so many are
_SAYS_NOTHING: Final = MAY_CHANGE | {"truncated"}  # a refusal is about one prompt, not the judge


class ReadingBrake:
    """Stops a judge whose replies, in the order of recording, hold nothing readable.

    A query counts once, by its latest reply: a hard one that is repeated says nothing of others.
    """

    def __init__(self, judge: JudgeSettings, wanted: str) -> None:
        """Take the judge, and what a reply should hold: a verdict or a score."""
        self._judge, self._wanted = judge, wanted
        self._latest: dict[Digest, JudgeQueryFailed | None] = {}  # None: it was read
        self._noted: set[Digest] = set()  # those before, too
        self._judge_option = ""  # for the command that reads the replies by another rule

    def note(self, state: Tournament, keys: Iterable[Digest]) -> None:
        """Note what the latest replies to requests hold; one without a reply says nothing."""
        self._judge_option = _judge_option(state, self._judge)
        for query_key in (query for request in keys for query in state.queries_in(request)):
            failure = state.query_failures.get(query_key)
            if state.is_answered(query_key):
                self._note(query_key, None)
            elif failure is not None and failure.reason in _SAYS_NOTHING:
                self._note(query_key, failure)

    def _note(self, query_key: Digest, failure: JudgeQueryFailed | None) -> None:
        if query_key in self._latest or query_key not in self._noted:
            self._latest[query_key] = failure
            self._noted.add(query_key)
        if len(self._latest) > _LATEST:
            del self._latest[next(iter(self._latest))]

    def why_stop(self) -> NothingReadable | None:
        """Return why the judge should be asked nothing more; None if it should."""
        last = [*self._latest.values()][-_IN_A_ROW:]
        useless = [failure for failure in self._latest.values() if failure is not None]
        if len(last) == _IN_A_ROW and None not in last:
            return self._error(f"{_IN_A_ROW} replies in a row", useless[-_IN_A_ROW:])
        if len(self._latest) == _LATEST and 2 * len(useless) > _LATEST:
            return self._error(f"{len(useless)} of the last {_LATEST} replies", useless)
        return None

    def _error(self, which: str, useless: Sequence[JudgeQueryFailed]) -> NothingReadable:
        name = f"judge {self._judge.judge_id!r}"
        what = f"{which} of {name} held no readable {self._wanted}, so nothing more is asked"
        example = max(reversed(useless), key=lambda failure: len(failure.reply) > 0)
        remedy = "correct the judge or its settings"
        if example.reason == "truncated":
            remedy = "it was cut off: raise max_tokens of the judge"
        elif self._wanted == "verdict":
            remedy = _other_parser(self._judge_option, useless) or remedy
        return NothingReadable(f"{what}; one of them {_shown(example.reply)}; {remedy}")


def tell_unreadable(
    state: Tournament, prompts: Collection[PromptId], judge: JudgeSettings, tell: Tell
) -> None:
    """Tell why queries have no verdict, if any: no answer came, or the reply is not readable."""
    keys = frozenset(keys_of(state, prompts, judge))
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
            yield f"{dimension}: nothing can be judged: {_NO_GOLD}"


_NO_GOLD: Final = (
    "the rubric needs gold answers, but no prompt has one; add gold_answer to the prompts, or set"
    " needs_gold = false in the rubric"
)


def nothing_judged(dimensions: Iterable[WithoutGold]) -> Iterator[str]:
    """Say of each dimension why no pair of a tournament can be judged on it."""
    for dimension, n_out, n_asked in dimensions:
        why = (
            _NO_GOLD
            if 0 < n_out == n_asked
            else "there are no two entrants to compare, or no prompts"
        )
        yield f"{dimension}: nothing can be judged: {why}"


def tell_unscored(
    state: Tournament, keys: Collection[Digest], judge: JudgeSettings, tell: Tell
) -> None:
    """Tell likewise of replies without a readable score."""
    if unreadable := _tell_example(state, keys, judge, tell, "score"):
        tell(f"ask again: `tourney apply evaluate --retry {_reasons(unreadable)}`")


def _tell_example(
    state: Tournament, keys: Collection[Digest], judge: JudgeSettings, tell: Tell, wanted: str
) -> Sequence[JudgeQueryFailed]:
    """Tell how many queries got no readable reply, and show one; return their failures."""
    failures = _failures(state, keys)
    unreadable = [failure for failure in failures if failure.reason in MAY_CHANGE]
    if unreadable:
        n_read = sum(map(state.is_answered, keys))
        n_replied = n_read + sum(failure.reason in PAID for failure in failures)
        example = max(unreadable, key=lambda failure: (len(failure.reply) > 0, failure.query_key))
        tell(
            f"{len(unreadable)} of {counted(n_replied, 'answered query', 'answered queries')} to"
            f" {judge.judge_id!r} got no readable {wanted}; one reply {_shown(example.reply)}"
        )
    return unreadable


def _failures(state: Tournament, keys: Collection[Digest]) -> Sequence[JudgeQueryFailed]:
    """Return the failures of queries that were not answered since, by key."""
    failed = (key for key in sorted(keys) if key in state.query_failures)
    return [state.query_failures[key] for key in failed if not state.is_answered(key)]


def _tell_unanswered(
    failures: Sequence[JudgeQueryFailed], judge: JudgeSettings, tell: Tell
) -> None:
    errored = [failure for failure in failures if failure.reason == "errored"]
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
    lenient = LENIENT_PARSER.partition("@")[0]
    option = _judge_option(state, judge)
    again = f"ask again: `tourney apply judge{option} --retry {_reasons(unreadable)}`"
    read = _other_parser(option, unreadable)
    return f"{read or f'no --parser can read them ({lenient} counts them as ties)'}; {again}"


def _judge_option(state: Tournament, judge: JudgeSettings) -> str:
    """Return the option that names a judge, with a space before; empty if there is no other."""
    return f" --judge {judge.judge_id}" if len(state.panel) > 1 else ""


def _other_parser(judge_option: str, unreadable: Sequence[JudgeQueryFailed]) -> str | None:
    """Say which parser reads most of the replies of a judge; None if none reads any."""
    n_read = {
        name: sum(read(failure.reply) is not None for failure in unreadable)
        for name, read in PARSERS.items()
        if name == newest_parser(name.partition("@")[0])
        and name != LENIENT_PARSER  # it takes whatever it cannot read for a tie
    }
    best = max(n_read, key=lambda name: n_read[name])
    if not n_read[best]:
        return None
    parser = best.partition("@")[0]
    return f"read {n_read[best]} of them: `tourney project elo{judge_option} --parser {parser}`"


def _reasons(unreadable: Sequence[JudgeQueryFailed]) -> str:
    """Return why they failed, as --retry takes it."""
    return ",".join(sorted({failure.reason for failure in unreadable}))
