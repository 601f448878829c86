"""Where a ledger lies, and what makes it durable there.

On a network file system neither locks nor flushes can be relied on.
"""

import os
import re
from pathlib import Path
from typing import Final

NETWORK_KINDS: Final = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gfs2", "gpfs",
        "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs",
        "wekafs",
    }
)  # fmt: skip
_MOUNTS: Final = Path("/proc/self/mounts")


def network_kind(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of network file system a path is on; None where it is local or unknown.

    Args:
        path: A file that need not be there yet.
        mounts: The table of mounts, as Linux gives it; other systems have none.
    """
    if not mounts.exists():
        return None
    fields = (line.split() for line in mounts.read_text(errors="surrogateescape").splitlines())
    kinds = {Path(_unescaped(place)): kind for _, place, kind, *_ in fields}
    where = Path(os.path.realpath(path))
    kind = next((kinds[each] for each in (where, *where.parents) if each in kinds), None)
    return kind if kind in NETWORK_KINDS else None


def beside(path: Path, suffix: str) -> Path:
    """Return where a file's companion lies: beside the file itself, whatever link led there."""
    return Path(f"{os.path.realpath(path)}{suffix}")


def flush(path: Path) -> None:
    """Make a file durable, or a folder's names: flushing a new file alone keeps no name."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unescaped(place: str) -> str:
    """Read a mount's place; spaces and the like are three octal digits in it (fstab(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place)
