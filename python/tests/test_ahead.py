"""Batches that a thread copies to a device while the program uses others."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Iterator

import leat
import numpy as np
import pytest
from conftest import DEADLINE_SECONDS, PIPELINES, SOURCES, until
from leat._ahead import Ahead

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import leat.torch  # noqa: E402


def large(count: int, **options: Any) -> leat.Loader:
    return leat.load(PIPELINES, export="large", args={"count": count}, **options)


def copiers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("leat-copies")]


class Copies:
    """A device whose tensors are copies in this process. A copy may wait, or fail."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.begun = 0
        # How many copies may end.
        self.allowed = threading.Semaphore(1_000_000)
        self.failing: int | None = None

    def __call__(self, function: Any, element: Any) -> Any:
        self.threads.add(threading.get_ident())
        self.begun += 1
        assert self.allowed.acquire(timeout=DEADLINE_SECONDS), "a copy waits for ever"
        if self.begun == self.failing:
            raise MemoryError("the device is full")
        return {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in element.items()}


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[Copies]:
    made = Copies()
    # `meta` is the only device besides the CPU that every machine has.
    monkeypatch.setattr(leat.torch, "_map_tensors", made)
    yield made
    made.allowed.release(1_000_000)
    gc.collect()
    until(lambda: copiers() == [])


def test_the_next_batch_is_copied_by_a_thread_while_the_program_has_this_one(copies: Copies) -> None:
    copies.allowed = threading.Semaphore(1)
    batches = iter(leat.torch.Loader(large(4), device="meta"))
    # The second copy does not end, and the program has its batch.
    assert next(batches)["i"] == 0
    until(lambda: copies.begun == 2)
    copies.allowed.release(1_000)
    assert [(batch["i"], float(batch["x"][0])) for batch in batches] == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert len(copies.threads) == 1 and threading.get_ident() not in copies.threads


def test_only_the_thread_that_copies_keeps_to_one_core(copies: Copies) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        loader = leat.torch.Loader(large(1), device="meta")
        assert len(list(loader)) == 1 and loader._mover.thread.submit(torch.get_num_threads).result() == 1
        with ThreadPoolExecutor(1) as later:
            assert [torch.get_num_threads(), later.submit(torch.get_num_threads).result()] == [3, 3]
    finally:
        torch.set_num_threads(before)


def test_a_copy_that_fails_costs_its_batch_in_its_place(copies: Copies) -> None:
    copies.failing = 2
    loader = leat.torch.Loader(large(5), device="meta", prefetch=3)
    batches = iter(loader)
    assert next(batches)["i"] == 0
    with pytest.raises(MemoryError, match="the device is full"):
        next(batches)
    state = loader.state_dict()
    assert [batch["i"] for batch in batches] == [2, 3, 4]
    other = leat.torch.Loader(large(5), device="meta")
    other.load_state_dict(state)
    assert next(iter(other))["i"] == 2


def test_the_position_is_that_of_the_batch_the_program_has(copies: Copies) -> None:
    loader = leat.torch.Loader(large(6), device="meta", prefetch=2)
    batches = iter(loader)
    next(batches), next(batches)
    until(lambda: copies.begun == 4)
    other = leat.torch.Loader(large(6), device="meta")
    other.load_state_dict(loader.state_dict())
    assert [batch["i"] for batch in other] == [2, 3, 4, 5]


def test_batches_are_copied_ahead_although_no_position_can_be_saved(copies: Copies) -> None:
    source = leat.load(PIPELINES, export="unsavable", seed=1)
    loader = leat.torch.Loader(source, device="meta", prefetch=2)
    batches, given = iter(loader), 0
    while source._stream is None or source._stream.is_position_known or given < 10:
        next(batches)
        given += 1
    next(batches)
    until(lambda: copies.begun == given + 3)
    with pytest.raises(leat.LeatError, match="cannot be saved"):
        loader.state_dict()
    assert next(batches)["i"] >= 0


@pytest.mark.parametrize("count", [1, 2])
def test_batches_are_moved_ahead_where_only_the_helper_knows_the_position_which_is_that_of_the_program(count: int) -> None:
    loader, moved = leat.load(PIPELINES, export="held", seed=1), []
    batches, given = Ahead(loader, lambda batch: moved.append(repr(batch)) or batch, count), 0
    while batches._position is None or batches._position.known is not None or given < 10:
        next(batches)
        given += 1
    assert len(moved) == given + count
    other = leat.load(PIPELINES, export="held", seed=1)
    other.load_state_dict(batches.state_dict())
    resumed = iter(other)
    assert [repr(next(resumed)) for _ in range(5)] == [repr(next(batches)) for _ in range(5)]


