"""Views of money, evaluations, published runs and imports."""

from typing import Final

from ledger.storage.views.tournaments import ASKED, of_asked
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

_PRICED: Final = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
_REPLY_USD: Final = " + ".join(
    f"(data ->> '$.usage.n_{kind}') * (data ->> '$.price.{kind}')" for kind in _PRICED
)
_CACHED: Final = " + ".join(f"({{of}} ->> '$.usage.n_{kind}')" for kind in _PRICED[2:])

# As `tourney project spend` counts: a reply has its tokens, whatever else is known; a request
# without an answer is on the bill if it may have been billed.
_OF_JUDGES: Final = f"""\
  SELECT position, stream, at, 'judge' AS role,
    data ->> '$.judge' AS name, data ->> '$.model' AS model, dimension,
    data ->> '$.query_key' AS request,
    data ->> '$.usage.n_input' AS n_input, data ->> '$.usage.n_output' AS n_output,
    {_CACHED.format(of="data")} AS n_cached,
    ({_REPLY_USD}) / 1e6 AS usd,
    iif(data ->> '$.usage' IS NULL, data ->> '$.worst_usd', NULL) AS maybe_usd
  FROM {of_asked("VerdictReceived", "ScoreReceived", "JudgeQueryFailed")}
  WHERE data ->> '$.usage' IS NOT NULL OR data ->> '$.fate' = 'perhaps billed'
    OR data ->> '$.worst_usd' IS NOT 0.0"""
_OF_ENTRANTS: Final = f"""\
  SELECT position, stream, at, 'entrant', data ->> '$.entrant', data ->> '$.model', NULL,
    charge.value ->> '$.request',
    charge.value ->> '$.usage.n_input', charge.value ->> '$.usage.n_output',
    {_CACHED.format(of="charge.value")},
    iif(charge.value ->> '$.fate' = 'answered', charge.value ->> '$.usd', NULL),
    iif(charge.value ->> '$.fate' = 'answered', NULL, charge.value ->> '$.usd')
  FROM (SELECT * FROM {events("RequestsSettled")})
  CROSS JOIN json_each(data, '$.charges') AS charge
  WHERE charge.value ->> '$.fate' IN ('answered', 'perhaps billed')"""

_PLANNED: Final = f"""\
WITH planned AS (
  SELECT stream AS tournament, data ->> '$.entrant.label' AS entrant,
    data ->> '$.evaluation' AS evaluation, data ->> '$.run_key' AS run_key,
    max(position) AS newest
  FROM {events("EvaluationPlanned")} GROUP BY 1, 2, 3)
"""
_SCORED: Final = f"""\
{_PLANNED.rstrip()},
scored AS (
  SELECT DISTINCT stream AS of_stream, data ->> '$.query_key' AS of_query,
    sample.value ->> '$.run_key' AS of_run, sample.value ->> '$.item' AS item,
    sample.value ->> '$.sample' AS sample
  FROM (SELECT * FROM {events("ScoreQuerySubmitted", "ScoreShared")})
  CROSS JOIN json_each(data, '$.samples') AS sample)
"""
_WEIGHED: Final = f"""\
{_PLANNED.rstrip()},
weighed AS (
  SELECT data ->> '$.digest' AS of_digest, data ->> '$.entrant.weights' AS weights,
    data ->> '$.entrant.dtype' AS dtype, data ->> '$.entrant.step' AS step
  FROM {events("EntrantRegistered")} GROUP BY of_digest)
"""
_BEST: Final = """\
(SELECT max(value ->> '$.log_likelihood') FROM json_each(data, '$.observation.choices'))"""
_SCORE: Final = f"""\
CASE data ->> '$.observation.type' WHEN 'choices' THEN (
    SELECT avg(key = data ->> '$.observation.correct')
    FROM json_each(data, '$.observation.choices') WHERE value ->> '$.log_likelihood' = {_BEST})
  ELSE data ->> '$.observation.score' END"""
_SET: Final = ViewColumn("set_name", "substr(stream, 1 + instr(stream, ':'))", "the set's name")

