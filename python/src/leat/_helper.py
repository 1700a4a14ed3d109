"""The helper: a Deno process that runs a pipeline or a client. Messages go through two pipes and two
files, as `docs/wire.md` specifies."""

from __future__ import annotations

import codecs
import errno
import fcntl
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Callable, Sequence, TypeGuard

import numpy as np

from ._deno import environment, helper_command
from ._errors import LeatError, from_wire
from ._folder import slot_folder
from ._frames import FREED, HEADER, PIPED, PIPED_BYTES_MAX, freed, in_slot, piped
from ._slots import SLOT_BYTES_MAX, SLOTS, Lease, SlotFile
from ._wire import MALFORMED, Bytes, decode, encode

PIPE_BYTES = 2**20
STDERR_CHARS = 4_096
# Time for the helper to leave a service and to end, in seconds.
ENDING_SECONDS = 3.0
# How soon a call that waits notices that another thread closes the loader.
CLOSING_MS = 50
# After this time, a message says why the first batch does not come.
SLOW_START_MS = 5_000
# Time to receive the reason that a helper sends before it reads no more requests.
LAST_WORD_MS = 5_000
NOT_CACHED = (
    "The first loader on a machine downloads Leat's npm packages, and the registry cannot be reached: run it once with "
    "a network, name another registry in NPM_CONFIG_REGISTRY, or copy the folder DENO_DIR of a machine that has them"
)


class Received:
    """A message: its value, its bytes, and the lease if they are in a slot. Arrays of the value are views of the bytes."""

    __slots__ = ("bytes", "lease", "value")

    def __init__(self, message: Bytes, lease: Lease | None) -> None:
        self.bytes = message
        self.lease = lease
        self.value = decode(message)


