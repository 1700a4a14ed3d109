"""Malformed messages, as a confined pipeline may send them to a process that calls Python functions."""

from __future__ import annotations

import array
import struct
from typing import Any, Sequence

import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest
from leat._wire import BYTES, OPAQUE, STRING, TENSOR, decode, joined, sendable

BLOCK = b"x" * 1_024


def decoded(value: Any, *payloads: bytes) -> Any:
    return decode(np.frombuffer(joined(msgpack.packb(value), payloads), dtype=np.uint8))


def tensor(code: int, length: int, index: int = 0) -> Any:
    return msgpack.ExtType(TENSOR, struct.pack(">IBBI", index, code, 1, length))


def items(*offsets: int, code: int = BYTES) -> Any:
    """The items that offsets cut from the block."""
    return decoded(tensor(code, max(0, len(offsets) - 1)), np.array(offsets, dtype=np.uint32).tobytes(), BLOCK)


def test_offsets_that_divide_their_block_are_read() -> None:
    assert items(0, 24, 24, 1_024).tolist() == [BLOCK[:24], b"", BLOCK[24:]]
    assert items(0, 1_024, code=STRING).tolist() == [BLOCK.decode()]


@pytest.mark.parametrize("offsets", [[0, 1_024] * 1_000, [0, 1_024, 0, 1_024], [1, 1_024], [0, 1_023], [0, 1_025], []])
def test_offsets_that_do_not_divide_their_block_are_refused(offsets: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="do not ascend from 0 to the 1024 bytes"):
        items(*offsets)


def test_booleans_are_sent_as_0_and_1() -> None:
    payloads: list[bytes] = []
    sendable(np.array([[0, 1], [2, 255]], dtype=np.uint8).view(np.bool_).T, payloads)
    sendable(np.array(7, dtype=np.uint8).view(np.bool_), payloads)
    assert payloads == [bytes([0, 1, 1, 1]), bytes([1])]


class Id(int):
    pass


@pytest.mark.parametrize("value", [2**40, Id(2**40), Id(-(2**53))])
def test_integers_up_to_2_to_the_53_are_sent_as_numbers_also_those_of_subclasses(value: int) -> None:
    sent = sendable(value, [])
    assert type(sent) is float and sent == value


class Image:
    """It has only `__array_interface__`, as images of Pillow have."""

    def __init__(self, pixels: Any) -> None:
        self.__array_interface__ = pixels.__array_interface__
        self.pixels = pixels


@pytest.mark.parametrize(
    "value",
    [
        Image(np.arange(6, dtype=np.uint8).reshape(2, 3)),
        array.array("f", [1, 2]),
        memoryview(np.array([1.5, 2], dtype=np.float32)),
        memoryview(b"abcd"),
        memoryview(np.arange(6, dtype=np.uint8).reshape(2, 3)),
        np.ma.masked_array([1, 2], mask=[0, 0]),
    ],
    ids=["interface", "buffer", "view", "bytes", "view of two dimensions", "nothing masked"],
)
def test_arrays_of_other_libraries_are_sent_as_what_numpy_makes_of_them(value: Any) -> None:
    payloads: list[bytes] = []
    sent, expected = decoded(sendable(value, payloads), *payloads), np.asarray(value)
    assert sent.dtype == expected.dtype and sent.tolist() == expected.tolist()


@pytest.mark.skipif(not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_numpys_arrays_of_text_of_any_length_are_sent_as_text() -> None:
    payloads: list[bytes] = []
    sent = sendable(np.array([["a", ""], ["ü" * 99, "𝄞"]], dtype=np.dtypes.StringDType()), payloads)
    assert decoded(sent, *payloads).tolist() == [["a", ""], ["ü" * 99, "𝄞"]]


def test_a_payload_that_is_named_twice_is_refused() -> None:
    opaque = msgpack.ExtType(OPAQUE, bytes(4))
    assert decoded(opaque, BLOCK).tobytes() == BLOCK
    with pytest.raises(ValueError, match="payload 0 twice"):
        decoded([opaque, opaque], BLOCK)
    with pytest.raises(ValueError, match="payload 1 twice"):
        decoded([tensor(BYTES, 1), tensor(1, 1_024, 1)], np.array([0, 1_024], dtype=np.uint32).tobytes(), BLOCK)


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown dtype 14"):
        decoded(tensor(BYTES + 1, 1), np.array([0, 1_024], dtype=np.uint32).tobytes(), BLOCK)
