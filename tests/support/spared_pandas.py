"""Load sqlite-utils without pandas: half a second, for types of columns that no ledger has."""

import sys
from typing import Final, cast

_MODULES: Final = cast("dict[str, object]", sys.modules)
_IS_LOADED: Final = "pandas" in _MODULES

_MODULES.setdefault("pandas", None)
import sqlite_utils  # noqa: E402, F401

if not _IS_LOADED:
    del _MODULES["pandas"]
