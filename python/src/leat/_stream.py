"""One epoch of a loader."""

from __future__ import annotations

import gc
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checkpoint import NO_STATE, Checkpoint
from ._connection import Connection
from ._errors import LeatError, from_wire
from ._helper import Helper, Received
from ._slots import SLOTS, Lease
from ._wire import MALFORMED, with_arrays

# How many answers are requested ahead: one is computed, one is written, one waits here.
TAKES = 3
# The slots that are kept free for answers on their way.
SLOTS_SPARE = 2 * TAKES


class _Answer:
    """The elements of one message that the program has not got yet."""

    __slots__ = ("at", "elements", "end", "has_reading_failed", "is_unsaved", "message", "state", "total")

    def __init__(self, message: Received, at: int) -> None:
        """`at` is how many elements of the stream are before it."""
        self.message = message
        self.at = at
        value = message.value
        body = value.get("body") or {}
        # The error of an element is the last one.
        self.elements: deque[Any] = deque(body.get("elements", ()))
        error = value.get("error") if value["kind"] == "failure" else body.get("error")
        if error is not None:
            self.elements.append(from_wire(error))
        self.total = len(self.elements)
        # Whether the error is a failure of reading, which is no part of the stream.
        self.has_reading_failed = error is not None and bool(body.get("hasReadingFailed", False))
        state = body.get("state")
        self.state = None if state is None else _bytes(state)
        self.is_unsaved = bool(body.get("isUnsaved", False))
        self.end = bool(body.get("end", False))

    @property
    def left(self) -> int:
        """How many elements and errors of elements are left."""
        return len(self.elements)

    @property
    def taken(self) -> int:
        """How many are not left."""
        return self.total - self.left

    @property
    def given(self) -> int:
        """How many elements of the stream the program has got when it has got those that were taken."""
        return self.at + min(self.taken, self.total - self.has_reading_failed)

    @property
    def after(self) -> int:
        """How many elements of the stream the program has got when it has got all of it."""
        return self.at + self.total - self.has_reading_failed


@dataclass
class Position:
    """A position in a stream.

    Attributes:
        given: How many elements are before it.
        known: The position as it is saved; None if only the helper knows it.
    """

    stream: Stream
    given: int
    known: Checkpoint | None

    def checkpoint(self) -> Checkpoint:
        """The position as it is saved, which may be asked for until the stream forgets the elements before it."""
        return self.known or self.stream.ask_checkpoint(self.given)


