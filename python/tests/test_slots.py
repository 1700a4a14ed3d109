"""The slots of a helper's messages."""

from __future__ import annotations

import gc
import sys
from collections import deque
from types import FrameType
from typing import Any

import numpy as np
import pytest
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
