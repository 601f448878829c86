"""A double of accelerators: tensors that say they are on one, and may not mix with others.

All is computed by the processor, so a device gives what the processor gives, bit for bit. Only a
tensor's place is made up. Every call of torch from Python is held to the rules of CUDA, and what it
makes gets a place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

CPU: Final = torch.device("cpu")

_MOVES: Final = {"to", "cpu", "cuda"}
_INDEXES: Final = {"__getitem__", "__setitem__"}  # which may also be the host's
_ANYWHERE: Final = {"copy_", "_has_compatible_shallow_copy_type"}  # may take from another device
_OF_HOST: Final = {"numpy", "__array__"}
_OF_PLACE: Final[dict[object, Callable[[torch.device], object]]] = {
    torch.Tensor.device.__get__: lambda place: place,
    torch.Tensor.is_cuda.__get__: lambda place: place.type == "cuda",  # type: ignore[attr-defined]  # a getter
    torch.Tensor.is_cpu.__get__: lambda place: place.type == "cpu",  # type: ignore[attr-defined]  # likewise
}
_SET_DATA: Final = torch.Tensor.data.__set__  # type: ignore[attr-defined]  # likewise


def place_of(tensor: torch.Tensor) -> torch.device:
    """Return the device that a tensor is on, or says it is on."""
    place = vars(tensor).get("place", tensor.device)
    assert isinstance(place, torch.device)
    return place


class Accelerators(TorchFunctionMode):
    """Some devices of a kind, which are there while it is entered."""

    def __init__(self, n_devices: int, kind: str) -> None:
        """Take how many there are."""
        super().__init__()
        self._n_devices, self._kind = n_devices, kind

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],  # not needed; torch hands it over
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  # whatever torch makes
        """Let the processor do a call, if a device would do it."""
        name, settings = getattr(func, "__name__", ""), dict(kwargs or {})
        if func in _OF_PLACE:
            return _OF_PLACE[func](place_of(args[0]))
        if func == _SET_DATA:
            func(*args)
            return self._put(args[0], place_of(args[1]))
        if name in _MOVES:
            return self._moved(name, *args, **settings)
        place = self._place(name, args, settings)
        if settings.get("device") is not None:
            settings["device"] = _real(place)
        made = func(*args, **settings)
        if isinstance(made, Iterator):
            return (self._put(each, place) for each in made)
        return tree_map_only(torch.Tensor, partial(self._put, place=place), made)

    def _place(self, name: str, args: Sequence[Any], settings: Mapping[str, Any]) -> torch.device:
        """Return where a call makes its tensors: where it is told to, or where its own are.

        Raises:
            RuntimeError: They are on several devices, or a generator is on another.
            TypeError: NumPy is to read a device's memory.
        """
        given = tree_leaves((args[:1] if name in _ANYWHERE else args, settings))
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        is_free = [each.ndim == 0 or name in _INDEXES for each in tensors]  # where it is the host's
        if name in _INDEXES:
            is_free[0] = False  # what is indexed
        found = {
            place_of(each): None
            for each, free in zip(tensors, is_free, strict=True)
            if not (free and place_of(each) == CPU)
        }
        asked = settings.get("device")
        if asked is None and len(found) > 1:
            listed = " and ".join(map(str, found))
            raise RuntimeError(f"Expected all tensors to be on the same device, not {listed}")
        place = next(iter(found), CPU) if asked is None else self._device(asked)
        drawing = [each for each in given if isinstance(each, torch.Generator)]
        if any(each.device.type != place.type for each in drawing):
            raise RuntimeError(f"Expected a {place.type!r} device type for generator")
        if name in _OF_HOST and place != CPU:
            raise TypeError(f"can't convert {place} device type tensor to numpy")
        return place

    def _moved(self, name: str, tensor: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:  # noqa: ANN401  # as `to` takes them
        """Return a tensor on another device or of another type, or itself."""
        place, dtype = self._asked(name, *args, **settings)
        place, dtype = place or place_of(tensor), dtype or tensor.dtype
        is_copy = place != place_of(tensor) or bool(settings.get("copy"))
        return self._put(tensor.to(_real(place), dtype, copy=is_copy), place)

    def _asked(
        self,
        name: str,
        *args: Any,  # noqa: ANN401  # likewise
        **settings: Any,  # noqa: ANN401  # likewise
    ) -> tuple[torch.device | None, torch.dtype | None]:
        """Return the device and the type that a tensor is moved to."""
        like = next((each for each in args if isinstance(each, torch.Tensor)), None)
        if like is not None:
            return place_of(like), like.dtype
        if name == "cpu":
            return CPU, None
        if name == "cuda":
            return self._device(args[0] if args else "cuda"), None
        settings.pop("copy", None)  # which it does not read
        read = torch._C._nn._parse_to(*args, **settings)  # either may be None, whatever it says
        device, dtype = cast("tuple[torch.device | None, torch.dtype | None]", read[:2])
        return None if device is None else self._device(device), dtype

    def _device(self, name: str | int | torch.device) -> torch.device:
        """Return a device by its name.

        Raises:
            RuntimeError: There is none.
        """
        device = torch.device(self._kind, name) if isinstance(name, int) else torch.device(name)
        if device.type in {"cpu", "meta"}:
            return device
        place = torch.device(device.type, device.index or 0)
        if place.type != self._kind or place.index >= self._n_devices:
            raise RuntimeError(f"invalid device ordinal: {place}")
        return place

    def _put(self, tensor: torch.Tensor, place: torch.device) -> torch.Tensor:
        """Give a tensor its place.

        Raises:
            TypeError: The device has no numbers of that type.
        """
        if place.type == "mps" and tensor.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        if place != place_of(tensor):
            vars(tensor)["place"] = place
        return tensor


def _real(place: torch.device) -> torch.device:
    """Return where the numbers are."""
    return place if place.type == "meta" else CPU


FREE: Final = 3 << 30  # bytes of each device
_OF_CUDA: Final[dict[str, object]] = {
    "is_available": lambda: True,
    "mem_get_info": lambda _=None: (FREE, 2 * FREE),
    "memory_reserved": lambda _=None: 0,
    "memory_allocated": lambda _=None: 0,
    "empty_cache": lambda: None,
    "synchronize": lambda _=None: None,
    "get_device_name": lambda _=None: "a double",
    "get_rng_state": lambda _=None: torch.get_rng_state(),
    "set_rng_state": lambda _state, _=None: None,
}


@contextmanager
def accelerators(n_devices: int = 1, kind: str = "cuda") -> Iterator[Accelerators]:
    """Have so many devices of a kind, CUDA's or Apple's, in a block."""
    new = nn.Parameter.__new__

    def placed(cls: type[nn.Parameter], data: torch.Tensor, requires_grad: bool = True) -> object:
        """Make a parameter where its data is: torch tells nobody that it makes one."""
        made = new(cls, data, requires_grad)
        vars(made)["place"] = place_of(data)
        return made

    with pytest.MonkeyPatch.context() as patch, Accelerators(n_devices, kind) as devices:
        patch.setattr(nn.Parameter, "__new__", placed)
        if kind == "cuda":
            patch.setattr(torch.cuda, "device_count", lambda: n_devices)
            for name, value in _OF_CUDA.items():
                patch.setattr(torch.cuda, name, value)
        else:
            patch.setattr(torch.backends.mps, "is_available", lambda: True)
        yield devices