class Helper:
    """One helper process. Its methods are called by one thread at a time.

    `is_closing` says whether another thread waits to close it: a call then waits no longer.
    """

    def __init__(self, allow: Sequence[str], folder: str, is_closing: Callable[[], bool] = lambda: False) -> None:
        self.pid = os.getpid()
        self._is_closing = is_closing
        self._node = {"node": "python", "path": "/edge", "incarnation": f"{secrets.token_hex(8)}-1"}
        self._remote = {"node": "leat", "path": "/edge"}
        self._number = 0
        self._input = bytearray()
        self._at = 0
        # True while a message is partly sent or received. If Ctrl-C interrupts that, it stays True, and the
        # helper cannot be used any more.
        self._is_mid_message = False
        # Why the helper has ended, if it has.
        self._ended: LeatError | None = None
        with slot_folder(folder) as where:
            self._process = self._start(where, allow)
            try:
                self._greet()
            except BaseException:
                self._process.end()
                raise

    def _start(self, where: Path, allow: Sequence[str]) -> Process:
        down, up = where / "down", where / "up"
        command = helper_command(down, up, allow, ["leat", secrets.token_hex(8)])
        opened: list[int] = []
        try:
            for path in (down, up):
                opened.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self.slots = SlotFile(opened[1])
            return Process(command, opened)
        except BaseException as error:
            for descriptor in opened:
                os.close(descriptor)
            if _is_of_system(error):
                raise _cannot_start(error) from error
            raise

    def _greet(self) -> None:
        hello = {
            **{"kind": "hello", "version": 1, "role": "listener", "node": "python"},
            **{"incarnation": self._node["incarnation"][:-2], "messageBytesMax": SLOT_BYTES_MAX, "slots": SLOTS},
        }
        self._write(piped(encode(hello)))
        if not self._wait(SLOW_START_MS):
            _show("leat: the helper is still starting; the first loader on a machine downloads Leat's npm packages\n")
        # The helper has both files open when it says hello.
        if self.receive().value.get("kind") != "hello":
            raise LeatError("internal", "The helper's first message is not a hello")

    @property
    def is_interrupted(self) -> bool:
        """Whether a message was interrupted half-way in this process."""
        return self._is_mid_message and self._ended is None and self.pid == os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether the helper runs, and no message was interrupted half-way."""
        return not self._is_mid_message and self._process.is_running

    def ask(self, identifier: int, method: str, body: dict[str, Any]) -> None:
        """Sends a request."""
        self.check()
        asked: dict[str, Any] = {"kind": "ask", "source": self._node, "target": self._remote, "method": method}
        number = self._number + 1
        message = encode({**asked, "number": number, "id": identifier, "body": body, "timeoutMs": float("inf")})
        frame = piped(message) if len(message) <= PIPED_BYTES_MAX else self._in_slot(message)
        self._is_mid_message = True
        self._number = number
        self._write(frame)
        self._is_mid_message = False

    def _in_slot(self, message: bytes) -> bytes:
        """Writes a long request to slot 0. The slot is free: each long request is answered before the next."""
        view, at = memoryview(message), 0
        try:
            while at < len(view):
                at += os.pwrite(self._process.outgoing, view[at:], at)
        except OSError as error:
            if not _is_of_system(error):
                raise
            raise LeatError(
                "resource_exhausted",
                f"A request of {len(message)} bytes cannot be written for the helper: {error.strerror}. Free space on the "
                "disk of the slots, or give leat.load another folder=",
            ) from error
        return in_slot(len(message), 0)

    def receive(self, take: Callable[[Received], None] = lambda _: None) -> Received:
        """Waits for the next message, and gives it to `take`.

        If Ctrl-C interrupts `take`, the message may be lost, so the helper cannot be used any more.
        """
        while True:
            self.check()
            self._is_mid_message = True
            received = self._parse()
            if received is None:
                self._is_mid_message = False
                self._fill()
            elif received.value.get("kind") == "bye":
                self._is_mid_message = False
                raise from_wire(received.value.get("error"))
            else:
                take(received)
                self._is_mid_message = False
                return received

    def free_slots(self) -> None:
        """Tells the helper which slots no array uses any more."""
        self.check()
        self._is_mid_message = True
        if slots := self.slots.take_freed():
            self._write(b"".join(map(freed, slots)))
        self._is_mid_message = False

    def close(self) -> None:
        """Ends the process. Idempotent; does nothing in a fork of the process that started it."""
        if os.getpid() == self.pid:
            self._process.end()

    def require_own_process(self) -> None:
        """Raises in a fork of the process that started it."""
        if os.getpid() != self.pid:
            raise LeatError(
                "failed_precondition",
                "This loader belongs to the process that this one was forked from. Use num_workers=0, or start "
                "workers with the method 'spawn', which gives each a loader of its own",
            )

    def check(self) -> None:
        """Raises if this process, or this call, may not use it."""
        self.require_own_process()
        if self._ended is not None:
            raise self._ended
        if self._is_mid_message:
            raise LeatError(
                "cancelled",
                "A call of this loader was interrupted: call next() again, which continues with another helper, or iterate over "
                "the loader again, which begins the next epoch",
            )

    def _parse(self) -> Received | None:
        """The next message that has arrived whole. Raises `internal`, and ends the helper, if what arrives is no message."""
        while len(self._input) - self._at >= HEADER.size:
            length, place = HEADER.unpack_from(self._input, self._at)
            start = self._at + HEADER.size
            if place == PIPED:
                if length > PIPED_BYTES_MAX:
                    raise self._violation(f"a piped message of {length} bytes")
                if len(self._input) < start + length:
                    return None
                self._at = start + length
                return self._received(np.frombuffer(self._input[start : self._at], dtype=np.uint8), None)
            # FREED means slot 0 of the other file: the helper has read a long request.
            lease = self._lease(place, length) if (length, place) != (0, FREED) else None
            self._at = start
            if lease is not None:
                return self._received(np.asarray(lease), lease)
        return None

    def _lease(self, slot: int, length: int) -> Lease:
        try:
            return self.slots.lease(slot, length)
        except LeatError as error:
            if error.code == "internal":
                raise self._violation(error.message) from error
            if error.code == "resource_exhausted":
                self._is_mid_message = False  # It cannot be mapped, and is still there: the next call takes it.
            raise

    def _received(self, message: Bytes, lease: Lease | None) -> Received:
        try:
            received = Received(message, lease)
            kind = received.value["kind"]
            if kind not in ("hello", "bye") and not (kind in ("reply", "failure") and isinstance(received.value["id"], (int, float))):
                raise ValueError(f"an unknown message {kind!r}")
        except MALFORMED as error:
            raise self._violation(f"a message that cannot be decoded: {error!r}") from error
        return received

    def _violation(self, what: str) -> LeatError:
        """Ends the helper, whose later messages cannot be found any more. Returns why."""
        self._ended = LeatError(
            "internal",
            f"The helper of this loader violated its protocol, by {what}. Does code of the pipeline write to the pipe "
            "of the messages? Print with console.error",
        )
        self._process.end()
        return self._ended

    def _fill(self) -> None:
        """Waits for bytes, and reads them. Only the wait can be interrupted without harm."""
        self._is_mid_message = True
        while (chunk := self._read()) is None:
            self._is_mid_message = False
            self._wait()
            self._is_mid_message = True
        if not chunk:
            raise self._end_error()
        del self._input[: self._at]
        self._at = 0
        self._input += chunk
        self._is_mid_message = False

    def _read(self) -> bytes | None:
        """The bytes that have come, none at the end of the input; None if there are none yet."""
        try:
            return os.read(self._process.read, PIPE_BYTES)
        except BlockingIOError:
            return None

    def _wait(self, milliseconds: float = float("inf")) -> bool:
        """Waits for bytes or the end of the input. Returns whether there are any in time."""
        while milliseconds > 0:
            if self._is_closing():
                if threading.current_thread().daemon and not threading.main_thread().is_alive():
                    sys.exit()  # The program ends: this ends the thread without a traceback.
                raise LeatError("cancelled", "Another thread has closed this loader while this call waited for the helper")
            if _is_readable(self._process.read, int(min(milliseconds, CLOSING_MS))):
                return True
            milliseconds -= CLOSING_MS
        return False

    def _write(self, frame: bytes) -> None:
        view = memoryview(frame)
        try:
            while view:
                view = view[os.write(self._process.write, view) :]
        except BrokenPipeError:
            raise self._end_error() from None

    def _end_error(self) -> LeatError:
        self._ended = self._farewell() or self._process.why_ended()
        return self._ended

    def _farewell(self) -> LeatError | None:
        """The error in the helper's `bye`, if it sent one. Other messages are dropped."""
        while _is_readable(self._process.read, LAST_WORD_MS) and (chunk := self._read()):
            self._input += chunk
        while (received := self._parse()) is not None:
            if received.value.get("kind") == "bye":
                return from_wire(received.value.get("error"))
        return None


