"""Batches that are moved to a device before the program asks for them."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Iterator

from ._errors import LeatError
from ._loader import Loader
from ._stream import Position


class Ahead(Iterator[Any]):
    """An epoch of a loader that moves up to `count` batches ahead of the program.

    The program's thread takes batches from the helper. Only `move` runs on `thread`, if there is one.
    """

    def __init__(
        self, loader: Loader, move: Callable[[Any], Any], count: int, thread: ThreadPoolExecutor | None = None
    ) -> None:
        self._loader = loader
        self._move = move
        self._count = count
        self._thread = thread
        self._begin()

    def _begin(self) -> None:
        self._batches = iter(self._loader)
        if self._count > 0:
            self._batches._keep()
        # The moved batches, each with the position after it.
        self._moved: deque[tuple[Future[Any], Position | None]] = deque()
        # The batch that is being moved. It stays here if Ctrl-C or another signal interrupts that.
        self._unmoved: tuple[Any, ...] = ()
        # The error after the moved batches, or StopIteration.
        self._failure: LeatError | StopIteration | None = None
        # The position after the last batch that the program got. None: the loader's own position.
        self._position: Position | None = None

    def __next__(self) -> Any:
        if self._loader._connection.is_open:
            self._loader._connection.helper.require_own_process()  # In a fork, no thread would finish a move.
        if self._position is not None:
            # Not when a batch is given: a signal that comes then may cost the batch.
            self._position.stream.forget(self._position.given)
        while self._failure is None and len(self._moved) <= self._count:
            try:
                if not self._unmoved:
                    if self._position is None and not self._moved:
                        self._position = self._batches._position()
                    self._unmoved = (next(self._batches),)
                moved = self._begin_move(self._unmoved[0])
            except (LeatError, StopIteration) as error:
                self._failure = error  # Any other one may be of a signal handler: it is raised at once.
            else:
                position = self._batches._position() if self._count else None
                self._unmoved = ()
                self._moved.append((moved, position))
        if self._moved:
            self._moved[0][0].exception()  # Waits. Ctrl-C may interrupt this: then the batch stays here.
            moved, self._position = self._moved.popleft()
            return moved.result()
        self._position = None
        failure, self._failure = self._failure, None
        assert failure is not None
        raise failure

    def _begin_move(self, batch: Any) -> Future[Any]:
        if self._thread is not None:
            try:
                return self._thread.submit(self._move, batch)
            except RuntimeError:
                pass  # The main thread has ended, and Python starts no more threads.
        moved: Future[Any] = Future()
        try:
            moved.set_result(self._move(batch))
        except LeatError as error:
            moved.set_exception(error)
        return moved

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that the program got."""
        if self._position is not None and (self._count > 0 or self._position.known is not None):
            return self._batches._state(self._position)
        if self._unmoved:
            # Ctrl-C has interrupted the move of a batch, which the stream has not kept.
            raise LeatError("failed_precondition", "A batch is still being copied: call next() again, then save the position")
        return self._loader.state_dict()
