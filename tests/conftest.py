"""Fixtures that every package's tests may use."""

import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from datetime import timedelta
from http.client import HTTPConnection, HTTPResponse
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Final

import httpx2
import pytest
from coverage import Coverage
from hypothesis import HealthCheck, is_hypothesis_test, settings

import ledger as _ledger
import projections as _projections
from ledger.store import Ledger
from tests.providers.loopback import TOO_LATE
from tests.support import spared_pandas  # noqa: F401  # a worker makes ledgers, and few frames
from tests.support.builders.events import NOON
from tests.support.command_line.warm import MANY_OBJECTS, share_stove

_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # nothing of a test need outlast a power cut

_TRACED: Final = pytest.StashKey[Coverage]()  # only where coverage is measured

_ROOM: Final = 4 << 30  # bytes: a container may have a few MB only

_BEGUN: Final = set[Path]()  # files of tests, where coverage is measured

# The fakes speak plain HTTP. Reading the certificates of all authorities takes each client 20 ms;
# here, and in every process that is begun from here, clients read that of nobody.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "nobody.pem")

# While tests are collected, all that is made stays: nothing is looked for in it, then or later.
gc.disable()

# A flush of a disk takes milliseconds, and tests wait for tens of thousands of them.
if _IN_MEMORY.is_dir() and disk_usage(_IN_MEMORY).free > _ROOM:
    tempfile.tempdir = os.environ["TMPDIR"] = str(_IN_MEMORY)

share_stove()  # each takes seconds to begin, and as much memory as all workers together

# No test asks the Hugging Face Hub. Its client reads this once, when it is imported.
os.environ["HF_HUB_OFFLINE"] = "1"

# A busy machine draws examples slowly, and finds no other fault for that.
_AT_LEISURE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", _AT_LEISURE, max_examples=8, derandomize=True)
settings.register_profile("nightly", _AT_LEISURE, max_examples=100)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Trace no law: it draws many examples, and those by hand run the same lines."""
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker("no_cover")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Trace how our modules are loaded, and not how tests are found."""
    if traced := Coverage.current():
        for package in (_ledger, _projections):
            for found in walk_packages(package.__path__, f"{package.__name__}."):
                import_module(found.name)
        traced.stop()
        session.config.stash[_TRACED] = traced


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, and no longer in modules and their tests."""
    gc.freeze()
    gc.set_threshold(MANY_OBJECTS)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each file begin without what others left: its lines are traced, whoever ran first."""
    if item.config.stash.get(_TRACED, None) and item.path not in _BEGUN:
        _BEGUN.add(item.path)
        modules = [each for name, each in sys.modules.items() if name.startswith("projections.")]
        for value in [value for module in modules for value in vars(module).values()]:
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Trace what a test does, and neither pytest nor fixtures: that takes as long as the test."""
    traced = item.config.stash.get(_TRACED, None)
    if traced is None:
        return (yield)
    traced.start()
    try:
        return (yield)
    finally:
        traced.stop()


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Give an empty ledger in memory, whose clock moves a second at each append."""
    ticks = iter(range(10**9))
    with Ledger.in_memory(now=lambda: NOON + timedelta(seconds=next(ticks))) as opened:
        yield opened


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Give a folder that every user may enter; pytest's own is for its user only."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients time out on the answers that a fake marks as too late, and on no others.

    With a timeout of their own they would do so on any answer, were the machine busy enough.
    """
    send, hear = httpx2.HTTPTransport.handle_request, HTTPConnection.getresponse

    def handle_request(transport: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
        response = send(transport, request)
        if TOO_LATE in response.headers:
            response.close()
            raise httpx2.ReadTimeout("timed out", request=request)
        return response

    def getresponse(connection: HTTPConnection) -> HTTPResponse:
        response = hear(connection)
        if TOO_LATE in response.headers:
            response.close()
            raise TimeoutError("timed out")
        return response

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", handle_request)
    monkeypatch.setattr(HTTPConnection, "getresponse", getresponse)
