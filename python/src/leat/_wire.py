"""Messages of the helper, as `docs/wire.md` specifies them."""

from __future__ import annotations

import struct
from typing import Any, Callable, Sequence

import msgpack  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from ._errors import LeatError
from ._tree import Ragged

Bytes = npt.NDArray[np.uint8]

DTYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(name)
    for name in ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "?")
)
STRING, BYTES = 12, 13
TENSOR, RAGGED, TYPED_ARRAY, OPAQUE = 0x54, 0x52, 0x41, 0x50
NIL, ALIGNMENT, HEADER_BYTES = 0xC0, 64, 5
INTEGER_MAX = 2**53
# What a malformed message raises where it is read. Not `Exception`: a signal handler raises any other one, at any time.
MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error, msgpack.UnpackException)

_tensor_head = struct.Struct(">IBB")
_length = struct.Struct(">xI")


def encode(envelope: dict[str, Any], body: Any = None, payloads: Sequence[bytes] = ()) -> bytes:
    """A message.

    Args:
        envelope: Plain data.
        body: The envelope's body as `sendable` returned it, if it has payloads.
        payloads: The list that `sendable` has filled.
    """
    plain = _sendable(envelope)
    return joined(msgpack.packb(plain if body is None else {**plain, "body": body}), payloads)


def joined(packed: bytes, payloads: Sequence[bytes]) -> bytes:
    """A message of what `sendable` returned, packed, and the payloads that it refers to."""
    parts = [b"\xce" + struct.pack(">I", len(packed)) + packed]
    length = len(parts[0])
    for payload in payloads:
        padding = -(length + HEADER_BYTES) % ALIGNMENT
        parts += [bytes([NIL]) * padding, b"\xc6" + struct.pack(">I", len(payload)), payload]
        length += padding + HEADER_BYTES + len(payload)
    return b"".join(parts)


def sendable(value: Any, payloads: list[bytes]) -> Any:
    """An element as `encode` takes it: trees, numbers, text, and arrays, also of other libraries that `np.asarray` converts.

    Args:
        value: What a function of the program returned.
        payloads: The content of arrays is appended to it.

    Raises:
        LeatError: `invalid_argument` for anything else.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        _utf8(value, "the text")
        return value
    if isinstance(value, (bytes, bytearray)) or isinstance(value, memoryview) and (value.format, value.ndim) == ("B", 1):
        payloads.append(bytes(value))
        return msgpack.ExtType(TYPED_ARRAY, struct.pack(">IB", len(payloads) - 1, 1))
    if isinstance(value, np.bool_):
        return bool(value)
    # NumPy's other numbers keep their dtype, as tensors without dimensions. A np.float64 is a float.
    if isinstance(value, (int, float)):
        return _sendable(value)
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise LeatError("invalid_argument", f"The keys of an element's dict are text, not {list(value)[:8]}")
        for key in value:
            _utf8(key, "a dict with the key")
        if "__proto__" in value:
            raise LeatError("invalid_argument", 'A function returned a dict with the key "__proto__", which no message may have: rename it')
        return {key: sendable(item, payloads) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [sendable(item, payloads) for item in value]
    if isinstance(value, Ragged):
        payloads.append(np.ascontiguousarray(value.row_splits, dtype="<i8").tobytes())
        head = struct.pack(">I", len(payloads) - 1)
        return msgpack.ExtType(RAGGED, head + _tensor_of(_array_of(value.values), payloads))
    if _is_array(value):
        return msgpack.ExtType(TENSOR, _tensor_of(_array_of(value), payloads))
    raise LeatError("invalid_argument", f"A function returned {type(value).__name__}, which cannot be part of an element")


def _is_array(value: object) -> bool:
    """Whether `np.asarray` takes it for an array: by a protocol of NumPy, or by its buffer."""
    if any(hasattr(value, protocol) for protocol in ("__array__", "__array_interface__", "__array_struct__")):
        return True
    try:
        memoryview(value)  # type: ignore[arg-type]
    except (BufferError, TypeError):
        return False
    return True


def _utf8(text: str, what: str) -> bytes:
    """Refuses text with half of a surrogate pair, as in the names of files that are not UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise LeatError(
            "invalid_argument",
            f"A function returned {what} {text[:80]!a}, in which character {error.start} is half of a surrogate pair: return "
            "text.encode(errors='replace').decode(), or bytes",
        ) from None


def _array_of(value: Any) -> npt.NDArray[Any]:
    """What NumPy makes of an array. Refuses one with a mask, which that would lose."""
    if isinstance(value, np.ma.MaskedArray) and value.dtype.names is None and np.ma.is_masked(value):
        raise LeatError(
            "invalid_argument",
            f"A function returned an array of shape {value.shape} with masked values, and tensors have no mask: return "
            "array.filled(value), or array.data and np.ma.getmaskarray(array) as two components",
        )
    return np.asarray(value)


def _remedy_for(dtype: np.dtype[Any]) -> str:
    """What to return instead of an array of a dtype that Leat does not have."""
    if dtype.names is not None:
        return "return a dict of its fields, as with {name: array[name] for name in array.dtype.names}"
    if dtype.kind in "Mm":
        return f"return its numbers, as with array.astype(np.int64), which counts in the unit of {dtype}"
    if dtype.kind == "c":
        return "return array.real and array.imag as two components"
    if dtype.kind == "V" and dtype.type is np.void:
        return "return its bytes, as with array.view(np.uint8)"
    return "use another, as with array.astype(np.float32)"


