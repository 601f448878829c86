"""A fake of the Hugging Face Hub: the routes that its clients need for a model or a data set."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tests.providers.loopback import Handler, LoopbackFake

MAIN: Final = "main"


@dataclass
class Repository:
    """A model or a data set: the files of each commit, and which one a branch or tag names."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    is_gated: bool = False
    is_withheld: bool = False  # no content of a file is given

    def commit(self, files: Mapping[str, bytes], *refs: str) -> str:
        """Add a commit, which branches or tags name from now on; return its hash."""
        commit = sha1(repr((len(self.commits), sorted(files.items()))).encode()).hexdigest()  # noqa: S324  # as git
        self.commits[commit] = dict(files)
        self.refs |= dict.fromkeys(refs, commit)
        return commit

    def at(self, revision: str) -> str | None:
        """Return the commit that a revision names; None: there is no such revision."""
        commit = self.refs.get(revision, revision)
        return commit if commit in self.commits else None


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


class FakeHub(LoopbackFake):
    """Serves its repositories as long as its block lasts."""

    def __init__(self) -> None:
        """Begin without a repository."""
        self.repositories: dict[str, Repository] = {}
        self.fetched: list[str] = []  # files whose contents were sent
        super().__init__(_Handler, hub=self)

    @property
    def endpoint(self) -> str:
        """The address, as HF_ENDPOINT has it."""
        return f"http://127.0.0.1:{self.port}"


class _Handler(Handler):
    """Answers as huggingface.co: an error is named in a header."""

    hub: FakeHub

    def serve(self) -> None:
        """Answer."""
        match unquote(urlsplit(self.path).path).strip("/").split("/"):
            case ["api", "datasets", _, _, "tree", _, _, *_]:
                self._refuse(404, "EntryNotFound")  # no file is in a folder
            case [
                "api",
                "models" | "datasets",
                owner,
                name,
                "revision" | "tree" as kind,
                *revision,
            ]:
                self._describe(f"{owner}/{name}", kind, "/".join(revision))
            case ["api", "datasets", owner, name]:
                self._describe(f"{owner}/{name}", "revision", MAIN)
            case [owner, name, "resolve", revision, file]:
                self._send_file(f"{owner}/{name}", revision, file)
            case ["datasets", owner, name, "resolve", revision, file]:
                self._send_file(f"{owner}/{name}", revision, file)
            case _:
                self._refuse(404, "EntryNotFound")

    def _describe(self, name: str, kind: str, revision: str) -> None:
        """Tell the commit of a revision, or its files."""
        if (found := self._found(name, revision)) is None:
            return
        repository, commit = found
        sizes = {path: len(content) for path, content in repository.commits[commit].items()}
        tree = [
            {"type": "file", "path": path, "size": size, "oid": commit}
            for path, size in sizes.items()
        ]
        info = {"id": name, "sha": commit, "siblings": [{"rfilename": path} for path in sizes]}
        self._send(json.dumps(tree if kind == "tree" else info).encode())

    def _send_file(self, name: str, revision: str, file: str) -> None:
        if (found := self._found(name, revision)) is None:
            return
        repository, commit = found
        content = repository.commits[commit].get(file)
        if content is None:
            self._refuse(404, "EntryNotFound")
            return
        if repository.is_withheld:
            self._refuse(403, "")
            return
        if self.command == "GET":
            self.hub.fetched.append(file)
        etag = sha1(content).hexdigest()  # noqa: S324  # as git
        self._send(content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})

    def _found(self, name: str, revision: str) -> tuple[Repository, str] | None:
        """Return a model and the commit of a revision; None: the request is refused."""
        repository = self.hub.repositories.get(name)
        if repository is None:
            self._refuse(401, "RepoNotFound")  # as of a private one
        elif repository.is_gated:
            self._refuse(403, "GatedRepo")
        elif (commit := repository.at(revision)) is None:
            self._refuse(404, "RevisionNotFound")
        else:
            return repository, commit
        return None

    def _send(self, content: bytes, headers: Mapping[str, str] = {}) -> None:
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()
