"""Frames in a pipe between two processes: a header, before its message or naming the slot of a file that holds it.

`docs/wire.md` specifies the format.
"""

from __future__ import annotations

import struct

# A longer message goes through a slot.
PIPED_BYTES_MAX = 65_536
# In place of a slot's number: the message follows in the pipe.
PIPED = 0xFFFFFFFF
# Added to a slot's number: its message was read.
FREED = 0x80000000

# The length of a message, and its slot.
HEADER = struct.Struct("<II")


def piped(message: bytes) -> bytes:
    """The frame of a message that goes through the pipe."""
    return HEADER.pack(len(message), PIPED) + message


def in_slot(length: int, slot: int) -> bytes:
    """The frame that announces a message in a slot."""
    return HEADER.pack(length, slot)


def freed(slot: int) -> bytes:
    """The frame that says that the message in a slot was read."""
    return HEADER.pack(0, FREED + slot)
