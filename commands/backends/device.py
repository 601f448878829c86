"""The device that models run on."""

import gc

import torch

from commands.errors import ConfigurationError


def prepare_device(name: str, cpu_threads: int | None) -> torch.device:
    """Return the device of that name; "auto" is the best one here.

    cpu_threads is set for the whole process; None leaves torch's own choice.

    Raises:
        ConfigurationError: There is no such device here.
    """
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, is_here in has.items() if is_here)
    if not has.get(name.partition(":")[0], False):
        here = ", ".join(kind for kind, is_here in has.items() if is_here)
        raise ConfigurationError([f"device {name!r} is not here; use auto or one of: {here}"])
    if cpu_threads is not None:
        torch.set_num_threads(cpu_threads)
    return torch.device(name)


def free_memory(device: torch.device) -> None:
    """Give the memory of tensors that nothing refers to back to the device."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
