"""The folder of slot files, which have names only until the helper has opened them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Iterator

from ._errors import LeatError

# The same names as in TypeScript: each side removes folders that the other has left.
PREFIX = "leat-slots-"
LOCK = "lock"
# Deno opens files there only with all permissions.
SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")

# The folders in which this process has looked for leftovers.
_looked: set[str] = set()


@contextlib.contextmanager
def slot_folder(parent: str) -> Iterator[Path]:
    """A folder that only this user can open. If this process is killed, a later loader removes the folder.

    Raises:
        LeatError: `not_found`, `permission_denied` or another code if it cannot be made in `parent`.
    """
    _require_usable(parent)
    if parent not in _looked:
        _looked.add(parent)
        _remove_left(parent)
    try:
        folder, lock = _locked(parent)
    except OSError as error:
        raise _unusable(parent, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _require_usable(parent: str) -> None:
    real = os.path.realpath(parent)
    if "," in parent:
        raise LeatError("invalid_argument", f"The slots cannot be in {parent}, because Deno separates paths by commas: give another folder=")
    for folder in SYSTEM_FOLDERS:
        if real == folder or real.startswith(folder + os.sep):
            raise LeatError(
                "invalid_argument",
                f"The slots cannot be in {parent}, because Deno writes to no files in {folder}: give folder=, or the "
                "environment variable TMPDIR, with another tmpfs (such as /run/user/UID) or a folder on a disk",
            )


def _unusable(parent: str, error: OSError) -> LeatError:
    codes = {
        **{errno.ENOENT: "not_found", errno.ENOSPC: "resource_exhausted", errno.EDQUOT: "resource_exhausted"},
        **{errno.EACCES: "permission_denied", errno.EPERM: "permission_denied", errno.EROFS: "permission_denied"},
    }
    return LeatError(
        codes.get(error.errno or 0, "invalid_argument"),
        f"The files of shared memory cannot be made in {parent}: {error.strerror}. Give another folder=",
    )


def _locked(parent: str) -> tuple[Path, int]:
    """A new folder, and a lock on it that ends with this process."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # Another process removed the folder, because it had no lock yet.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / LOCK).exists():
            return folder, lock
        os.close(lock)


def _remove_left(parent: str) -> None:
    """Removes the folders of this user's processes that were killed while a loader started.

    Folders of other users stay, even for root: their owners may change them at any time.
    """
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            # Folders that are nested too deep for `rmtree` are no loader's.
            with contextlib.suppress(OSError, RecursionError):
                if entry.name.startswith(PREFIX) and _is_own_folder(entry.path):
                    _remove_if_left(entry.path)


def _is_own_folder(path: str) -> bool:
    found = os.lstat(path)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove_if_left(path: str) -> None:
    if not os.listdir(path):
        return os.rmdir(path)  # Its process was killed before it made the lock.
    lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