def _tensor_of(array: npt.NDArray[Any], payloads: list[bytes]) -> bytes:
    """The head of a tensor. Appends its content to `payloads`."""
    if any(length >= 2**32 for length in array.shape):
        raise LeatError("invalid_argument", f"An array has the shape {array.shape}, but an axis has at most {2**32 - 1} items: return a smaller one")
    if array.dtype.kind in "OUST":
        items = [_utf8(item, "an array with the text") if isinstance(item, str) else item for item in array.ravel().tolist()]
        if not all(isinstance(item, bytes) for item in items):
            raise LeatError(
                "invalid_argument",
                "An array of objects may hold only text or bytes in Leat, but this one has others. For rows of different lengths, return "
                "leat.Ragged.from_rows(rows), or a list of arrays",
            )
        code = BYTES if array.dtype.kind == "S" or any(isinstance(item, bytes) for item in array.ravel()) else STRING
        ends = np.cumsum([0, *map(len, items)], dtype=np.uint32)
        payloads += [ends.tobytes(), b"".join(items)]
        index = len(payloads) - 2
    else:
        plain = array.dtype.newbyteorder("<")
        if plain not in DTYPES:
            raise LeatError("invalid_argument", f"Leat has no dtype {array.dtype}: {_remedy_for(array.dtype)}")
        code = DTYPES.index(plain)
        if array.dtype.kind == "b":
            array = array.view(np.uint8) != 0  # a view of other bytes may hold any
        payloads.append(np.ascontiguousarray(array, dtype=plain).tobytes())
        index = len(payloads) - 1
    return _tensor_head.pack(index, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)


def _sendable(value: Any) -> Any:
    """Plain data for MessagePack. Integers beyond 32 bits, up to 2^53, become floats: JavaScript reads numbers."""
    if isinstance(value, dict):
        return {key: _sendable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_sendable(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -(2**31) <= value < 2**32:
        if abs(value) <= INTEGER_MAX:
            return float(value)
        if not -(2**63) <= value < 2**64:
            raise LeatError("invalid_argument", "An integer has more than 64 bits, which no dtype holds: return a float or a text instead")
    return value


def place_of_fault(value: Any) -> str:
    """Where in a value is what `sendable` refuses, such as `['x'][3]`; "" if it is the whole value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, item in items:
        try:
            sendable(item, [])
        except LeatError:
            return f"[{key!r}]{place_of_fault(item)}"
    return ""


def decode(message: Bytes) -> Any:
    """A message's value. Arrays are views of `message`.

    The message is untrusted: it may hold the arguments of a confined pipeline. It takes memory in proportion to its length.

    Raises:
        ValueError: It names a payload twice, or has another malformed extension; others of `MALFORMED` if it is malformed otherwise.
    """
    view = memoryview(message.data)
    (envelope_bytes,) = _length.unpack_from(view)
    position = HEADER_BYTES + envelope_bytes
    envelope = view[HEADER_BYTES:position]
    unnamed: dict[int, Bytes] = {}
    while position < len(view):
        start = -(-(position + HEADER_BYTES) // ALIGNMENT) * ALIGNMENT
        (length,) = _length.unpack_from(view, start - HEADER_BYTES)
        position = start + length
        unnamed[len(unnamed)] = message[start:position]

    def named(index: int) -> Bytes:
        """A payload, which only one value may name."""
        payload = unnamed.pop(index, None)
        if payload is None:
            raise ValueError(f"a message names payload {index} twice, or has none of that number")
        return payload

    def extension(code: int, data: bytes) -> Any:
        if code == TENSOR:
            return _tensor(data, 0, named)
        if code == TYPED_ARRAY:
            return named(int.from_bytes(data[:4], "big")).view(DTYPES[data[4]])
        if code == RAGGED:
            splits = named(int.from_bytes(data[:4], "big")).view(np.int64)
            return Ragged(_tensor(data, 4, named), splits)
        if code == OPAQUE:
            return named(int.from_bytes(data[:4], "big"))
        raise ValueError(f"a message has the extension {code:#x}")

    return msgpack.unpackb(envelope, ext_hook=extension, strict_map_key=True)


def _tensor(data: bytes, at: int, named: Callable[[int], Bytes]) -> npt.NDArray[Any]:
    index, code, rank = _tensor_head.unpack_from(data, at)
    shape = struct.unpack_from(f">{rank}I", data, at + _tensor_head.size)
    if code < STRING:
        array: npt.NDArray[Any] = named(index).view(DTYPES[code]).reshape(shape)
        return array
    if code > BYTES:
        raise ValueError(f"a message has a tensor of the unknown dtype {code}")
    offsets, block = named(index).view(np.uint32), named(index + 1).tobytes()
    # Otherwise the items together could be much longer than their block.
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(block) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"a message has offsets that do not ascend from 0 to the {len(block)} bytes of their block")
    ends = offsets.tolist()
    items: list[Any] = [block[start:end] for start, end in zip(ends, ends[1:])]
    if code == STRING:
        items = [item.decode() for item in items]
    texts = np.empty(len(items), dtype=object)
    texts[:] = items
    return texts.reshape(shape)


def with_arrays(element: Any) -> Any:
    """The element with arrays for short bytes, which travel in the envelope. Long ones are arrays already."""
    if isinstance(element, bytes):
        return np.frombuffer(bytearray(element), dtype=np.uint8)
    if isinstance(element, dict):
        for key, value in element.items():
            if isinstance(value, (bytes, dict, list)):
                element[key] = with_arrays(value)
    elif isinstance(element, list):
        for index, value in enumerate(element):
            if isinstance(value, (bytes, dict, list)):
                element[index] = with_arrays(value)
    return element
