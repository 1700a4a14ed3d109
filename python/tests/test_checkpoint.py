"""Positions: any one continues the same stream, in another process too."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator

import leat
import numpy as np
import pytest
from conftest import PIPELINES, until
from leat._checkpoint import Checkpoint
from leat._stream import Stream


def plain(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    return batch.tolist() if isinstance(batch, np.ndarray) else batch


def numbers(count: int = 1_000, seed: int | None = 5) -> leat.Loader:
    return leat.load(PIPELINES, export="numbers", args={"count": count}, seed=seed)


def test_state_dict_continues_the_same_stream_after_any_batch() -> None:
    loader, states, batches = numbers(), [], []
    states.append(loader.state_dict())
    for batch in loader:
        batches.append(plain(batch))
        states.append(loader.state_dict())
    assert len(batches) == 250
    other = numbers()
    for had in (0, 1, 7, 100, 249):
        stored = json.dumps(states[had])
        assert len(stored) < 4_000
        other.load_state_dict(json.loads(stored))
        assert [plain(batch) for batch in other] == batches[had:]


def test_a_state_of_the_beginning_is_that_of_the_first_epoch_also_after_others_and_after_a_failure() -> None:
    loader = numbers(count=20)
    beginning = loader.state_dict()
    first, second = ([plain(batch) for batch in loader] for _ in range(2))
    loader.load_state_dict(beginning)
    assert [plain(batch) for batch in loader] == first != second
    assert [plain(batch) for batch in loader] == second
    other = numbers(count=20)
    other.load_state_dict({**beginning, "state": "AAAA"})
    with pytest.raises(leat.LeatError, match="another format"):
        iter(other)
    other.load_state_dict(beginning)
    assert [plain(batch) for batch in other] == first


def test_a_state_of_another_seed_is_refused_and_the_error_names_the_seed() -> None:
    loader = numbers(seed=1)
    batches = iter(loader)
    next(batches), next(batches)
    other = numbers(seed=2)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(leat.LeatError, match="withOptions: seed was 1 and is 2.* has not changed: .*the seed") as raised:
        next(iter(other))
    assert raised.value.code == "failed_precondition"


def test_a_state_of_another_batch_size_rank_or_number_of_processes_is_refused_with_both_values() -> None:
    def of(consumer: tuple[int, int] | None, size: int = 4) -> leat.Loader:
        return leat.load(PIPELINES, export="numbers", args={"count": 40, "size": size}, seed=1, consumer=consumer)

    loader = of((1, 2))
    beginning = loader.state_dict()
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    others: list[tuple[int, int] | None] = [(0, 2), (1, 3), None]
    for consumer in others:
        other = of(consumer)
        with pytest.raises(leat.LeatError) as raised:
            other.load_state_dict(state)
        assert raised.value.code == "failed_precondition" and "rank" in raised.value.message
        assert f"consumer=(1, 2), and this one has consumer={consumer}: " in raised.value.message
        other.load_state_dict(beginning)
        next(iter(other))
        with pytest.raises(leat.LeatError, match=rf"consumer={re.escape(str(consumer))}, and this one has consumer=\(1, 2\)"):
            loader.load_state_dict(other.state_dict())
    other = of((1, 2), size=5)
    other.load_state_dict(state)
    with pytest.raises(leat.LeatError, match="batch: size was 4 and is 5"):
        iter(other)


def test_a_stream_without_a_seed_is_continued_too() -> None:
    loader = numbers(seed=None)
    batches = iter(loader)
    first = [plain(next(batches)) for _ in range(3)]
    state = loader.state_dict()
    rest = [plain(batch) for batch in batches]
    other = numbers(seed=None)
    other.load_state_dict(state)
    assert [plain(batch) for batch in other] == rest
    assert first[0] != plain(next(iter(numbers(seed=None))))


@pytest.mark.parametrize("nested", [False, True])
def test_a_stream_whose_order_is_another_after_a_restart_is_continued_with_each_element_once(nested: bool) -> None:
    def reading(late: bool) -> leat.Loader:
        return leat.load(PIPELINES, export="overtaking", args={"late": late, "nested": nested}, seed=1)

    loader, other = reading(late=False), reading(late=True)
    had, states = [], []
    for element in loader:
        had.append(element)
        states.append(loader.state_dict())
    for count in range(3, 40, 6):
        other.load_state_dict(states[count - 1])
        assert sorted(had[:count] + list(other)) == list(range(40))


def read_until_saved_with_batches(loader: leat.Loader) -> tuple[Iterator[Any], dict[str, Any]]:
    """At first there is little on its way, and a position to skip from."""
    batches = iter(loader)
    state: dict[str, Any] = {}

    def is_saved_with_batches() -> bool:
        nonlocal state
        next(batches)
        state = loader.state_dict()
        return "pending" in state

    until(is_saved_with_batches)
    assert "skip" not in state
    return batches, state


def test_a_pipeline_that_holds_much_is_continued_with_what_is_on_its_way() -> None:
    loader = leat.load(PIPELINES, export="held", seed=1)
    batches, state = read_until_saved_with_batches(loader)
    rest = [plain(next(batches)) for _ in range(40)]
    other = leat.load(PIPELINES, export="held", seed=1)
    other.load_state_dict(json.loads(json.dumps(state)))
    again = iter(other)
    assert [plain(next(again)) for _ in range(2)] == rest[:2]
    # And once more, in the midst of what was restored.
    other.load_state_dict(other.state_dict())
    again = iter(other)
    assert [plain(next(again)) for _ in range(38)] == rest[2:]


def test_state_dict_loses_no_batch_that_comes_with_the_position() -> None:
    loader = leat.load(PIPELINES, export="mixed", seed=1)
    had, states = [], {}
    for batch in loader:
        had.append(batch["x"])
        state = loader.state_dict()
        if batch["x"] in (0, 7, 30, 58):
            states[batch["x"]] = state
    assert had == list(range(60))
    for last, state in states.items():
        loader.load_state_dict(state)
        assert [batch["x"] for batch in loader] == had[last + 1 :]


def test_state_dict_has_the_position_once_however_many_batches_are_on_their_way() -> None:
    loader = leat.load(PIPELINES, export="mixed", seed=1)
    list(loader)  # From now on the position has all elements: 2.4 MB.
    positions, messages = [], []
    for _ in loader:
        state = loader.state_dict()
        positions.append(len(state["state"]))
        messages += [len(message) for message in state.get("pending", [])]
    assert min(positions) > 2_000_000 and 0 < max(messages) < 200_000


def test_an_interrupted_state_dict_loses_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="mixed", seed=1)
    list(loader)  # From now on the state is so large that only the helper knows the position.
    helper = loader._connection.helper
    ask, fill = helper.ask, helper._fill
    will_interrupt = is_waiting = False

    def asking(number: int, method: str, body: Any) -> None:
        nonlocal is_waiting
        ask(number, method, body)
        is_waiting = method == "save"

    def interrupted() -> None:
        nonlocal will_interrupt
        if will_interrupt and is_waiting:
            will_interrupt = False
            raise KeyboardInterrupt
        fill()

    monkeypatch.setattr(helper, "ask", asking)
    monkeypatch.setattr(helper, "_fill", interrupted)
    had, states = [], {}
    for batch in loader:
        had.append(batch["x"])
        will_interrupt = True
        with pytest.raises(KeyboardInterrupt):
            loader.state_dict()
        if len(had) % 20 == 10:
            states[len(had)] = loader.state_dict()
    assert had == list(range(60))
    for count, state in states.items():
        loader.load_state_dict(state)
        assert [batch["x"] for batch in loader] == had[count:]


@pytest.mark.parametrize("batches", [1, 2])
def test_a_state_after_any_batch_is_refused_when_files_have_changed(batches: int, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name}1\n{name}2\n")
    args = {"files": f"{tmp_path}/*.txt"}
    loader = leat.load(PIPELINES, export="lines", args=args, seed=1)
    given = iter(loader)
    for _ in range(batches):
        next(given)
    state = loader.state_dict()
    (tmp_path / "d.txt").write_text("d1\n")
    other = leat.load(PIPELINES, export="lines", args=args, seed=1)
    other.load_state_dict(state)
    with pytest.raises(leat.LeatError, match="changed") as raised:
        next(iter(other))
    assert raised.value.code == "failed_precondition"


def test_a_state_of_the_end_begins_the_next_epoch_however_large_the_pipelines_state_is() -> None:
    loader = leat.load(PIPELINES, export="cached", args={"count": 600}, seed=1)
    for given, _ in enumerate(loader):
        # Until the helper sees that the state is large. It looks the less often, the longer a save takes.
        if loader._stream is not None and loader._stream.is_position_known:
            time.sleep(0.001 * given)
    assert loader._stream is not None and not loader._stream.is_position_known
    state = loader.state_dict()
    assert state["ended"] is True
    loader.load_state_dict(state)
    assert [sum(1 for _ in loader) for _ in range(2)] == [600, 600]


def test_explain_after_the_end_of_an_epoch_does_not_change_the_position() -> None:
    loader = numbers(count=20)
    list(loader)
    loader.explain()
    state = loader.state_dict()
    epoch = [plain(batch) for batch in loader]
    other = numbers(count=20)
    other.load_state_dict(state)
    assert [plain(batch) for batch in other] == epoch


class FailingConnection:
    """A connection to a helper that sends two batches, then a failure of reading and the end."""

    memory = 1
    helper = SimpleNamespace(slots=SimpleNamespace(held_bytes=0, held_slots=0), free_slots=lambda: None)
    failure = {"error": {"code": "unavailable", "message": "no worker"}, "hasReadingFailed": True}

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = [
            {"state": b"beginning", "elements": [0, 1]},
            {"elements": [], **self.failure},
            {"elements": [], "end": True},
        ]

    def number(self) -> int:
        return 1

    def ask(self, method: str, body: dict[str, Any]) -> Any:
        return {}

    def take(self, stream: Stream) -> None:
        self.stream = stream

    def receive(self) -> None:
        value = {"kind": "reply", "body": self.answers.pop(0)}
        self.stream.add(SimpleNamespace(value=value, lease=None, bytes=b""))  # type: ignore[arg-type]


def test_a_failure_of_reading_is_no_part_of_the_position_and_not_the_end_of_the_epoch() -> None:
    stream = Stream(FailingConnection(), Checkpoint(), reuse=False)  # type: ignore[arg-type]
    assert [stream.next(), stream.next()] == [0, 1]
    with pytest.raises(leat.LeatError, match="no worker"):
        stream.next()
    assert stream.checkpoint() == Checkpoint(b"beginning", skip=2)
    with pytest.raises(StopIteration):
        stream.next()
    assert stream.checkpoint() == Checkpoint(b"beginning", skip=2)


def test_each_iter_is_an_epoch_and_a_state_of_the_end_begins_the_next() -> None:
    loader = numbers(count=20)
    epochs = [[plain(batch) for batch in loader]]
    state = loader.state_dict()
    epochs += [[plain(batch) for batch in loader] for _ in range(2)]
    assert epochs[0] != epochs[1] != epochs[2] and all(len(epoch) == 5 for epoch in epochs)
    other = numbers(count=20)
    other.load_state_dict(state)
    assert [plain(batch) for batch in other] == epochs[1]
    assert [plain(batch) for batch in other] == epochs[2]


def test_load_state_dict_refuses_what_is_no_state() -> None:
    loader = numbers(count=4)
    with pytest.raises(leat.LeatError, match="not one that state_dict"):
        loader.load_state_dict({"step": 3})
    state = loader.state_dict()
    next(iter(loader))
    other = leat.load(PIPELINES, export="failing")
    other.load_state_dict(loader.state_dict())
    with pytest.raises(leat.LeatError) as raised:
        iter(other)
    assert raised.value.code == "failed_precondition" and state == {"leat": 1}


def as_text(message: bytes) -> str:
    return base64.b64encode(message).decode()


CHANGES: tuple[dict[str, Any], ...] = (
    *({"skip": skip} for skip in (-1, 2**70, float("inf"), "1e3")),
    *({"dropped": dropped} for dropped in (10**9, -3)),
    *({"state": state} for state in ("!", as_text(b"\x91" * 1_000_000))),
    *({"pending": pending} for pending in ("abcd", {"a": 1})),
    *(
        {"pending": [as_text(message)]}
        for message in (b"", b"\xce\xff\xff\xff\xff\x80", b"\xce\x00\x00\x00\x01\x80", b"\xce\x00\x00\x00\x02\x80\x80")
    ),
)


def test_no_forged_or_damaged_state_is_taken_or_spoils_the_loader() -> None:
    loader = leat.load(PIPELINES, export="held", seed=1)
    batches, state = read_until_saved_with_batches(loader)
    rest = [plain(next(batches)) for _ in range(40)]
    forged = {key: value for key, value in state.items() if key != "crc32"}
    for wrong in ({**known, **change} for known in (state, forged) for change in CHANGES):
        with pytest.raises(leat.LeatError) as error:
            loader.load_state_dict(wrong)
            next(iter(loader))
        assert error.value.code in ("invalid_argument", "data_loss")
    message = bytearray(base64.b64decode(state["pending"][0]))
    message[-1] ^= 1
    with pytest.raises(leat.LeatError, match="damaged"):
        loader.load_state_dict({**state, "pending": [as_text(bytes(message)), *state["pending"][1:]]})
    for known in (state, forged):
        loader.load_state_dict(known)
        again = iter(loader)
        assert [plain(next(again)) for _ in range(40)] == rest
