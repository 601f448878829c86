"""The files of a run by name, with the fields of the customer's scripts and more.

The published files depend on the results alone: a replay must produce the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ledger.chain import Head
from ledger.events.judging import Order
from ledger.events.money import Usage
from ledger.events.registration import TournamentOpened
from ledger.identity import Digest, Fields, Json
from projections.artifacts._ratings import elo_per_perm, elo_ratings, elo_results, pairwise_winrates
from projections.artifacts.judgearena import of_settlements
from projections.artifacts.results import RatedRun, Results, SettledPairs
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement
from projections.tournament.state import Tournament


def manifest(results: RatedRun) -> Fields:
    """Return what was run, with which settings, and the outcome counts of its pairings."""
    publication, tournament = results.publication, results.tournament
    opening, newest = tournament.opening, tournament.newest
    configuration: Fields = json.loads(opening.configuration) if opening else {}
    return {
        "run": publication.run,
        "mode": publication.terms.mode,
        "config_path": None,  # true on one machine only; `configuration` is what the file said
        "tournament": tournament.stream,
        "judge_model": results.judge.model,
        "judge": results.judge.fields,
        "policy": publication.terms.policy,
        "entrants": list(publication.terms.entrants),
        "prompts": list(publication.terms.prompts),
        "bank_size": len(tournament.bank),
        "selected_prompt_count": len(publication.terms.prompts),
        "n_perms": publication.terms.elo.permutations,
        "shuffle_seed": publication.terms.elo.seed,
        "pilot_seed": _pilot_seed(configuration),
        "elo": publication.terms.elo.fields,
        "bradley_terry": publication.terms.bradley_terry.fields,
        "instructions": _instructions(opening),
        "rubrics": {
            rubric.dimension: {"version": rubric.version, "digest": rubric.digest}
            for rubric in tournament.dimensions
        },
        "accounts": {
            dimension: standing.account.fields()
            for dimension, standing in results.standings.items()
        },
        "configuration": configuration,
        "versions": dict(opening.versions) if opening else {},
        "started_at": publication.started_at.isoformat(),
        "finished_at": newest.recorded_at.isoformat() if newest else None,
        "as_of": publication.as_of,
        "head": publication.head,
        "checkpoint": str(Head(publication.as_of, publication.head)),
    }


def _instructions(opening: TournamentOpened | None) -> Json:
    told = opening.instructions if opening else None
    return {"version": told.version, "digest": told.digest} if told else None


def _pilot_seed(configuration: Fields) -> Json:
    pilot = configuration.get("pilot")
    return pilot["seed"] if isinstance(pilot, Mapping) else None


_TOKENS: Final = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
)
_JUDGED: Final = frozenset({"a", "b", "tie", "inconsistent"})


def matches(results: SettledPairs) -> Iterator[Fields]:
    """Yield every pair that could be judged, with both responses."""
    for settlement in _in_match_order(results):
        if settlement.match is not None:
            dimension = settlement.pairing.rubric.dimension
            yield {"dimension": dimension, **_pair(settlement.match)}


def _in_match_order(results: SettledPairs) -> Iterator[Settlement]:
    """Yield settlements in match order: prompts in bank order, then dimensions, then pairs."""
    order = {prompt.prompt_id: n for n, prompt in enumerate(results.tournament.bank)}
    settled = [settlement for group in results.settlements.values() for settlement in group]
    yield from sorted(settled, key=lambda each: order[each.pairing.prompt.prompt_id])


def _pair(match: Match) -> Fields:
    prompt = match.pairing.prompt
    return {
        "prompt_id": prompt.prompt_id,
        "source": prompt.source,
        "prompt_text": prompt.text,
        "entrant_a": match.pairing.a.entrant.entrant_id,
        "entrant_b": match.pairing.b.entrant.entrant_id,
        "response_a": match.response_a.text,
        "response_b": match.response_b.text,
        "gold_answer": prompt.gold_answer,
        "expected_behavior": prompt.expected_behavior,
    }


def verdicts(results: SettledPairs, settlements: Iterable[Settlement]) -> Iterator[Fields]:
    """Yield every reconciled pair, with both complete replies."""
    for settlement in settlements:
        match = settlement.match
        if match is None or settlement.status not in _JUDGED:
            continue
        yield {
            "prompt_id": match.pairing.prompt.prompt_id,
            "dimension": match.pairing.rubric.dimension,
            "entrant_a": match.pairing.a.entrant.entrant_id,
            "entrant_b": match.pairing.b.entrant.entrant_id,
            "winner": settlement.winner,
            "inconsistent": settlement.status == "inconsistent",
            "outcome": settlement.status,
            **_asked(results.tournament, match),
        }


def _asked(tournament: Tournament, match: Match) -> Fields:
    """Return both orders' replies; identical responses may have tied without being asked."""
    if match.is_identical and match.forward_key not in tournament.verdicts:
        return {"raw": [], "basis": "identical"}
    pair = _pair(match)
    return {"raw": [_raw(tournament, match, pair, *each) for each in match.keys]}


