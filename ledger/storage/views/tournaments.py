"""Views of what a tournament consists of, what entrants wrote, and what judges said of it."""

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

_OPENING: Final = f"""\
WITH opening AS (
  SELECT stream AS tournament, data AS opened, max(position) AS newest
  FROM {events("TournamentOpened")} GROUP BY stream)
"""
_NAMED: Final = """\
FROM {events}
  AND (stream, data ->> '$.{label}', data ->> '$.digest') IN (
    SELECT tournament, value ->> '$.label', value ->> '$.digest'
    FROM opening CROSS JOIN json_each(opened, '$.{listed}'))"""
_DIGEST: Final = field("digest", "SHA-256 of what is registered")


def _number_of(listed: str, what: str) -> ViewColumn:
    return ViewColumn(f"n_{listed}", f"json_array_length(data, '$.{listed}')", what)


def _registered(
    name: str, meaning: str, event: str, label: str, columns: tuple[ViewColumn, ...]
) -> LedgerView:
    """Return a view of what the newest opening of each tournament names."""
    return LedgerView(
        name,
        meaning,
        (TOURNAMENT, *columns, _DIGEST, PLACE),
        _NAMED.format(events=events(event), label=label, listed=name),
        _OPENING,
    )


REGISTERED: Final = (
    LedgerView(
        "tournaments",
        "each tournament, as it was opened last",
        (
            TOURNAMENT,
            field("opening", "how often it was opened, each time under other settings"),
            _number_of("entrants", "how many compete"),
            _number_of("prompts", "how many prompts its bank has"),
            _number_of("rubrics", "how many dimensions are judged"),
            _number_of("judges", "how many judges are registered"),
            field("generation_seed", "from which the seeds of responses follow"),
            field("instructions_version", "of the judge's instructions", "instructions.version"),
            text("instructions", "what a judge without its own is sent", "instructions.text"),
            field("configuration", "all settings, as JSON"),
            field("versions", "packages and their versions, as JSON"),
            AT,
            PLACE,
        ),
        "FROM events WHERE position IN (SELECT newest FROM opening)",
        _OPENING,
    ),
    _registered(
        "prompts",
        "the prompts of each tournament",
        "PromptRegistered",
        "prompt.prompt_id",
        (
            field("prompt", "its id", "prompt.prompt_id"),
            field("source", "where it is from", "prompt.source"),
            field("subject", "what it is about", "prompt.subject"),
            field("category", "its kind; NULL if it has none", "prompt.category"),
            field("tags", "as a JSON list", "prompt.tags"),
            field(
                "expected_behavior",
                "hedge, answer or abstain; NULL if nothing is expected",
                "prompt.expected_behavior",
            ),
            text("text", "what entrants are asked", "prompt.text"),
            text("gold_answer", "the right answer; NULL if there is none", "prompt.gold_answer"),
        ),
    ),
    _registered(
        "entrants",
        "the entrants of each tournament",
        "EntrantRegistered",
        "entrant.entrant_id",
        (
            field("entrant", "its id", "entrant.entrant_id"),
            field("loader", "hf, hydra, endpoint or recorded", "entrant.loader"),
            field("weights", "a folder, or what a server calls them", "entrant.weights"),
            field("adapters", "as a JSON list, in the order they are merged", "entrant.adapters"),
            field("temperature", "NULL if it decodes greedily", "entrant.temperature"),
            field("max_new_tokens", "of a response, at most", "entrant.max_new_tokens"),
            field("dtype", "of its weights; NULL if a server knows", "entrant.dtype"),
            field("hydra", "heads and jury of a hydra, as JSON", "entrant.hydra"),
            field("revision", "commit on the Hub, or of a server's weights", "entrant.revision"),
            field("step", "of the training of its weights; NULL if not known", "entrant.step"),
            field("options", "other settings that are not the default, as JSON", "entrant.options"),
            field("weights_digest", "of all files of its weights", "entrant.weights_digest"),
        ),
    ),
    _registered(
        "rubrics",
        "the dimensions that are judged",
        "RubricRegistered",
        "rubric.dimension",
        (
            field("dimension", "the quality that is compared", "rubric.dimension"),
            field("version", "of the rubric", "rubric.version"),
            field("needs_gold", "1 if only prompts with a gold answer count", "rubric.needs_gold"),
            text("text", "the rubric", "rubric.text"),
        ),
    ),
    _registered(
        "judges",
        "the judges of each tournament",
        "JudgeRegistered",
        "judge.judge_id",
        (
            field("judge", "its id", "judge.judge_id"),
            field("provider", "who answers", "judge.provider"),
            field("model", "the provider's name of it", "judge.model"),
            field("parameters", "as a JSON list of name and value", "judge.parameters"),
        ),
    ),
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
