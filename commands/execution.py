"""Where a job of evaluations runs and keeps its results."""

from dataclasses import dataclass
from pathlib import Path

from projections.artifacts.evaluations import GROUP


@dataclass(frozen=True)
class ExecutionSpec:
    """A job's name and place: results lie in <root>/results/<project>/<group>/<name>/."""

    name: str
    project: str = "general"
    group: str = GROUP
    root: Path = Path()

    @property
    def folder(self) -> Path:
        """Where the job's ledger and results.json are."""
        return self.root / "results" / self.project / self.group / self.name
