"""What the tests share: pipelines, and a look at processes."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator

import leat
import pytest

PIPELINES = Path(__file__).parent / "pipelines.ts"
# The package that is tested, and whatever else this process finds.
SOURCES = os.pathsep.join([str(Path(leat.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
DEADLINE_SECONDS = 120


def children_of(parent: int, program: bytes = b"cli/python/helper.ts") -> list[int]:
    """The processes of a program that a process has started; by default helpers."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and program in command and fields[0] != "Z":
            found.append(int(entry))
    return found


def named(text: str) -> list[int]:
    """The processes whose command line has a text, such as the folder of their slots."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and text.encode() in Path(f"/proc/{entry}/cmdline").read_bytes():
                found.append(int(entry))
        except OSError:
            continue
    return found


def is_alive(process: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that leaves a process or a slot folder behind, its own or of a program that it runs."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tempfile.tempdir = None
    yield
    gc.collect()
    tempfile.tempdir = None
    assert children_of(os.getpid()) == []
    # Those of killed programs end by themselves.
    until(lambda: named(f"{tmp_path}/leat-slots-") == [])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("leat-slots-")] == []
