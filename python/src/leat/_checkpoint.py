"""Positions in a stream, as plain data that any format can store."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any, Mapping

from ._errors import LeatError

VERSION = 1
NO_STATE = "The state is not one that state_dict() of a leat.Loader returned"
COUNT_MAX = 2**53


@dataclass
class Checkpoint:
    """A position in a stream.

    Attributes:
        state: The saved state of the pipeline's iterator; None at the beginning of a stream without a seed.
        skip: How many elements after `state` the program has got.
        ended: Whether the iteration had ended, so that the next one begins.
        pending: Messages with elements before `state`, not all of which the program has got.
        dropped: How many elements at the beginning of `pending` the program has got.
    """

    state: bytes | None = None
    skip: int = 0
    ended: bool = False
    pending: list[bytes] = field(default_factory=list)
    dropped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The position as text and numbers, without fields that have their default."""
        stored: dict[str, Any] = {"leat": VERSION}
        if self.state is not None:
            stored["state"] = base64.b64encode(self.state).decode()
        if self.skip:
            stored["skip"] = self.skip
        if self.ended:
            stored["ended"] = True
        if self.pending:
            stored["pending"] = [base64.b64encode(message).decode() for message in self.pending]
            stored["dropped"] = self.dropped
            stored["crc32"] = _crc32(self.pending)
        return stored

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Checkpoint:
        """Reads what `to_dict` returned."""
        unknown = LeatError("invalid_argument", NO_STATE)
        if not isinstance(stored, Mapping) or stored.get("leat") != VERSION:
            raise unknown
        try:
            state, pending = stored.get("state"), stored.get("pending", [])
            read = Checkpoint(
                None if state is None else base64.b64decode(state, validate=True),
                int(stored.get("skip", 0)),
                bool(stored.get("ended", False)),
                [base64.b64decode(message, validate=True) for message in pending],
                int(stored.get("dropped", 0)),
            )
        except (OverflowError, TypeError, ValueError) as error:
            raise unknown from error
        if not isinstance(pending, (list, tuple)) or not 0 <= read.skip <= COUNT_MAX or not 0 <= read.dropped <= COUNT_MAX:
            raise unknown
        if stored.get("crc32", _crc32(read.pending)) != _crc32(read.pending):
            raise LeatError("data_loss", "The state is damaged: its checksum differs")
        return read


def _crc32(messages: list[bytes]) -> int:
    checksum = 0
    for message in messages:
        checksum = zlib.crc32(message, checksum)
    return checksum
