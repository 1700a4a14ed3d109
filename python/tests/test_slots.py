"""The slots of a helper's messages."""

from __future__ import annotations

import gc
import sys
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from leat import _connection
from leat._slots import Lease


def test_a_lease_whose_constructor_is_interrupted_at_any_line_ends_without_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    left = 0

    def interrupt(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code is not Lease.__init__.__code__:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return interrupt

    lines = 0
    freed: deque[int] = deque()
    while not freed:
        left = lines
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            Lease(np.zeros(1, dtype=np.uint8), 1, 7, freed)
        except KeyboardInterrupt:
            lines += 1
        finally:
            sys.settrace(before)
        gc.collect()
    assert lines > 0 and complaints == [] and list(freed) == [7]


def test_the_limit_of_a_container_bounds_the_default_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [str(tmp_path / name) for name in ("memory.max", "memory.limit_in_bytes", "missing")]
    monkeypatch.setattr(_connection, "CONTAINER_LIMITS", limits)
    for version_2, version_1, is_bounded in (("4096\n", "max\n", True), ("max\n", "4096\n", True), ("max\n", f"{2**63 - 4096}\n", False)):
        Path(limits[0]).write_text(version_2)
        Path(limits[1]).write_text(version_1)
        assert (_connection._half_of_free_memory(str(tmp_path)) == 2048) == is_bounded
