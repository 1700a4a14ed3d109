"""The program of a process that calls Python functions of a pipeline.

A program of Leat starts it, and exchanges messages with it over two pipes and two files;
`docs/wire.md` specifies them. It answers the requests of `platform/python/`.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import queue
import signal
import sys
import threading
import traceback
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, Callable
from urllib.parse import unquote, urlparse

import msgpack  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from ._errors import LeatError
from ._frames import FREED, HEADER, PIPED, PIPED_BYTES_MAX, freed, in_slot, piped
from ._slots import SLOT_BYTES_MAX
from ._tree import map_arrays
from ._wire import Bytes, decode, encode, joined, place_of_fault, sendable, with_arrays

SLOTS = 2
# Limit of the bytes of a result. The rest of the slot is for the head of its message.
VALUE_BYTES_MAX = SLOT_BYTES_MAX - 2**20
# Limit of the characters of an error's message, which the log of a worker and each client gets.
MESSAGE_CHARS_MAX = 2**14

# The codes of Python's errors, as in TypeScript. All others are `unknown`.
_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (FileNotFoundError, "not_found"),
    (PermissionError, "permission_denied"),
    (MemoryError, "resource_exhausted"),
    (TimeoutError, "deadline_exceeded"),
    (NotImplementedError, "unimplemented"),
)


class Link:
    """This process's end of the link."""

    def __init__(self, read: str, written: str) -> None:
        # What a function prints goes to standard error, because standard output is the link.
        self._input, self._output = os.fdopen(os.dup(0), "rb"), os.dup(1)
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self._read = os.open(read, os.O_RDONLY | os.O_CLOEXEC)
        self._written = os.open(written, os.O_WRONLY | os.O_CLOEXEC)
        self._free: queue.Queue[int] = queue.Queue()
        for slot in range(SLOTS):
            self._free.put(slot)
        self._messages: queue.Queue[Bytes] = queue.Queue()
        self._writing = threading.Lock()
        threading.Thread(target=self._receive_all, args=(self._input,), daemon=True).start()

    def receive(self) -> Any:
        """Waits for the next message."""
        return decode(self._messages.get())

    def send(self, message: bytes) -> None:
        """Sends a message."""
        if len(message) <= PIPED_BYTES_MAX:
            return self._write(piped(message))
        if len(message) > SLOT_BYTES_MAX:
            # The error ends this process, and its caller repeats the calls one by one.
            raise LeatError("resource_exhausted", f"Results of {len(message)} bytes fit no slot")
        slot = self._free.get()
        view, at = memoryview(message), slot * SLOT_BYTES_MAX
        while view:
            count = os.pwrite(self._written, view, at)
            view, at = view[count:], at + count
        self._write(in_slot(len(message), slot))

    def _receive_all(self, source: BinaryIO) -> None:
        """Receives messages. Ends this process when the program that started it ends, even during a call."""
        try:
            while len(header := source.read(HEADER.size)) == HEADER.size:
                length, place = HEADER.unpack(header)
                if place == PIPED:
                    self._messages.put(np.frombuffer(bytearray(source.read(length)), dtype=np.uint8))
                elif place >= FREED:
                    self._free.put(place - FREED)
                else:
                    self._messages.put(self._from_slot(place, length))
                    self._write(freed(place))
        finally:
            os._exit(0)

    def _from_slot(self, slot: int, length: int) -> Bytes:
        message = np.empty(length, dtype=np.uint8)
        at = 0
        while at < length:
            at += os.preadv(self._read, [message[at:].data], slot * SLOT_BYTES_MAX + at)
        return message

    def _write(self, frame: bytes) -> None:
        with self._writing:
            view = memoryview(frame)
            while view:
                view = view[os.write(self._output, view) :]


class Function:
    """A function of a file."""

    def __init__(self, file: str, name: str, only_own: bool) -> None:
        """With `only_own`, functions that the file imports are refused: a pipeline must not call `os.system`."""
        module = _module(file)
        self._function: Callable[..., Any] = getattr(module, name, None)  # type: ignore[assignment]
        if not callable(self._function):
            raise LeatError("not_found", f"{file} has no function {name}")
        # A class may inherit a constructor that its file only imports.
        is_class = inspect.isclass(self._function)
        if only_own and (is_class or not _is_own(self._function, name, module)):
            how = "has a class" if is_class else "imports"
            raise LeatError("permission_denied", f"{file} {how} {name}, and a worker calls only functions that the file defines")
        try:
            self._is_random = "rng" in inspect.signature(self._function).parameters
        except ValueError:
            self._is_random = False

    def __call__(self, given: list[Any], seed: float, captures: dict[str, Any]) -> Any:
        """Calls it, with random numbers if it takes them."""
        if self._is_random:
            captures = {**captures, "rng": np.random.Generator(np.random.Philox(int(seed)))}
        return self._function(*given, **captures)


def _is_own(function: object, name: str, module: Any) -> bool:
    """Whether a module defines a function: by `__module__`, or for other callables by the module's source."""
    if inspect.isroutine(function):
        return bool(getattr(function, "__module__", None) == module.__name__)
    names = _Names()
    names.visit(ast.parse(Path(module.__file__).read_bytes()))
    return name in names.assigned and name not in names.imported


class _Names(ast.NodeVisitor):
    """The names that a module assigns, or gives to decorated functions, and those that it imports, at its top level."""

    def __init__(self) -> None:
        self.assigned: set[str] = set()
        self.imported: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.assigned.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # A decorator may have made another callable object of it.
        if node.decorator_list:
            self.assigned.add(node.name)

    def visit_alias(self, node: ast.alias) -> None:
        self.imported.add(node.asname or node.name.split(".")[0])

    def _skip(self, node: ast.AST) -> None:
        """Skips a nested scope."""

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _skip
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _skip