class Stream:
    """The batches of one epoch, as the helper sends them."""

    def __init__(self, connection: Connection, beginning: Checkpoint, reuse: bool, epochs: int = 0) -> None:
        """Begins at a position, or `epochs` epochs after it."""
        self.number = connection.number()
        self.is_replaced = False
        # How many answers have come. The helper then frees the memory of their elements.
        self.received = 0
        self._connection = connection
        self._reuse = reuse
        self._answers: deque[_Answer] = deque()
        self._in_flight = 0
        # How many elements the answers had that were dropped.
        self._dropped = 0
        # Whether what was taken waits for the program, which says with `forget` what it has got. The answers that have it.
        self.keeps = False
        self._kept: deque[_Answer] = deque()
        self._is_ended = False
        # Whether the end that follows is that of a failure of reading, not of the epoch.
        self._has_reading_failed = False
        self._last: Lease | None = None
        # The last saved state, and the value of `_given` at that position.
        self._saved: tuple[bytes, int] | None = None
        # The state of a new epoch, at its beginning.
        self._beginning: tuple[bytes, int] | None = None
        start = {"iteration": self.number, "state": beginning.state, "skip": beginning.skip}
        answer = connection.ask("start", {**start, "ended": beginning.ended, "epochs": epochs})
        if beginning.pending:
            self._resume(beginning)
        elif beginning.skip > 0 and beginning.state is not None:
            self._saved = (beginning.state, -beginning.skip)
        elif "state" in answer:
            self._saved = self._beginning = (_bytes(answer["state"]), 0)
        self._request_more()

    def _resume(self, beginning: Checkpoint) -> None:
        """Takes the answers of a checkpoint, which is untrusted."""
        try:
            for message in beginning.pending:
                self._answers.append(self._answer(Received(np.frombuffer(bytearray(message), dtype=np.uint8), None)))
            if beginning.dropped > sum(answer.left for answer in self._answers):
                raise ValueError("it drops elements that it does not have")
            for _ in range(beginning.dropped):
                self._take()
        except MALFORMED as error:
            raise LeatError("invalid_argument", f"{NO_STATE}: {error}") from error

    def position(self) -> Position:
        """The position after the last element that was taken."""
        return Position(self, self._given, self.checkpoint() if self.is_position_known else None)

    def forget(self, given: int) -> None:
        """Says that the program has got so many elements, and needs no position before them any more."""
        while self._kept and self._kept[0].after <= given:
            lease = self._kept.popleft().message.lease
            if self._reuse and lease is not None:
                lease.release()

    def next(self) -> Any:
        """The next batch. Raises the error of an element, and StopIteration at the end."""
        if self._last is not None and self._reuse:
            self._last.release()
        self._last = None
        while True:
            if self.is_replaced:
                raise LeatError("failed_precondition", "Another iteration of this loader has begun, or it is closed")
            if self._answers:
                if self._answers[0].left > 0:
                    # Before `_take`: if Ctrl-C interrupts this, no element that was taken is lost.
                    self._request_more(self._answers[0])
                    element = self._take()
                    if isinstance(element, LeatError):
                        raise element
                    return element
                self._drop_answer()
            elif self._is_ended:
                raise StopIteration
            else:
                if self._in_flight == 0:
                    self._make_room()
                self._request_more()
                self._connection.receive()

    @property
    def is_position_known(self) -> bool:
        """Whether `checkpoint` need not ask the helper."""
        return self._saved is not None

    def checkpoint(self) -> Checkpoint:
        """The position after the last batch that was taken."""
        self._await_named_splits()
        # The next answer may have the current position.
        for answer in list(self._answers)[:1]:
            if answer.taken == 0 and answer.left > 0 and answer.state is not None:
                self._note_position(answer)
        if self._saved is not None:
            state, at = self._saved
            return Checkpoint(state, 0 if self._is_epoch_over else self._given - at, self._is_epoch_over)
        return self.ask_checkpoint(self._given)

    def ask_checkpoint(self, given: int) -> Checkpoint:
        """The position after so many elements, which the helper saves with all that the program has not got."""
        if self.is_replaced:
            raise LeatError("failed_precondition", "The position was not saved before the iteration was replaced")
        if self._connection.helper.is_interrupted:
            raise LeatError(
                "cancelled",
                "A call of this loader was interrupted, and its position is not known: give load_state_dict the last state that "
                "you saved, and iterate over the loader again. Without load_state_dict, that begins the next epoch",
            )
        saved = self._connection.ask("save", {"iteration": self.number})
        after = _bytes(saved["after"])
        if saved["isNextBefore"]:
            received = self.received
            self._request()
            while self.received == received:
                self._connection.receive()
        if self._is_epoch_over and given == self._given:
            return Checkpoint(after, 0, True)
        kept = (answer for answer in self._kept if answer.after > given)
        # An answer is in both if Ctrl-C has interrupted `_drop_answer`.
        left = list(dict.fromkeys((*kept, *self._answers)))
        return Checkpoint(after, 0, False, [bytes(answer.message.bytes) for answer in left], given - left[0].at if left else 0)

    def _await_named_splits(self) -> None:
        """Waits for the second answer, if the program has got only what the first one had.

        The position at the beginning does not name the splits, so changed files would not be noticed.
        """
        if self._saved is None or self._saved is not self._beginning or self._given == 0 or self.is_replaced:
            return
        try:
            while self._in_flight > 0 and not self._answers:
                self._connection.receive()
        except LeatError:
            pass  # The next batch fails with this error, and the position is right without it.

    @property
    def is_over(self) -> bool:
        """Whether the program has got all batches. Answers that came after the end hold nothing."""
        return self._is_ended and not any(answer.left > 0 for answer in self._answers)

    @property
    def _is_epoch_over(self) -> bool:
        return self.is_over and not self._has_reading_failed

    def add(self, received: Received) -> None:
        """Adds what an answer to `take` has."""
        self.received += 1
        self._in_flight -= 1
        if not self.is_replaced:
            self._answers.append(self._answer(received))

    def _answer(self, message: Received) -> _Answer:
        """A message as the answer after all others."""
        return _Answer(message, self._answers[-1].after if self._answers else self._dropped)

    @property
    def _given(self) -> int:
        """How many elements the program has got."""
        return self._answers[0].given if self._answers else self._dropped

    def _take(self) -> Any:
        """The next element, or its error.

        Its removal is the only step that counts. If Ctrl-C interrupts this before, the next call takes the element;
        after it, the position is the one after the element.
        """
        answer = self._answers[0]
        if answer.taken == 0:
            self._note_position(answer)
        element = with_arrays(answer.elements[0])
        self._has_reading_failed = answer.has_reading_failed and answer.left == 1
        answer.elements.popleft()
        if answer.left == 0:
            self._last = None if self.keeps else answer.message.lease
            if not answer.end:
                self._drop_answer()
        return element

    def _note_position(self, answer: _Answer) -> None:
        """Notes the position before the elements of an answer."""
        if answer.state is not None:
            self._saved = (answer.state, self._given)
        elif answer.is_unsaved:
            # The state is too old: skipping all elements since then would take ever longer.
            self._saved = None

    def _drop_answer(self) -> None:
        """Drops the first answer, which has no further elements. All steps before the last one may be repeated."""
        answer = self._answers[0]
        if answer.taken == 0:
            self._note_position(answer)
        self._is_ended = self._is_ended or answer.end
        self._dropped = answer.after
        if self.keeps and answer not in self._kept:
            self._kept.append(answer)
        self._answers.popleft()

    def _request_more(self, used: _Answer | None = None) -> None:
        """Requests answers ahead, as far as the program's memory allows. An element of `used` is taken next."""
        helper = self._connection.helper
        helper.free_slots()
        if self._is_ended or any(answer.end for answer in self._answers):
            return
        kept = len(self._answers) - (used is not None and used.left == 1)
        while self._in_flight + kept < TAKES and not self._is_full(helper):
            self._request()

    def _request(self) -> None:
        self._connection.take(self)
        self._in_flight += 1

    def _make_room(self) -> None:
        """Frees slots. Raises if the program keeps so many batches that no more may come."""
        helper = self._connection.helper
        helper.free_slots()
        if not self._is_full(helper):
            return
        gc.collect()
        helper.free_slots()
        if self._is_full(helper):
            # More memory would not raise the number of slots.
            advice = ", or raise memory=" if helper.slots.held_slots <= SLOTS - SLOTS_SPARE else ""
            raise LeatError(
                "resource_exhausted",
                f"The program keeps {helper.slots.held_slots} batches, {helper.slots.held_bytes} bytes of shared "
                f"memory, of at most {SLOTS - SLOTS_SPARE} batches and {self._connection.memory} bytes. Keep "
                f"leat.copy(batch) instead of batch, or drop the arrays of batches that were used{advice}",
            )

    def _is_full(self, helper: Helper) -> bool:
        slots = helper.slots
        return slots.held_bytes > self._connection.memory or slots.held_slots > SLOTS - SLOTS_SPARE


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else bytes(value.tobytes())