def test_a_position_before_batches_that_are_ahead_gives_each_element_once_although_the_order_is_another_one_then() -> None:
    loader, other = (leat.load(PIPELINES, export="overtaking", args={"late": late}, seed=1) for late in (False, True))
    batches, had, states = Ahead(loader, lambda batch: batch, 3), [], []
    for element in batches:
        had.append(element)
        states.append(batches.state_dict())
    for count in (*range(3, 40, 6), 40):
        other.load_state_dict(states[count - 1])
        assert sorted(had[:count] + (list(other) if count < 40 else [])) == list(range(40))


def test_ctrl_c_while_a_batch_is_copied_loses_none(copies: Copies) -> None:
    copies.allowed = threading.Semaphore(1)
    batches = iter(leat.torch.Loader(large(4), device="meta"))
    assert next(batches)["i"] == 0

    main = threading.get_ident()

    def is_waiting() -> bool:
        frame = sys._current_frames()[main]
        return frame.f_code.co_name == "wait" and frame.f_back is not None and frame.f_back.f_code is Future.exception.__code__

    def interrupt() -> None:
        until(is_waiting)
        os.kill(os.getpid(), signal.SIGINT)

    for _ in range(3):
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            next(batches)
    copies.allowed.release(1_000)
    assert [batch["i"] for batch in batches] == [1, 2, 3]


class Alarm(Exception):
    """What a signal handler of a program raises."""


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, Alarm, TimeoutError])
@pytest.mark.parametrize("count", [0, 1])
def test_a_signal_while_this_thread_moves_a_batch_loses_none(count: int, interrupt: type[BaseException]) -> None:
    loader, will_interrupt = large(4), True

    def move(batch: Any) -> Any:
        nonlocal will_interrupt
        if will_interrupt and batch["i"] == 1:
            will_interrupt = False
            raise interrupt
        return batch

    batches, had, state = Ahead(loader, move, count), [], None
    while state is None:
        try:
            had.append(next(batches)["i"])
        except interrupt:
            state = batches.state_dict()
    rest = [batch["i"] for batch in batches]
    assert had + rest == [0, 1, 2, 3]
    loader.load_state_dict(state)
    assert [batch["i"] for batch in loader] == rest


def test_an_exception_of_a_signal_handler_is_raised_by_the_call_that_it_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = large(4)
    batches = Ahead(loader, lambda batch: batch, 1)
    assert next(batches)["i"] == 0

    def interrupted(_: Any) -> None:
        raise Alarm

    with monkeypatch.context() as patched:
        patched.setattr("leat._helper.decode", interrupted)
        with pytest.raises(Alarm):
            next(batches)
    assert [batch["i"] for batch in batches] == [1, 2, 3]


def test_no_position_is_saved_that_skips_a_batch_which_ctrl_c_left_unmoved() -> None:
    loader, will_interrupt = leat.load(PIPELINES, export="held", seed=1), True

    def move(batch: Any) -> Any:
        nonlocal will_interrupt
        # Without a position that costs little to save.
        if will_interrupt and batches._position is not None and batches._position.known is None:
            will_interrupt = False
            raise KeyboardInterrupt
        return batch

    batches = Ahead(loader, move, 0)
    with pytest.raises(KeyboardInterrupt):
        while True:
            next(batches)
    with pytest.raises(leat.LeatError, match=r"call next\(\) again"):
        batches.state_dict()
    next(batches)
    other = leat.load(PIPELINES, export="held", seed=1)
    other.load_state_dict(batches.state_dict())
    resumed = iter(other)
    assert [repr(next(batches)) for _ in range(5)] == [repr(next(resumed)) for _ in range(5)]