@cache
def _module(file: str) -> Any:
    path = Path(unquote(urlparse(file).path) if file.startswith("file:") else file).resolve()
    if not path.is_file():
        raise LeatError("not_found", f"There is no file {path} of Python functions")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LeatError("invalid_argument", f"{path} has no functions of Python: give a file whose name ends in .py")
    # Like a script, the file may import files in its folder.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    # Before the module runs: dataclasses and pickle look modules up here.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


_function = cache(Function)


def call(request: dict[str, Any]) -> bytes:
    """Makes the requested calls. Returns their encoded outcomes."""
    asked = decode(request["calls"])
    # The calls share the arrays, which may be large: no call may change what another one gets.
    captures = map_arrays(_read_only, with_arrays(asked["captures"] or {}))
    payloads: list[bytes] = []
    outcomes = [_outcome(request, captures, called, payloads) for called in asked["calls"]]
    head: bytes = msgpack.Packer().pack_array_header(len(outcomes))
    return joined(b"".join([head, *outcomes]), payloads)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _outcome(request: dict[str, Any], captured: Any, called: dict[str, Any], payloads: list[bytes]) -> bytes:
    """Makes one call. Returns its encoded value or error; a value that cannot be encoded fails only this call."""
    before = len(payloads)
    try:
        function = _function(request["file"], request["name"], request["onlyOwn"])
        given, captures = with_arrays(called["args"]), map_arrays(lambda array: array, captured)
        packed = _packed(function(given, called["seed"], captures), payloads)
        if len(packed) + sum(map(len, payloads[before:])) > VALUE_BYTES_MAX:
            raise LeatError("resource_exhausted", f"A function returned more than {VALUE_BYTES_MAX} bytes")
    except BaseException as error:
        del payloads[before:]
        packed = msgpack.packb({"error": _error_fields(error)})
    return packed


def _packed(result: Any, payloads: list[bytes]) -> bytes:
    """Encodes what a function returned."""
    too_deep = "A function returned lists or dicts that nest too deep, or that contain themselves: return flatter ones"
    try:
        sent = sendable(result, payloads)
    except RecursionError:
        raise LeatError("invalid_argument", too_deep) from None
    except LeatError as error:
        place = place_of_fault(result)
        if place == "":
            raise
        raise LeatError(error.code, f"{error.message} (at {place} of what the function returned)") from None
    try:
        packed: bytes = msgpack.packb({"value": sent})
    except ValueError as error:
        if "recursion" not in str(error):
            raise
        raise LeatError("invalid_argument", too_deep) from None
    return packed


def _error_fields(error: BaseException) -> dict[str, Any]:
    """An error as plain data, with the frames of its traceback that are not Leat's, and its causes."""
    code = error.code if isinstance(error, LeatError) else next((code for kind, code in _CODES if isinstance(error, kind)), "unknown")
    what = error.message if isinstance(error, LeatError) else "".join(traceback.format_exception_only(error)).strip()
    described = traceback.TracebackException.from_exception(error)
    is_alone = _hide_own_frames(described) == 1
    lines = "".join(described.stack.format() if is_alone else described.format()).rstrip()
    message = what if lines == "" else f"{what}\n{lines}"
    if len(message) > MESSAGE_CHARS_MAX:
        half = MESSAGE_CHARS_MAX // 2
        message = f"{message[:half]}\n… {len(message) - 2 * half} characters are left out …\n{message[-half:]}"
    # File names may contain lone surrogates, which UTF-8 cannot encode.
    return {"code": code, "message": message.encode(errors="replace").decode()}


def _hide_own_frames(described: traceback.TracebackException) -> int:
    """Removes Leat's frames from an error, its causes, and the errors of a group. Returns how many errors are shown."""
    hidden = (str(Path(__file__).parent) + os.sep, "<frozen importlib")
    shown = [described]
    for one in shown:
        one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(hidden)]
        context = None if one.__suppress_context__ else one.__context__
        shown += filter(None, [one.__cause__ or context, *(getattr(one, "exceptions", None) or ())])
    return len(shown)


def _outlive_stop_signals() -> None:
    """Leaves it to the program that started this one to end it.

    Ctrl-C, systemd and Slurm send their signal to all processes of a group. Processes that functions start keep
    Python's handlers.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        default = signal.signal(number, lambda *_: None)
        os.register_at_fork(after_in_child=partial(signal.signal, number, default))


def main() -> None:
    """Answers requests until the program that started it ends."""
    _outlive_stop_signals()
    read, written, node, incarnation = sys.argv[1:]
    link = Link(read, written)
    hello = {"kind": "hello", "version": 1, "role": "dialler", "node": node, "incarnation": incarnation}
    link.send(encode({**hello, "messageBytesMax": SLOT_BYTES_MAX}))
    remote = link.receive()["node"]
    source = {"node": node, "path": "/edge", "incarnation": f"{incarnation}-1"}
    number = 0
    while (asked := link.receive())["kind"] != "bye":
        number += 1
        head = {"source": source, "target": {"node": remote, "path": "/edge"}, "number": number, "id": asked["id"]}
        payloads: list[bytes] = []
        try:
            body = sendable(call(asked["body"]), payloads) if asked["method"] == "call" else None
        except Exception as error:
            # A confined pipeline may send calls that are no message. Others share this process.
            link.send(encode({"kind": "failure", **head, "error": _error_fields(error)}))
        else:
            link.send(encode({"kind": "reply", **head}, body, payloads))
