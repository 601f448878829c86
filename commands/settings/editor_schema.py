"""The JSON Schema of tournament.toml, by which editors complete its keys and mark misspelt ones."""

import json
from typing import Final

from commands.settings.schema import Settings

SCHEMA_FILE: Final = "tournament.schema.json"
SCHEMA_LINE: Final = f"#:schema ./{SCHEMA_FILE}\n"
"""The first line of settings, by which Taplo and what is built on it find the schema."""
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of_settings() -> str:
    """Return the schema as JSON.

    It is more lenient than what reads the file: of what one key demands of another it says nothing.
    """
    schema = Settings.model_json_schema()
    schema["$defs"]["EndpointSection"]["required"].remove("base_url")  # a maker's name has it
    return json.dumps({"$schema": _DIALECT, **schema}, indent=1, ensure_ascii=False) + "\n"