@pytest.mark.parametrize("count", [0, 1])
def test_a_position_that_only_the_helper_knows_can_be_saved_after_ctrl_c_when_a_batch_was_just_taken(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = leat.load(PIPELINES, export="held", seed=1)
    batches = Ahead(loader, lambda batch: batch, count)
    next(batches)
    while loader._stream is None or loader._stream.is_position_known:
        next(batches)
    take = loader._stream.next

    def interrupted() -> None:
        take()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(loader._stream, "next", interrupted)
        next(batches)
    other = leat.load(PIPELINES, export="held", seed=1)
    other.load_state_dict(batches.state_dict())
    # The position is after the batch that was lost, or before those that are ahead.
    resumed = [repr(batch) for batch, _ in zip(other, range(5))]
    assert repr(next(batches)) == resumed[0] and repr(next(batches)) in resumed[1:3]


def test_break_and_del_end_the_thread(copies: Copies) -> None:
    loader = leat.torch.Loader(large(9), device="meta")
    for batch in loader:
        if batch["i"] == 2:
            break
    threads = copiers()
    assert [batch["i"] for batch in loader] == list(range(9)) and copiers() == threads and len(threads) == 1
    del loader, threads
    until(lambda: copiers() == [])


def test_a_loop_that_outlives_the_main_thread_goes_on_without_the_thread(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = iter(leat.torch.Loader(large(6), device="meta"))
    next(batches), next(batches)
    # Python sets it when the main thread has ended.
    monkeypatch.setattr("concurrent.futures.thread._shutdown", True)
    assert [batch["i"] for batch in batches] == [2, 3, 4, 5]
    assert [batch["i"] for batch in leat.torch.Loader(large(3), device="meta")] == [0, 1, 2]


@pytest.mark.parametrize("end, code", [("", 0), ("1 / 0", 1), ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT)])
def test_a_program_ends_amid_copies(end: str, code: int) -> None:
    script = f"""if True:
        import leat, leat.torch
        batches = iter(leat.torch.Loader(leat.load({str(PIPELINES)!r}, export="large", args={{"count": 9}}), device="meta", prefetch=3))
        next(batches)
        {end}
    """
    ended = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": SOURCES}, capture_output=True, text=True)
    assert ended.returncode == code and "leat" not in ended.stderr.replace("leat.torch.Loader", "")


def test_a_fork_is_refused_although_a_copy_has_begun(copies: Copies) -> None:
    copies.allowed = threading.Semaphore(1)
    batches = iter(leat.torch.Loader(large(4), device="meta"))
    next(batches)
    until(lambda: copies.begun == 2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(DEADLINE_SECONDS)
        try:
            next(batches)
        except leat.LeatError as error:
            os.write(write, error.code.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert said.read() == "failed_precondition"
    os.waitpid(child, 0)
    copies.allowed.release(1_000)
    assert [batch["i"] for batch in batches] == [1, 2, 3]


def test_memory_that_is_used_again_is_copied_first(copies: Copies) -> None:
    copies.allowed = threading.Semaphore(1)
    source = large(40, reuse=True)
    batches = iter(leat.torch.Loader(source, device="meta", prefetch=2))
    threading.Thread(target=lambda: (until(lambda: copies.begun == 2), copies.allowed.release(1_000))).start()
    assert [(batch["i"], bool((batch["x"] == batch["i"]).all())) for batch in batches] == [(i, True) for i in range(40)]
    assert len(source._connection.helper.slots._regions) <= 8
    with pytest.raises(leat.LeatError, match="without reuse=True"):
        leat.torch.Loader(source, prefetch=1)


class Stream:
    """In place of a stream of a GPU: notes what it is given, by the first value of a batch."""

    current: Stream

    def __init__(self, *_: Any) -> None:
        self.log: list[str] = []

    def record_event(self) -> str:
        return f"event {self.log[-1]}"

    def wait_event(self, event: str) -> None:
        self.log.append(event)

    def __enter__(self) -> None:
        Stream.current, self.before = self, Stream.current

    def __exit__(self, *_: object) -> None:
        Stream.current = self.before


def test_a_step_waits_for_its_own_batch_which_is_copied_from_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    program, pinned = Stream(), []
    Stream.current = program

    def pin(tensor: Any) -> Any:
        pinned.append(tensor.clone())
        return pinned[-1]

    def to(tensor: Any, device: Any, non_blocking: bool) -> Any:
        assert device == torch.device("cuda:0") and non_blocking and tensor is pinned[-1]
        Stream.current.log.append(f"{tensor[0]:.0f}")
        return tensor

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: program)
    monkeypatch.setattr(torch, "empty", lambda *_, device: type("Empty", (), {"device": torch.device("cuda:0")}))
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: stream.log.append(f"uses {tensor[0]:.0f}"))
    loader = leat.torch.Loader(large(4), device="cuda", prefetch=2)
    assert [(batch["i"], float(batch["x"][-1])) for batch in loader] == [(i, i) for i in range(4)]
    assert loader._mover._stream.log == ["0", "1", "2", "3"]
    assert program.log == [text for i in range(4) for text in (f"event {i}", f"uses {i}")]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_arrive_on_a_gpu() -> None:
    loader = leat.torch.Loader(large(50), device="cuda", prefetch=2)
    for _ in range(2):
        kept = []
        for batch in loader:
            assert batch["x"].device.type == "cuda"
            kept.append(batch["x"].sum() / batch["x"].numel())
        assert np.allclose(torch.stack(kept).cpu().numpy(), np.arange(50))
