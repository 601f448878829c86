"""Views of what a tournament consists of: as its newest opening says, whatever was before."""

from typing import Final

from ledger.storage.views.view import (
    AT,
    PLACE,
    TOURNAMENT,
    LedgerView,
    ViewColumn,
    events,
    field,
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
