"""Put `tourney.py` into the wheel as a package: type checkers take no types from a lone module."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TypedFace(BuildHookInterface):
    """Add tourney/__init__.py and its py.typed; an editable install finds tourney.py itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files, unless the install is editable: a copy there would go stale."""
        if version == "standard":
            build_data["force_include"] |= {
                "tourney.py": "tourney/__init__.py",
                "py.typed": "tourney/py.typed",
            }
