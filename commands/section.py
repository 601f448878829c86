"""What the tables of tournament.toml have in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)
