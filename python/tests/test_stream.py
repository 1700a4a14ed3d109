"""The batches and the position of a stream whose helper answers as a test says."""

from __future__ import annotations

import sys
from types import FrameType, SimpleNamespace
from typing import Any, cast

import leat
import numpy as np
import pytest
from leat._checkpoint import Checkpoint
from leat._connection import Connection
from leat._helper import Received
from leat._stream import Stream
from leat._wire import Bytes, decode, encode


def failure(message: str) -> dict[str, Any]:
    return {"error": {"code": "unavailable", "message": message}}


# Element i is i, or its error says i. The state before it is the byte i.
ANSWERS: list[dict[str, Any]] = [
    {"elements": [0, 1]},
    {"elements": [2], **failure("3"), "state": b"\2"},
    {"elements": [4, 5]},
    {"elements": [], "state": b"\6"},
    {"elements": [6, 7], "isUnsaved": True},
    {"elements": [8], **failure("9")},
    {"elements": [10], "state": b"\12", **failure("no worker"), "hasReadingFailed": True},
    {"elements": [], "end": True},
]
COUNT = 11


def counted(body: dict[str, Any]) -> int:
    """How many elements of the stream an answer has."""
    return len(body["elements"]) + ("error" in body and "hasReadingFailed" not in body)


class Helper:
    """The connection of a stream: it answers at once."""

    memory = 2**30

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self._answers = answers
        slots = SimpleNamespace(held_bytes=0, held_slots=0)
        self.helper = SimpleNamespace(free_slots=lambda: None, slots=slots, is_interrupted=False)
        self.sent = 0
        self._asked: list[Stream] = []

    def number(self) -> int:
        return 1

    def ask(self, method: str, body: dict[str, Any]) -> Any:
        if method == "start":
            return {"state": b"\0"}
        while self._asked:
            self.receive()
        # The next answer is on its way, unless it is the end.
        is_next_before = self.sent < len(self._answers) - 1
        return {"after": bytes([sum(map(counted, self._answers[: self.sent + is_next_before]))]), "isNextBefore": is_next_before}

    def take(self, stream: Stream) -> None:
        self._asked.append(stream)

    def receive(self) -> None:
        message = encode({"kind": "reply", "id": 1, "body": self._answers[min(self.sent, len(self._answers) - 1)]})
        self.sent += 1
        self._asked.pop().add(Received(np.frombuffer(bytearray(message), dtype=np.uint8), None))


def position(checkpoint: Checkpoint) -> int:
    """The number of the element with which a restored stream begins."""
    assert checkpoint.state is not None and not checkpoint.ended
    pending = [cast(Bytes, np.frombuffer(bytearray(message), dtype=np.uint8)) for message in checkpoint.pending]
    left = sum(counted(decode(message)["body"]) for message in pending) - checkpoint.dropped
    return checkpoint.state[0] + checkpoint.skip - left


class Interrupt:
    """Raises KeyboardInterrupt before a line of the methods that give batches, counted from 0."""

    METHODS = {method.__code__ for method in (Stream.next, Stream._take, Stream._drop_answer, Stream._note_position)}

    def __init__(self, line: int) -> None:
        self._left = line
        self.has_come = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code not in self.METHODS:
            return None
        if event == "line" and not self.has_come:
            self.has_come = self._left == 0
            self._left -= 1
            if self.has_come:
                raise KeyboardInterrupt
        return self


def read_with(interrupt: Interrupt, keeps: bool = False) -> list[int]:
    """The numbers of the elements that a program gets. From the interrupt on, it saves the position before each.

    With `keeps`, it also saves all earlier positions.
    """
    stream = Stream(cast(Connection, Helper(ANSWERS)), Checkpoint(), False)
    stream.keeps = keeps
    found: list[int] = []
    at: int | None = None
    while True:
        before = sys.gettrace()
        sys.settrace(interrupt)
        got: int | None = None
        try:
            got = int(stream.next())
        except KeyboardInterrupt:
            pass
        except leat.LeatError as error:
            # A failure of reading is no element.
            got = int(error.message) if error.message.isdigit() else None
        except StopIteration:
            assert at in (None, COUNT)
            return found
        finally:
            sys.settrace(before)
        if got is not None:
            found.append(got)
            assert at in (None, got), f"the position before {got} is {at}"
        if interrupt.has_come:
            at = position(stream.checkpoint())
            if keeps:
                assert [position(stream.ask_checkpoint(given)) for given in range(at)] == list(range(at))


def test_stream_next_gives_elements_and_their_errors_in_order() -> None:
    assert read_with(Interrupt(-1)) == list(range(COUNT))


def test_a_stream_keeps_no_message_whose_elements_the_program_has_got() -> None:
    stream = Stream(cast(Connection, Helper(ANSWERS)), Checkpoint(), False)
    stream.keeps = True
    for _ in range(3):
        stream.next()
    assert [answer.at for answer in stream._kept] == [0]
    stream.forget(1)
    assert len(stream._kept) == 1
    stream.forget(2)
    assert len(stream._kept) == 0


def test_a_position_after_an_element_that_has_not_come_is_saved_with_this_element() -> None:
    elements: list[dict[str, Any]] = [{"elements": [number], "isUnsaved": True} for number in range(9)]
    stream = Stream(cast(Connection, Helper([*elements, {"elements": [], "end": True}])), Checkpoint(), False)
    for number in range(9):
        assert stream.next() == number
        assert position(stream.checkpoint()) == number + 1


@pytest.mark.parametrize("keeps", [False, True])
def test_ctrl_c_at_any_line_of_stream_next_costs_at_most_one_batch_and_the_position_is_right(keeps: bool) -> None:
    line = lost = 0
    while True:
        interrupt = Interrupt(line)
        found = read_with(interrupt, keeps)
        if not interrupt.has_come:
            break
        assert found == sorted(found) and len(found) >= COUNT - 1, f"line {line}: {found}"
        lost += COUNT - len(found)
        line += 1
    # Between the removal of a batch and the end of the call.
    assert 0 < lost < line
