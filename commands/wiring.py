"""The composition root: settings in, backends out. The only place that imports backends.

They are imported inside functions, so that a command that needs no torch never pays for it.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from commands.errors import MissingExtra
from commands.ports import Generator, Judge
from commands.settings import Settings
from commands.version import VERSION

_RECORDED_PACKAGES: Final = ("torch", "transformers", "peft", "sacrebleu", "numpy")


def make_generator(settings: Settings) -> Generator:
    """Return what answers as the entrants.

    Raises:
        MissingExtra: torch and its kin are not installed.
    """
    try:
        from commands.backends.hf_generator import HfGenerator
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "torch", "models") from error
    return HfGenerator(
        batch_tokens=settings.generation.batch_tokens,
        device=settings.generation.device,
        cpu_threads=settings.generation.cpu_threads,
    )


def make_judge(settings: Settings) -> Judge:
    """Return what compares."""
    from commands.backends.reference_judge import ReferenceJudge

    return ReferenceJudge(tie_band=settings.judge.tie_band)


def package_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that an opening records, of the packages that are installed."""
    found = [("tourney", VERSION)]
    for package in _RECORDED_PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)
