"""Batches that are moved to a device before the program asks for them."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterator

from ._checkpoint import Checkpoint
from ._loader import Loader


class Ahead(Iterator[Any]):
    """An epoch of a loader, of which up to `count` further batches have been moved."""

    def __init__(self, loader: Loader, move: Callable[[Any], Any], count: int) -> None:
        self._loader = loader
        self._move = move
        self._count = count
        self._begin()

    def _begin(self) -> None:
        self._batches = iter(self._loader)
        # Each with the position after it.
        self._moved: deque[tuple[Any, Checkpoint | None]] = deque()
        # The error after them, or the end.
        self._failure: Exception | None = None
        # The position after the batch that the program has, where later ones were taken.
        self._position: Checkpoint | None = None

    def __next__(self) -> Any:
        while self._failure is None and len(self._moved) <= self._count:
            if self._moved and self._moved[-1][1] is None:
                break  # A position that is costly to save: nothing is read beyond it.
            try:
                moved = self._move(next(self._batches))
            except Exception as error:
                self._failure = error
            else:
                self._moved.append((moved, self._loader._cheap_checkpoint() if self._count else None))
        if self._moved:
            moved, self._position = self._moved.popleft()
            return moved
        self._position = None
        failure, self._failure = self._failure, None
        assert failure is not None
        raise failure

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that the program got."""
        return self._loader.state_dict() if self._position is None else self._position.to_dict()
