"""The machine that was measured, in words: figures without it say nothing."""

import os
import platform
import shutil
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def machine(folder: Path) -> dict[str, str]:
    """Describe what was measured, and where."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "load before": f"{os.getloadavg()[0]:.1f} (of others, 1 minute)",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "PyTorch": version("torch"),
        "file system": _file_system(folder),
    }


def _commit() -> str:
    """Name the commit; `-dirty` behind it says that files differed from it."""
    command = [shutil.which("git") or "git", "describe", "--always", "--dirty"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    """Ask the kernel where it tells; Python alone knows less."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _file_system(folder: Path) -> str:
    """Return the kind of the nearest mount around a folder."""
    told = Path("/proc/self/mounts")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    kinds = {Path(place): kind for _, place, kind, *_ in map(str.split, lines)}
    where = folder.resolve()
    return next((kinds[each] for each in (where, *where.parents) if each in kinds), "unknown")