FURTHER: Final = (
    LedgerView(
        "spend",
        "each request to a judge or an entrant that ended, and was or may have been billed",
        (
            TOURNAMENT,
            known("role", "judge or entrant"),
            known("name", "the id of the judge or entrant"),
            known("model", "as it names itself, or a server names it"),
            known("dimension", "that a judge was asked about, or the evaluation that it scored"),
            known("n_input", "tokens sent that were not cached; NULL if not known"),
            known("n_output", "tokens of the answer; NULL if not known"),
            known("n_cached", "tokens written to a cache or read from it"),
            known("usd", "what it cost; NULL if not known, or nothing is to pay"),
            known("maybe_usd", "if it may have been billed: what, at worst"),
            known("request", "query_key, response_key, or digest of a sample"),
            AT,
            PLACE,
        ),
        f"FROM (\n{_OF_JUDGES}\n  UNION ALL\n{_OF_ENTRANTS})",
        ASKED,
    ),
    LedgerView(
        "evaluations",
        "each evaluation of an entrant, as it was planned last",
        (
            TOURNAMENT,
            field("entrant", "the entrant's id", "entrant.label"),
            field("evaluation", "its name"),
            field("kind", "rollout, encoding, perplexity or comparison"),
            ViewColumn("n_items", "json_array_length(data, '$.items')", "items that are planned"),
            field("n_samples", "tries at each item"),
            field("n_available", "items that the evaluation has"),
            field("higher_is_better", "1 if a higher score is better"),
            field("settings", "all that determines its samples, as JSON"),
            known("weights", "the entrant's folder, or what a server calls them"),
            known("dtype", "of the weights; NULL if a server knows"),
            known("step", "of the training of the weights; NULL if not known"),
            field("run_key", "digest of the entrant and the settings"),
            AT,
            PLACE,
        ),
        "FROM (SELECT * FROM events WHERE position IN (SELECT newest FROM planned))\n"
        "  LEFT JOIN weighed ON of_digest = data ->> '$.entrant.digest'",
        _WEIGHED,
    ),
    LedgerView(
        "items",
        "each item of the evaluations, which all tournaments of the ledger share",
        (
            field("item", "its digest, as in samples"),
            field("asks", "prompt, choices or text", "asked.type"),
            ViewColumn(
                "text",
                "coalesce(texts ->> '$.asked.prompt', texts ->> '$.asked.context',"
                " texts ->> '$.asked.text')",
                "the prompt, the context of choices, or the text",
            ),
            text("choices", "as a JSON list; NULL if there are none", "asked.choices"),
            field("correct", "the right choice, counted from 0", "asked.correct"),
            text("expected", "the right answer to a prompt", "asked.expected"),
            field("copy", "1, 2, 3 ... of the items of this content"),
            AT,
            PLACE,
        ),
        f"FROM {events('ItemRegistered')}",
    ),
    LedgerView(
        "samples",
        "each sample of an evaluation, under each name that its run was planned by",
        (
            TOURNAMENT,
            known("entrant", "the entrant's id"),
            known("evaluation", "the evaluation's name"),
            field("label", "where the item is from"),
            field("sample", "0, 1, 2 ... of the same item"),
            field("observed", "choices, document, answer or prediction", "observation.type"),
            ViewColumn(
                "score", _SCORE, "of choices 1 if the likeliest is right; NULL if it has none"
            ),
            text("text", "the answer, or the text predicted", "observation.text"),
            text("cleaned", "the answer as it was compared", "observation.cleaned"),
            text("expected", "the right answer", "observation.expected"),
            field("log_likelihood", "of a document, in nats", "observation.log_likelihood"),
            field("observation", "all that was observed, as JSON"),
            field("unscorable", "why nothing could be observed, as one word", "reason"),
            field("item", "digest of what was asked"),
            field("cluster", "the same for samples that are not independent"),
            known("run_key", "as in evaluations"),
            AT,
            PLACE,
        ),
        f"FROM (SELECT * FROM {events('SampleObserved', 'SampleUnscorable')})\n"
        "  CROSS JOIN planned ON tournament = stream AND run_key = data ->> '$.run_key'",
        _PLANNED,
    ),
    LedgerView(
        "scores",
        "each score of a judge, under each sample with the answer that it scored",
        (
            TOURNAMENT,
            known("entrant", "the entrant's id"),
            known("evaluation", "the evaluation's name"),
            known("item", "digest of what the entrant was asked, as in samples"),
            known("sample", "0, 1, 2 ... of the same item"),
            field("judge", "the judge's id"),
            field("score", "within the rubric's scale; of pass or fail 1 or 0"),
            text("reply", "the judge's whole reply; NULL once it was redacted"),
            field("model", "as the judge names itself"),
            field("stop_reason", "why the reply ended"),
            field("parser", "the rule by which the reply was read"),
            field("query_key", "digest of what was asked"),
            known("run_key", "as in samples"),
            AT,
            PLACE,
        ),
        f"FROM (SELECT * FROM {events('ScoreReceived')})\n"
        "  JOIN scored ON of_stream = stream AND of_query = data ->> '$.query_key'\n"
        "  JOIN planned ON tournament = stream AND run_key = of_run",
        _SCORED,
    ),
    LedgerView(
        "runs",
        "each run whose ratings were published",
        (
            TOURNAMENT,
            field("run", "the folder of its files", "publication.run"),
            field("mode", "pilot or headline", "publication.terms.mode"),
            field("judge", "the judge's id", "publication.terms.judge"),
            field("policy", "by which verdicts became outcomes", "publication.terms.policy"),
            ViewColumn(
                "rated_by",
                "coalesce(data ->> '$.publication.terms.rated_by', 'outcomes')",
                "verdicts, each by itself; or outcomes, as the first runs",
            ),
            ViewColumn(
                "n_prompts", "json_array_length(data, '$.publication.terms.prompts')", "on which"
            ),
            field("as_of", "the last position that it read", "publication.as_of"),
            field("head", "the chain's hash there", "publication.head"),
            field("artifacts", "its files and their digests, as JSON"),
            AT,
            PLACE,
        ),
        f"FROM {events('RatingsPublished')}",
    ),
    LedgerView(
        "imports",
        "each part of a file of battles that was imported, up to 5,000 of them",
        (
            _SET,
            field("format", "of the file"),
            field("file_digest", "SHA-256 of the file"),
            field("chunk", "1, 2, 3 ... of the file"),
            ViewColumn("n_battles", "length(data ->> '$.a')", "how many it holds"),
            field("n_skipped", "rows before them that were left out"),
            field("entrants", "who battles, as a JSON list"),
            AT,
            PLACE,
        ),
        f"FROM {events('BattlesImported')}",
    ),
)