def _raw(
    tournament: Tournament, match: Match, pair: Fields, order: Order, query_key: Digest
) -> Fields:
    given = tournament.verdicts[query_key]
    verdict = given.event
    return {
        "cache_key": query_key,
        "pair": pair,
        "rubric_version": match.pairing.rubric.version,
        "judge_model": verdict.model,
        "position_swap": order == "swapped",
        "verdict": verdict.verdict,
        "reasoning": verdict.reply,
        "parser": verdict.parser,
        "stop_reason": verdict.stop_reason,
        "timestamp": given.recorded_at.isoformat(),
        **_tokens(verdict.usage),
    }


def _tokens(usage: Usage | None) -> Fields:
    """Return a reply's tokens under the customer's field names; an offline judge counts none."""
    if usage is None:
        return dict.fromkeys(_TOKENS)
    written = usage.n_cache_write_5m + usage.n_cache_write_1h
    counts = (written, usage.n_cache_read, usage.n_input, usage.n_output)
    return dict(zip(_TOKENS, counts, strict=True))


def battles(results: SettledPairs) -> Iterator[Fields]:
    """Yield decided and tied pairs in JudgeArena's battle format."""
    for settlement in _in_match_order(results):
        dimension = settlement.pairing.rubric.dimension
        for battle in of_settlements([settlement], results.judge.model):
            yield battle | {"dimension": dimension}


def holds_texts(path: str) -> bool:
    """Say whether a published file holds texts of events, and changes if one is redacted."""
    return path == "manifest.json" or path.startswith(("matches/", "verdicts/"))


def files_of(results: Results) -> dict[str, bytes]:
    """Return every published file of a run, by its path relative to the run's folder."""
    files = rating_files(results) | line_files(results)
    return dict(sorted(files.items(), key=_place))


_ORDER: Final = (
    "manifest",
    "matches/",
    "verdicts/",
    "elo_results",
    "elo_per_perm",
    "pairwise_winrates",
    "battles",
    "elo_ratings",
)
"""How the paths of files begin, in the order in which a publication names them."""


def _place(file: tuple[str, bytes]) -> int:
    return next(place for place, beginning in enumerate(_ORDER) if file[0].startswith(beginning))


def rating_files(results: RatedRun) -> dict[str, bytes]:
    """Return the files that say of the run as a whole how it ended."""
    return {
        "manifest.json": _json(manifest(results)),
        "elo_results.json": _json(elo_results(results)),
        "elo_per_perm.npz": elo_per_perm(results),
        "pairwise_winrates.csv": pairwise_winrates(results),
        "elo_ratings.json": _json(elo_ratings(results)),
    }


def line_files(results: SettledPairs) -> dict[str, bytes]:
    """Return the files with lines for each pair; those of a section are a section of the run's."""
    return {
        "matches/matches.jsonl": _jsonl(matches(results)),
        **{
            f"verdicts/{dimension}.jsonl": _jsonl(verdicts(results, settlements))
            for dimension, settlements in results.settlements.items()
        },
        "battles.jsonl": _jsonl(battles(results)),
    }


def _json(value: Json) -> bytes:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _jsonl(rows: Iterable[Fields]) -> bytes:
    """Return lines as Python's `json` writes them; numbers with an exponent would look otherwise.

    It takes a quarter of the time.
    """
    lines = (msgspec.json.format(msgspec.json.encode(row), indent=0) for row in rows)
    return b"".join([part for line in lines for part in (line, b"\n")])
