"""Batches that are moved to a device before the program asks for them."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Iterator

from ._checkpoint import Checkpoint
from ._errors import LeatError
from ._loader import Loader


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
        # The moved batches, each with the position after it; None if that is costly to save.
        self._moved: deque[tuple[Future[Any], Checkpoint | None]] = deque()
        # The batch that is being moved. It stays here if Ctrl-C or another signal interrupts that.
        self._unmoved: tuple[Any, ...] = ()
        # The error after the moved batches, or StopIteration.
        self._failure: LeatError | StopIteration | None = None
        # The position after the last batch that the program got. None: the loader's own position, or one that is
        # costly to save.
        self._position: Checkpoint | None = None

    def __next__(self) -> Any:
        if self._loader._connection.is_open:
            self._loader._connection.helper.require_own_process()  # In a fork, no thread would finish a move.
        while self._failure is None and len(self._moved) <= self._count:
            if self._moved and self._moved[-1][1] is None and not self._loader._is_unsavable:
                break  # The position is costly to save later: nothing is read beyond it.
            if self._moved and self._loader._reuse:
                self._moved[-1][0].exception()  # The next batch may be written where this one is read.
            try:
                if not self._unmoved:
                    if self._position is None and not self._moved:
                        self._position = self._loader._cheap_checkpoint()
                    self._unmoved = (next(self._batches),)
                moved = self._begin_move(self._unmoved[0])
            except (LeatError, StopIteration) as error:
                self._failure = error  # Any other one may be of a signal handler: it is raised at once.
            else:
                position = self._loader._cheap_checkpoint() if self._count else None
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
        if self._position is not None:
            return self._loader._stored(self._position)
        if self._unmoved:
            # Ctrl-C has interrupted the move of a batch, and the loader's position is beyond that batch.
            raise LeatError("failed_precondition", "A batch is still being copied: call next() again, then save the position")
        state = self._loader.state_dict()
        if self._moved and self._moved[-1][1] is None and self._loader._is_unsavable:
            # A later attempt has succeeded, but that position is beyond batches that the program has not got.
            raise LeatError("failed_precondition", "The position cannot be saved while batches are copied ahead: use prefetch=0")
        return state
