"""Functions that the pipelines of the tests call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from os import getppid as getppid
from typing import Any

import leat
import numpy as np
from operands import doubled as doubled


def augment(batch: dict[str, Any], rng: np.random.Generator, scale: float = 1.0) -> dict[str, Any]:
    """Scales the values, and adds a random number."""
    return {"x": scale * batch["x"], "r": rng.random(), "process": os.getpid()}


def hides(x: int) -> int:
    """A local name like that of an import."""
    doubled = 2 * x
    return doubled


def same(element: Any) -> Any:
    """What it gets."""
    return element


def text(x: int) -> Any:
    """Kinds of values that an element has only in Python."""
    print(f"text of {x}")
    return {
        **{"words": np.array(["a", f"{x}"]), "blobs": np.array([b"\0", b"ab"], dtype=object), "pair": (1, None), "half": np.float16(0.5)},
        **{"large": np.full((300, 1_000), x), "turned": np.arange(6).reshape(2, 3).T, "bytes": b"abc"},
        "ragged": leat.Ragged(np.array([1.5, 2.5]), np.array([0, 0, 2])),
    }


def label(x: int) -> Any:
    """One number, as kinds of numbers."""
    numpy = {"int64": np.int64(x % 2), "uint8": np.uint8(x % 2), "float32": np.float32(x % 2), "flag": np.bool_(x % 2)}
    return {**numpy, "int": int(x % 2), "yes": x % 2 == 1}


def beyond(x: int) -> Any:
    """An integer that no float64 has, and a list."""
    return {"id": 2**53 + 1 + x, "list": [x, (2.5, np.zeros(2, np.float32))]}


def fail_at_7(x: int) -> int:
    """Fails at 7."""
    return check(x)


def check(x: int) -> int:
    """Fails at 7."""
    if x == 7:
        raise ValueError(f"no {x} today")
    return x


def die_at_7(x: int) -> int:
    """Ends its process at 7."""
    if x == 7:
        print("seven")
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def prints(x: int) -> int:
    """Writes a line and a part of the next one, at once."""
    print(f"line of {x}\nrest of {x}", end="")
    return x


def signalled_at_7(x: int) -> Any:
    """Gets at 7 the signals that stop a group's processes. Returns how a process that it forks ends by one."""
    if x != 7:
        return x
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    return -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def orphan_at_7(x: int) -> int:
    """Ends its process at 7, and leaves one behind that has its output open."""
    if x == 7:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", f"orphan of {tempfile.gettempdir()}"])
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def proto_at_7(x: int) -> Any:
    """Returns at 7 a key that no message can have."""
    return {"__proto__": 1} if x == 7 else x


def ragged_at_7(x: int) -> Any:
    """Returns at 7 rows that do not end where their values do."""
    return leat.Ragged(np.zeros(2), np.array([0, 5])) if x == 7 else x


def is_odd(x: int) -> bool:
    """For `filter`."""
    return x % 2 == 1


def unsendable(x: int) -> Any:
    """What no message can have, in results and errors."""
    if x == 1:
        raise FileNotFoundError("no \udcff")
    return ["\ud800", None, 10**30, x][x]


def zeros(size: int) -> np.ndarray[Any, Any]:
    """That many bytes."""
    return np.zeros(size, dtype=np.uint8)


class Inheriting(dict[str, Any]):
    """A class of this file, whose constructor is another's."""


def unknown(x: int) -> object:
    """What no element can have."""
    return object()


def spoil(x: int, mean: Any, seen: Any) -> Any:
    """Changes its captures."""
    seen["all"].append(x)
    if x == 1:
        mean *= 2
    return [*seen["all"], mean[0]]


def endless(x: int) -> int:
    """Never ends."""
    while True:
        time.sleep(0.01)


def libraries(x: int) -> str:
    """Where its process looks for shared libraries."""
    return os.environ["LD_LIBRARY_PATH"]


def process(x: int) -> int:
    """The process that calls it."""
    return os.getpid()
