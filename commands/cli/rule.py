"""From options to the rule by which replies become outcomes."""

from collections.abc import Sequence
from difflib import get_close_matches

from commands.errors import ConfigurationError
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSERS, newest_parser
from projections.verdicts.policies import CONCATENATE, MAJORITY, POLICY_NAMES, Rule


def rule_of(policy: str, parser: str | None) -> Rule:
    """Return the rule that options name; a parser without a version is its newest.

    Raises:
        ConfigurationError: There is no such policy or parser.
    """
    if policy not in POLICY_NAMES:
        raise _unknown("--policy", policy, POLICY_NAMES)
    full_name = None if parser is None else newest_parser(parser)
    if parser is not None and full_name is None:
        raise _unknown(
            "--parser", parser, [*PARSERS, *(each.partition("@")[0] for each in PARSERS)]
        )
    return Rule(policy, full_name)


def require_jury(state: Tournament, judge: str | None) -> None:
    """Refuse a majority of one judge, whether one is named or alone.

    Raises:
        ConfigurationError: It is.
    """
    if judge is not None:
        raise ConfigurationError([f"--policy {MAJORITY} asks the whole panel; leave out --judge"])
    if len(state.panel) == 1:
        raise ConfigurationError(
            [f"--policy {MAJORITY} needs two judges, and the panel has one; see [[jury]]"]
        )


def note_of(rule: Rule) -> str:
    """Say by what rule outcomes were made that are not those on record."""
    read = "as recorded" if rule.parser is None else f"read again by {rule.parser}"
    counted = ", each order a game of its own" if rule.policy == CONCATENATE else ""
    return f"Outcomes by {rule.policy}{counted}, of replies {read}; nothing of this is on record."


def _unknown(option: str, value: str, known: Sequence[str]) -> ConfigurationError:
    close = get_close_matches(value, known, n=2, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {', '.join(known)}"
    )
    return ConfigurationError([f"{option} {value!r} is not known; {hint}"])
