"""See, in this process, every operation by which SQLite changes a file or flushes it.

The SQLite that Python itself uses is changed in place: where it opens a file, the functions that
write, cut and flush it are replaced by ours, which hand each operation on. The side file -shm is
memory and passes by unseen: a power loss leaves nothing of it.
"""

import _sqlite3
import ctypes
import os
import sqlite3
from collections.abc import Callable
from ctypes import POINTER, addressof, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

import msgspec


class Create(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A file was made under a name."""

    name: str


class Delete(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A name was taken away."""

    name: str


class Write(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Bytes were put somewhere in a file."""

    name: str
    offset: int
    data: bytes


class Truncate(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A file was cut to a size."""

    name: str
    size: int


class Sync(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """All of a file was forced to the disk."""

    name: str


class SyncFolder(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """All names were forced to the disk."""


Operation = Create | Delete | Write | Truncate | Sync | SyncFolder
Around: TypeAlias = Callable[[Operation, Callable[[], int]], int]
"""Given an operation and what performs it, returns SQLite's result code."""

# Paths are pointers, which SQLite keeps: a `bytes` would be gone when the call returns.
_OPEN: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_DELETE: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
_WRITE: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_int)
_GET_SYSTEM_CALL: Final = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_char_p)
_SET_SYSTEM_CALL: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)
_OPEN_DIRECTORY: Final = ctypes.CFUNCTYPE(c_int, c_char_p, POINTER(c_int))


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`, of which only these are replaced."""

    _fields_: ClassVar[Any] = [
        ("version", c_int),
        ("close_and_read", c_void_p * 2),
        ("write", _WRITE),
        ("truncate", _TRUNCATE),
        ("sync", _SYNC),
        ("others", c_void_p * 13),
    ]


class _File(ctypes.Structure):
    _fields_: ClassVar[Any] = [("methods", POINTER(_Methods))]


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs`."""

    _fields_: ClassVar[Any] = [
        ("numbers", c_int * 3),
        ("next_name_and_data", c_void_p * 3),
        ("open", _OPEN),
        ("delete", _DELETE),
        ("others", c_void_p * 11),
        ("set_system_call", _SET_SYSTEM_CALL),
        ("get_system_call", _GET_SYSTEM_CALL),
    ]


class Observer:
    """Hands every operation of this process's SQLite on; to be kept as long as the process."""

    def __init__(self, around: Around) -> None:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        self._vfs = library.sqlite3_vfs_find(None).contents
        self._around = around
        self._names: dict[int, str] = {}  # by the file's address
        self._methods: dict[int, _Methods] = {}  # ours, by the address of SQLite's
        self._open, self._delete = _copy(self._vfs.open), _copy(self._vfs.delete)
        self._ours = _OPEN(self._on_open), _DELETE(self._on_delete)  # C keeps no reference
        self._vfs.open, self._vfs.delete = self._ours
        self._observe_folders()

    def _observe_folders(self) -> None:
        """SQLite opens a folder for nothing but to flush it."""
        name = b"openDirectory"
        open_directory = _OPEN_DIRECTORY(self._vfs.get_system_call(addressof(self._vfs), name))

        def on_open_directory(path: bytes, handle: Any) -> int:  # noqa: ANN401  # a C pointer
            return self._around(SyncFolder(), lambda: open_directory(path, handle))

        self._on_open_directory = _OPEN_DIRECTORY(on_open_directory)
        address = ctypes.cast(self._on_open_directory, c_void_p)
        self._vfs.set_system_call(addressof(self._vfs), name, address)

    def _on_open(self, vfs: int, path: int | None, file: int, flags: int, out: Any) -> int:  # noqa: ANN401
        if path is None:  # a temporary file
            return int(self._open(vfs, path, file, flags, out))
        is_new = not _path_at(path).exists()
        code = int(self._open(vfs, path, file, flags, out))
        if code == sqlite3.SQLITE_OK:
            self._names[file] = _path_at(path).name
            self._replace_methods(_File.from_address(file))
            if is_new:
                self._around(Create(self._names[file]), lambda: code)
        return code

    def _on_delete(self, vfs: int, path: int, syncs_folder: int) -> int:
        delete = Delete(_path_at(path).name)
        return self._around(delete, lambda: int(self._delete(vfs, path, syncs_folder)))

    def _replace_methods(self, file: _File) -> None:
        theirs = file.methods.contents
        address = addressof(theirs)
        if address not in self._methods:
            self._methods[address] = self._observed(theirs)
        file.methods = ctypes.pointer(self._methods[address])

    def _observed(self, theirs: _Methods) -> _Methods:
        """Copy the methods of a kind of file, with ours around those that change it."""
        write, truncate, sync = _copy(theirs.write), _copy(theirs.truncate), _copy(theirs.sync)

        def on_write(file: int, data: int, n_bytes: int, offset: int) -> int:
            operation = Write(self._names[file], offset, ctypes.string_at(data, n_bytes))
            return self._around(operation, lambda: write(file, data, n_bytes, offset))

        def on_truncate(file: int, size: int) -> int:
            return self._around(Truncate(self._names[file], size), lambda: truncate(file, size))

        def on_sync(file: int, flags: int) -> int:
            return self._around(Sync(self._names[file]), lambda: sync(file, flags))

        ours = _Methods.from_buffer_copy(theirs)
        ours.write, ours.truncate, ours.sync = (
            _WRITE(on_write),
            _TRUNCATE(on_truncate),
            _SYNC(on_sync),
        )
        return ours


def _path_at(address: int) -> Path:
    return Path(os.fsdecode(ctypes.string_at(address)))


def _copy(function: Any) -> Any:  # noqa: ANN401  # a C function
    """Return a function that stays what it is when the field that it was read from changes."""
    return type(function)(ctypes.cast(function, c_void_p).value)