def _is_of_system(error: BaseException) -> TypeGuard[OSError]:
    """Whether a call of the system has failed. A `TimeoutError` of a signal handler is an `OSError`, too, without a number."""
    return isinstance(error, OSError) and error.errno is not None


def _cannot_start(error: OSError) -> LeatError:
    is_short = error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT)
    return LeatError(
        "resource_exhausted" if is_short else "unavailable",
        f"The helper process of this loader cannot be started: {error}"
        + (". Raise the limits of open files (ulimit -n) and of processes (ulimit -u), or free memory and disk" if is_short else ""),
    )


def _is_readable(descriptor: int, milliseconds: int) -> bool:
    """Waits for bytes or the end of the input. Returns whether there are any in time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return poll.poll(milliseconds) != []


def _show(text: str) -> None:
    """Writes to the program's standard error, if it can be written to: the program may have replaced it."""
    try:
        sys.stderr.write(text)
    except Exception:
        pass


class Process:
    """The process of a helper, its pipes and files. The helper ends when this process does, for any reason."""

    def __init__(self, command: list[str], files: list[int]) -> None:
        self.outgoing = files[0]
        self._files = files
        self._stderr = ""
        self._has_started = threading.Event()
        started: list[subprocess.Popen[bytes] | BaseException] = []
        # The kernel ends the helper when the thread that started it ends, so that thread waits for the helper.
        self._thread = threading.Thread(target=self._run, args=(command, started), name="leat-helper", daemon=True)
        self._thread.start()
        self._has_started.wait()
        if isinstance(started[0], BaseException):
            raise started[0]
        self._child = started[0]
        assert self._child.stdin is not None and self._child.stdout is not None
        self.write, self.read = self._child.stdin.fileno(), self._child.stdout.fileno()
        os.set_blocking(self.read, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            try:
                fcntl.fcntl(self.read, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            except OSError:
                pass  # The system allows smaller pipes only.
        _running.add(self)

    def _run(self, command: list[str], started: list[subprocess.Popen[bytes] | BaseException]) -> None:
        pipe = subprocess.PIPE
        try:
            # Deno looks for the folder of temporary files, which `allow=["python"]` grants, in fewer places than Python.
            variables = {**environment(), "NO_COLOR": "1", "TMPDIR": tempfile.gettempdir()}
            # In its own session, the helper does not get the program's Ctrl-C, after which the program may continue.
            child = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables, start_new_session=True, bufsize=0
            )
            started.append(child)
        except BaseException as error:
            started.append(error)
            return
        finally:
            self._has_started.set()
        assert child.stderr is not None
        with child.stderr as source:
            reads = iter(lambda: os.read(source.fileno(), PIPED_BYTES_MAX), b"")
            for text in codecs.iterdecode(reads, "utf-8", "replace"):
                self._stderr = (self._stderr + text)[-STDERR_CHARS:]
                _show(text)
        child.wait()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def why_ended(self) -> LeatError:
        """The error for a helper that has ended by itself."""
        try:
            code = self._child.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            code = 0
        # The thread reads the helper's last output.
        self._thread.join(ENDING_SECONDS)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = self._stderr.partition("Stack backtrace")[0].strip()
        if "Failed caching npm package" in said or "npm registry" in said:
            how += f". {NOT_CACHED}"
        return LeatError("unavailable", f"The helper process of this loader has ended with {how}" + (f": {said}" if said else ""))

    def end(self) -> None:
        """Closes its pipes and waits until it has ended."""
        if self not in _running:
            return
        _running.discard(self)
        self.close_files()
        try:
            self._child.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def close_files(self) -> None:
        """Closes this process's ends."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.stdout.close()
        for descriptor in self._files:
            os.close(descriptor)
        self._files = []


_running: weakref.WeakSet[Process] = weakref.WeakSet()


def _after_fork() -> None:
    # A fork must not keep the pipes open: the helper would not notice the end of its program.
    for process in list(_running):
        process.close_files()
        # The thread that would close it does not run here.
        assert process._child.stderr is not None
        process._child.stderr.close()
    _running.clear()


os.register_at_fork(after_in_child=_after_fork)
