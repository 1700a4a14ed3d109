"""The file whose slots hold the helper's large messages. Arrays are views of the file."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import deque
from typing import Any

import numpy as np

from ._errors import LeatError
from ._wire import Bytes

SLOTS = 1_024
SLOT_BYTES_MAX = 2**30 + 2**20

# `mmap.mmap` keeps a descriptor for each mapping, and programs may have few.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED = ctypes.c_void_p(-1).value


class _Mapping:
    """A part of a file in memory: the base of an array."""

    def __init__(self, descriptor: int, offset: int, length: int) -> None:
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        address = _libc.mmap(None, length, protection, mmap.MAP_SHARED, descriptor, offset)
        if address == _MAP_FAILED:
            why = os.strerror(ctypes.get_errno())
            raise LeatError("resource_exhausted", f"A batch of {length} bytes cannot be mapped into memory: {why}")
        self.__array_interface__ = {"version": 3, "shape": (length,), "typestr": "|u1", "data": (address, False)}
        self._range = (address, length)

    # The default is still there when the interpreter ends.
    def __del__(self, munmap: Any = _libc.munmap) -> None:
        if hasattr(self, "_range"):
            munmap(*self._range)


class Lease:
    """The base of all arrays of one message. When the last of them is gone, the message's slot is free."""

    __slots__ = ("_freed", "_length", "_region", "_slot")

    def __init__(self, region: Bytes, length: int, slot: int, freed: deque[int]) -> None:
        self._region = region
        self._length = length
        self._slot = slot
        self._freed: deque[int] | None = freed

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {**self._region.__array_interface__, "shape": (self._length,)}

    def release(self) -> None:
        """Frees the slot, even if arrays still use it. Idempotent."""
        # It has none if Ctrl-C has interrupted the constructor.
        freed, self._freed = getattr(self, "_freed", None), None
        if freed is not None:
            freed.append(self._slot)

    def __del__(self) -> None:
        self.release()


class SlotFile:
    """The slots that the helper writes, mapped into memory."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._regions: dict[int, Bytes] = {}
        # Any thread may append to it: the one that drops the last array of a message.
        self._freed: deque[int] = deque()
        self._held: dict[int, int] = {}
        self.held_bytes = 0

    @property
    def held_slots(self) -> int:
        """How many slots are in use by arrays."""
        return len(self._held)

    def lease(self, slot: int, length: int) -> Lease:
        """Takes a message that the helper has written to a slot. If it raises, it has no effect.

        Raises:
            LeatError: `internal` if no message can be there; `resource_exhausted` if it cannot be mapped.
        """
        # The kernel would kill this process if it read beyond the end of the file.
        end = slot * SLOT_BYTES_MAX + length
        if slot >= SLOTS or slot in self._held or not 0 < length <= SLOT_BYTES_MAX or end > os.fstat(self._descriptor).st_size:
            raise LeatError("internal", f"a message of {length} bytes in slot {slot}")
        region = self._regions.get(slot)
        if region is None or len(region) < length:
            region = self._regions[slot] = np.asarray(_Mapping(self._descriptor, slot * SLOT_BYTES_MAX, length))
        self._held[slot] = length
        self.held_bytes += length
        return Lease(region, length, slot, self._freed)

    def take_freed(self) -> list[int]:
        """The slots that were freed since the last call."""
        freed: list[int] = []
        while self._freed:
            slot = self._freed.popleft()
            self.held_bytes -= self._held.pop(slot)
            freed.append(slot)
        return freed
