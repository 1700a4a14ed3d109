"""The helper of a loader, and its open requests."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from ._errors import LeatError, from_wire
from ._helper import Helper, Received

if TYPE_CHECKING:
    from ._stream import Stream


# The files with a container's memory limit on Linux: cgroup v2, then v1.
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Connection:
    """Starts a helper when it is needed, and gives batches to the stream that asked for them."""

    def __init__(self, request: dict[str, Any], memory: int | None, folder: str | None, allow: Sequence[str]) -> None:
        self._lock, self._lock_pid = threading.RLock(), os.getpid()
        # An entry for each thread that waits for the lock to close the helper. Any thread may change it.
        self._closing: deque[None] = deque()
        self.cardinality: float = -2
        # How many helpers were opened. The first one says the cardinality.
        self.helpers = 0
        self._request = request
        self._memory = memory
        self._folder = folder or tempfile.gettempdir()
        self._allow = allow
        self._helper: Helper | None = None
        self._last_number = 0
        # The streams that asked for batches, by the numbers of the requests.
        self._waiting: dict[int, Stream] = {}

    @property
    def lock(self) -> threading.RLock:
        """The lock that each call of the loader holds. Raises in a signal handler that interrupts such a call."""
        if self._lock_pid != os.getpid():
            # A fork: if another thread held the lock, or waited for it, nothing here would ever change that.
            self._lock, self._lock_pid = threading.RLock(), os.getpid()
            self._closing = deque()
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise LeatError(
                "failed_precondition",
                "A signal handler has interrupted another call of this loader, which must first return. Set a flag in "
                "the handler, and call the loader when the program sees the flag",
            )
        return self._lock

    @contextlib.contextmanager
    def lock_to_close(self) -> Iterator[None]:
        """Holds the lock. A call of another thread that waits for the helper ends with `cancelled`."""
        lock = self.lock
        self._closing.append(None)
        try:
            with lock:
                yield
        finally:
            self._closing.pop()

    def open(self) -> Helper:
        """The helper. Starts a new one if there is none, it has ended, or a call to it was interrupted."""
        helper = self._helper
        if helper is not None and (helper.is_usable or helper.pid != os.getpid()):
            return helper
        self.close()
        self._helper = Helper(self._allow, self._folder, lambda: len(self._closing) > 0)
        try:
            self.cardinality = float(self.ask("open", {**self._request, "python": sys.executable})["cardinality"])
            self.helpers += 1
        except BaseException:
            self.close()
            raise
        return self._helper

    @property
    def is_open(self) -> bool:
        """Whether a helper was started, here or in the process that this one was forked from."""
        return self._helper is not None

    @property
    def helper(self) -> Helper:
        """The helper that was opened."""
        if self._helper is None:
            raise LeatError("failed_precondition", "This loader is closed: iterate over it again")
        return self._helper

    @property
    def memory(self) -> int:
        """Limit of the bytes of large batches that the program keeps."""
        if self._memory is None:
            self._memory = _half_of_free_memory(self._folder)
        return self._memory

    def close_in_turn(self) -> None:
        """Ends the helper, also while another thread reads, such as a daemon thread at the end of the program."""
        with self.lock_to_close():
            self.close()

    def close(self) -> None:
        """Ends the helper. The caller holds the lock."""
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.close()
        waiting, self._waiting = self._waiting, {}
        for stream in waiting.values():
            stream.is_replaced = True

    def number(self) -> int:
        """A number for a request or a stream."""
        self._last_number += 1
        return self._last_number

    def take(self, stream: Stream) -> None:
        """Requests the next batches of a stream."""
        self._send("take", {"iteration": stream.number, "received": stream.received}, stream)

    def ask(self, method: str, body: dict[str, Any]) -> Any:
        """Sends a request, and returns the body of its answer. Batches that come before the answer are kept."""
        return self._answer(self._send(method, body))

    def receive(self) -> Received:
        """Waits for the next message. If a stream asked for it, the stream gets it, too."""
        return self.helper.receive(self._give)

    def _give(self, received: Received) -> None:
        if stream := self._waiting.pop(received.value["id"], None):
            stream.add(received)

    def _send(self, method: str, body: dict[str, Any], stream: Stream | None = None) -> int:
        number = self.number()
        if stream is not None:
            # Before the request is sent: the stream gets the answer even if Ctrl-C interrupts this call.
            self._waiting[number] = stream
        # A field without a value is absent, but None in a pipeline's arguments is one of their values.
        self.helper.ask(number, method, {key: value for key, value in body.items() if value is not None})
        return number

    def _answer(self, number: int) -> Any:
        while (received := self.receive()).value["id"] != number:
            pass
        if received.value["kind"] == "failure":
            raise from_wire(received.value["error"])
        return received.value.get("body")


def _half_of_free_memory(folder: str) -> int:
    """Half of the free memory, of the container's limit, or of the free space on the disk of the slots: the least of them."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    free = min(free, int(line.split()[1]) * 1024)
    except OSError:
        free = min(free, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    return min(free, *map(_limit_in, CONTAINER_LIMITS)) // 2


def _limit_in(file: str) -> int:
    """The limit in a file. Without a limit, v2 has "max", and v1 a number beyond any memory."""
    try:
        with open(file, encoding="ascii") as limit:
            return int(limit.read())
    except (OSError, ValueError):
        return sys.maxsize
