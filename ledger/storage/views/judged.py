"""Views of what entrants wrote and what judges said of it."""

from typing import Final

from ledger.storage.views.view import (
    AT,
    PLACE,
    TOURNAMENT,
    LedgerView,
    ViewColumn,
    events,
    field,
    known,
    text,
)

ASKED: Final = f"""\
WITH asked AS (
  SELECT stream AS tournament, data ->> '$.query_key' AS query_key,
    coalesce(data ->> '$.dimension', data ->> '$.evaluation') AS dimension,
    data ->> '$.prompt_id' AS prompt,
    data ->> '$.entrant_a' AS entrant_a, data ->> '$.entrant_b' AS entrant_b,
    data ->> '$.order' AS slot_order, data ->> '$.repeats' AS repeats, max(position) AS newest
  FROM {events("JudgeQuerySubmitted", "ScoreQuerySubmitted")}
  GROUP BY 1, 2)
"""


def of_asked(*types: str) -> str:
    """Return the source that is what judges answered, each with what they were asked."""
    return f"""\
(SELECT * FROM {events(*types)})
  LEFT JOIN asked ON asked.tournament = stream AND asked.query_key = data ->> '$.query_key'"""


_PAIR: Final = (
    known("dimension", "the quality that was compared"),
    known("prompt", "the prompt's id"),
    known("entrant_a", "the entrant that comes first in the roster"),
    known("entrant_b", "the other entrant"),
)
_PREFERRED: Final = """\
CASE WHEN data ->> '$.verdict' = 'TIE' THEN NULL
    WHEN (data ->> '$.verdict' = 'A') = (slot_order = 'forward') THEN entrant_a
    ELSE entrant_b END"""
_SCORING: Final = f"""\
(SELECT data ->> '$.query_key' FROM {events("ScoreQuerySubmitted")})"""
_FAILED: Final = ("ResponseFailed", "JudgeQueryFailed", "SampleUnscorable")

JUDGED: Final = (
    LedgerView(
        "responses",
        "each response; if its entrant or prompt was changed, those from before are here, too",
        (
            TOURNAMENT,
            field("prompt", "the prompt's id", "prompt_id"),
            field("entrant", "the entrant's id", "entrant_id"),
            field("sample", "0, 1, 2 ... of the same entrant and prompt"),
            text("text", "what it wrote; NULL once it was redacted"),
            field(
                "finish_reason",
                "stop, length if it was cut off, or what a server says; NULL if nothing",
            ),
            field("n_prompt_tokens", "tokens of the prompt; NULL if not known"),
            field("n_generated_tokens", "tokens of the response; NULL if a server does not say"),
            field("elapsed_s", "seconds of the batch that it was made in; NULL if not known"),
            field("p_correct", "how sure a hydra was that it is correct; NULL if not asked"),
            field("diagnostics", "how the heads of a hydra decided, as JSON"),
            field(
                "usd", "what a recorded answer cost elsewhere, as its file says; NULL if nothing"
            ),
            field("seed", "of the random numbers"),
            field("imported_from", "SHA-256 of the file that it is from; NULL if made here"),
            field("response_key", "digest of all that determines it"),
            AT,
            PLACE,
        ),
        f"FROM {events('ResponseGenerated')}",
    ),
    LedgerView(
        "verdicts",
        "each verdict of a judge on a pair of responses in one order",
        (
            TOURNAMENT,
            *_PAIR,
            known("slot_order", "forward: entrant_a was shown as A; or swapped"),
            field("judge", "the judge's id"),
            field("verdict", "A, B or TIE, of the slots that were shown"),
            ViewColumn("winner", _PREFERRED, "the entrant that it prefers; NULL for a tie"),
            text("reply", "the judge's whole reply; NULL once it was redacted"),
            field("model", "as the judge names itself"),
            field("stop_reason", "why the reply ended"),
            field("parser", "the rule by which the reply was read"),
            field("query_key", "digest of what was asked"),
            known("repeats", "query_key of what a repeat asked again; NULL if the verdict counts"),
            AT,
            PLACE,
        ),
        f"FROM {of_asked('VerdictReceived')}",
        ASKED,
    ),
    LedgerView(
        "outcomes",
        "what the verdicts on a pair in both orders became: of each pair the newest outcome",
        (
            TOURNAMENT,
            field("dimension", "the quality that was compared"),
            field("prompt", "the prompt's id", "prompt_id"),
            field("entrant_a", "the entrant that comes first in the roster"),
            field("entrant_b", "the other entrant"),
            field("judge", "the judge's id"),
            field("policy", "the rule by which verdicts become an outcome"),
            field("outcome", "a, b, tie or inconsistent"),
            ViewColumn(
                "winner",
                "CASE data ->> '$.outcome' WHEN 'a' THEN data ->> '$.entrant_a'"
                " WHEN 'b' THEN data ->> '$.entrant_b' END",
                "the entrant that won; NULL for a tie, and if inconsistent",
            ),
            field("basis", "verdicts, or identical if both responses are the same"),
            field("forward", "query_key of the verdict with entrant_a shown as A"),
            field("swapped", "query_key of the other verdict"),
            AT,
            ViewColumn("position", "max(position)", PLACE.meaning),
        ),
        f"FROM {events('PairReconciled')}\n"
        "GROUP BY 1, 2, 3, judge, policy, min(entrant_a, entrant_b), max(entrant_a, entrant_b)",
    ),
    LedgerView(
        "failures",
        "each try that brought no response, verdict, score or sample; a later one may have",
        (
            TOURNAMENT,
            ViewColumn(
                "failed",
                "CASE type WHEN 'ResponseFailed' THEN 'response'"
                " WHEN 'SampleUnscorable' THEN 'sample'"
                f" ELSE iif(data ->> '$.query_key' IN {_SCORING}, 'score', 'verdict') END",
                "response, verdict, score or sample",
            ),
            field("entrant", "of a response", "entrant_id"),
            field("prompt", "of a response", "prompt_id"),
            field("judge", "of a verdict or a score"),
            field("reason", "why, as one word"),
            text("detail", "why, in the words of who said it; NULL once it was redacted"),
            text("reply", "of a judge that said something; NULL once it was redacted"),
            ViewColumn(
                "key",
                "coalesce(data ->> '$.response_key', data ->> '$.query_key', data ->> '$.item')",
                "response_key, query_key, or the item of a sample",
            ),
            AT,
            PLACE,
        ),
        f"FROM {events(*_FAILED)}",
    ),
)
