"""Where the runtime and Leat's own sources are, and how programs are started with them."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Sequence

from deno import find_deno_bin  # type: ignore[import-untyped]

from ._errors import LeatError

AWS_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
)  # fmt: skip
# The permissions of a helper, by kind. None means all of that kind.
HELPER_PERMISSIONS: dict[str, tuple[str, ...] | None] = {
    "read": None,
    "ffi": None,
    "sys": ("cpus", "hostname", "networkInterfaces", "systemMemoryInfo"),
    "env": AWS_VARIABLES,
}
PERMISSIONS = ("env", "ffi", "import", "net", "read", "run", "sys", "write")


@cache
def sources() -> Path:
    """The top of Leat's own tree: in the installed package, or the clone that this file is in."""
    here = Path(__file__).resolve().parent
    for top in (here / "_sources", here.parents[2]):
        if (top / "mod.ts").exists():
            return top
    raise LeatError("failed_precondition", f"Leat's own sources are not in {here}: install the package again")


@cache
def deno() -> str:
    """The Deno that the package `deno` brings."""
    return str(find_deno_bin())


@cache
def _config_flags() -> tuple[str, ...]:
    # A copy of the lock file, because a pipeline may import packages that Leat does not.
    top = sources()
    locked = (top / "deno.lock").read_bytes()
    flags = ("--quiet", "--no-prompt", f"--config={top / 'deno.json'}")
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        lock = home / "leat" / f"deno-{hashlib.sha256(locked).hexdigest()[:16]}.lock"
        if not lock.exists():
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle, copy = tempfile.mkstemp(dir=lock.parent)
            os.close(handle)
            shutil.copyfile(top / "deno.lock", copy)
            os.replace(copy, lock)
        return (*flags, f"--lock={lock}")
    except (OSError, RuntimeError):  # There is no home, or it is read-only.
        return (*flags, "--frozen")


def environment() -> dict[str, str]:
    """The environment of a program of Leat."""
    return {**os.environ, "DENO_NO_UPDATE_CHECK": "1"}


def cli_command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command line `leat ARGUMENTS`, and its environment.

    A worker with `--allow-python` or `--no-sandbox` may run Python functions in this Python.
    """
    # Programs of a cluster start processes with the `deno` on their PATH, and this Python if they may.
    folders = [os.path.dirname(deno()), os.environ.get("PATH", os.defpath)]
    flags = ["-P=server"]
    if any(argument.startswith(("--allow-python", "--no-sandbox")) for argument in arguments):
        folders.insert(0, os.path.dirname(sys.executable))
        flags.append("--allow-run=deno,python3")
    program = str(sources() / "cli" / "leat.ts")
    path = os.pathsep.join(folders)
    return [deno(), "run", *_config_flags(), *flags, program, *arguments], {**environment(), "PATH": path}


def helper_command(read: Path, written: Path, allow: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """The command line of a helper.

    Args:
        read: The slot file that it reads.
        written: The slot file that it writes.
        allow: Further permissions, such as `net=example.org`, and `python`.
        arguments: The name and the incarnation of its node.
    """
    granted = {**HELPER_PERMISSIONS, "write": (str(written),)}
    for permission in allow:
        if permission in ("python", "run=deno"):
            # With the full path, because the program may not be on the PATH.
            permission = f"run={sys.executable if permission == 'python' else deno()}"
            # There the helper makes the slot files that it shares with the processes it starts.
            _grant(granted, "write", tempfile.gettempdir())
        kind, equals, value = permission.partition("=")
        if kind not in PERMISSIONS or (equals and not value):
            raise LeatError(
                "invalid_argument",
                f"allow has '{permission}', which is not a permission of Deno. Give {', '.join(PERMISSIONS)}, "
                "each with or without values, as in 'net=example.org', or 'python'",
            )
        _grant(granted, kind, value)
    flags = [
        f"--allow-{kind}" if values is None else f"--allow-{kind}={','.join(values)}" for kind, values in granted.items()
    ]
    program = str(sources() / "cli" / "python" / "helper.ts")
    return [deno(), "run", *_config_flags(), *flags, program, str(read), str(written), *arguments]


def _grant(granted: dict[str, tuple[str, ...] | None], kind: str, value: str) -> None:
    """Adds a permission; without a value, all of its kind."""
    values = granted.get(kind, ())
    granted[kind] = (*values, value) if value and values is not None else None
