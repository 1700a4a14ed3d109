"""Errors, interruptions and ends: what a program sees, and that nothing is left."""

from __future__ import annotations

import base64
import ctypes
import errno
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import leat
import pytest
from conftest import DEADLINE_SECONDS, PIPELINES, SOURCES, children_of, is_alive, until
from leat import _deno, _helper, _slots, _stream
from leat._connection import Connection
from leat._deno import helper_command
from leat._frames import FREED, HEADER, PIPED

def helper_of(loader: leat.Loader) -> int:
    return loader._connection.helper._process._child.pid


def test_an_element_that_fails_is_raised_with_its_place_and_the_next_one_comes() -> None:
    batches = iter(leat.load(PIPELINES, export="failing"))
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(leat.LeatError, match="no 2 today") as raised:
        next(batches)
    line = next(i for i, text in enumerate(PIPELINES.read_text().splitlines(), 1) if "today" in text)
    assert any(place.startswith(f"{PIPELINES}:{line}:") for place in raised.value.places)
    assert f"pipelines.ts:{line}:" in str(raised.value)
    assert list(batches) == [3, 4]


def test_a_place_in_a_folder_with_a_space_or_a_percent_sign_is_named(tmp_path: Path) -> None:
    pipeline = tmp_path / "my pipelines, 100%20 of them" / "failing.ts"
    pipeline.parent.mkdir()
    pipeline.write_text('import { Dataset } from "@leat/leat";\nexport default Dataset.range(1).map(() => {\n  throw new Error("no");\n});\n')
    with pytest.raises(leat.LeatError, match="no") as raised:
        next(iter(leat.load(pipeline)))
    assert raised.value.places[0].startswith(f"{pipeline}:3:")


def test_an_element_that_cannot_be_sent_costs_only_itself_and_the_position_is_right() -> None:
    loader, found, errors = leat.load(PIPELINES, export="unsendable"), [], []
    batches = iter(loader)
    while len(found) < 61:
        try:
            found.append(next(batches)["x"])
        except leat.LeatError as error:
            errors.append(f"{len(found)}: {error}")
    assert found == [x for x in range(64) if x not in (40, 57, 60)]
    assert "40: " in errors[0] and "half a surrogate pair" in errors[0]
    assert "56: cannot encode $.when: Date cannot be sent" in errors[1] and "58: An element takes 1200000080 bytes" in errors[2]
    other = leat.load(PIPELINES, export="unsendable")
    other.load_state_dict(loader.state_dict())
    assert next(iter(other)) == {"x": 64}


def test_load_raises_what_the_module_throws() -> None:
    with pytest.raises(leat.LeatError, match="cannot be built") as raised:
        leat.load(PIPELINES, export="throwing")
    assert raised.value.code == "failed_precondition" and "pipelines.ts" in raised.value.places[0]
    with pytest.raises(leat.LeatError, match="no 'train'"):
        leat.load(PIPELINES, export="train")
    with pytest.raises(leat.LeatError, match="There is no pipeline"):
        leat.load("no/such.ts")
    with pytest.raises(leat.LeatError, match="takes no arguments"):
        leat.load(PIPELINES, export="endless", args={"a": 1})
    with pytest.raises(leat.LeatError, match="token: only with a service"):
        leat.load(PIPELINES, export="endless", token="secret")
    for allow in ("nets", "net="):
        with pytest.raises(leat.LeatError, match=f"'{allow}', which is not a permission"):
            leat.load(PIPELINES, export="endless", allow=[allow])


def test_permissions_of_one_kind_add_up_and_take_nothing_away() -> None:
    allow = ["net=a.org", "net=b.org:80", "read=/data", "sys=uid", "env=HOME", "import", "import=c.org", "write=/kept"]
    flags = helper_command(Path("/read"), Path("/written"), allow, [])
    given = {flag for flag in flags if flag.startswith("--allow-")}
    names = "cpus,hostname,networkInterfaces,systemMemoryInfo,uid"
    assert {"--allow-net=a.org,b.org:80", "--allow-read", f"--allow-sys={names}", "--allow-import"} <= given
    assert "--allow-write=/written,/kept" in given and any(flag.endswith(",HOME") for flag in given)
    assert len(given) == len({flag.split("=")[0] for flag in given}), "of two flags, one would narrow the other"


def test_two_loaders_of_one_process_do_not_disturb_each_other() -> None:
    one = leat.load(PIPELINES, export="large", args={"count": 6})
    other = leat.load(PIPELINES, export="ready")
    assert len(one) == 6 and len(other) == 300
    found = [(float(a["x"].min()), float(a["x"].max()), int(b.min())) for a, b in zip(one, other)]
    assert found == [(i, i, 1) for i in range(6)]


def test_consumer_divides_a_pipeline_that_runs_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = leat.load(PIPELINES, export="large", args={"count": 8}, consumer="auto")
    assert [batch["i"] for batch in loader] == [1, 4, 7]
    with pytest.raises(leat.LeatError, match="rank < world"):
        leat.load(PIPELINES, export="endless", consumer=(2, 2))


def test_consumer_auto_is_refused_if_it_was_asked_before_there_were_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = leat.load(PIPELINES, export="large", args={"count": 2})
    loader = leat.load(PIPELINES, export="large", args={"count": 2}, consumer="auto")
    assert [batch["i"] for batch in loader] == [0, 1]
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    for early in (loader, pickle.loads(pickle.dumps(loader))):
        with pytest.raises(leat.LeatError, match="has become rank 1 of 3 since: make the loader after .*initialize") as raised:
            iter(early)
        assert raised.value.code == "failed_precondition"
    assert [batch["i"] for batch in everything] == [0, 1]


def test_consumers_divide_the_stream_of_a_single_consumer() -> None:
    def read(rank: int, world: int) -> list[Any]:
        loader = leat.load(PIPELINES, export="numbers", args={"count": 24}, seed=3, consumer=(rank, world))
        return [[batch["x"].tolist() for batch in loader] for _ in range(2)]

    whole, parts = read(0, 1), [read(rank, 2) for rank in range(2)]
    assert whole[0] != whole[1]
    for rank in range(2):
        assert parts[rank] == [epoch[rank::2] for epoch in whole]


@pytest.mark.parametrize("nested", [False, True])
def test_consumers_read_each_element_once_although_calls_overtake_each_other_in_one_of_them(nested: bool) -> None:
    parts = [
        leat.load(PIPELINES, export="overtaking", args={"late": rank == 1, "nested": nested}, consumer=(rank, 2))
        for rank in range(2)
    ]
    assert sorted(element for part in parts for element in part) == list(range(40))


def test_consumers_are_refused_for_an_offload_that_may_give_each_another_order() -> None:
    with pytest.raises(leat.LeatError, match="offload may give each process .*: give offload deterministic: true and a plan") as raised:
        leat.load(PIPELINES, export="offloaded", args={"service": "ws://127.0.0.1:1"}, consumer=(0, 2))
    assert raised.value.code == "failed_precondition"


def test_a_registry_that_cannot_be_reached_is_an_error_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DENO_DIR", str(tmp_path / "deno"))
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:1")
    with pytest.raises(leat.LeatError, match="exit code 1. The first loader.*run it once with a network") as raised:
        leat.load(PIPELINES, export="endless")
    assert raised.value.code == "unavailable" and "backtrace" not in str(raised.value)


def test_a_permission_that_is_missing_is_named_as_load_takes_it() -> None:
    with pytest.raises(leat.LeatError, match=r'give leat.load allow=\["net=127.0.0.1:6123"\]') as raised:
        next(iter(leat.load(PIPELINES, export="remote")))
    assert raised.value.code == "permission_denied" and "--allow" not in str(raised.value)


def test_a_pipeline_that_cannot_be_parsed_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "wrong.ts").write_text("export default Dataset.range(10).map((x => x;\n")
    with pytest.raises(leat.LeatError, match="cannot be imported") as raised:
        leat.load(tmp_path / "wrong.ts")
    assert raised.value.places == [f"{tmp_path}/wrong.ts:1:45"]


def test_len_is_refused_where_there_is_none() -> None:
    with pytest.raises(TypeError, match="endless"):
        len(leat.load(PIPELINES, export="endless"))


def test_an_older_iterator_is_refused() -> None:
    loader = leat.load(PIPELINES, export="endless")
    older = iter(loader)
    assert next(older) == 0
    assert next(iter(loader)) == 0
    with pytest.raises(leat.LeatError, match="Another iteration"):
        next(older)
    loader.close()
    loader.close()


def test_close_ends_a_call_of_another_thread_that_waits_for_a_batch() -> None:
    loader = leat.load(PIPELINES, export="waiting")
    batches = iter(loader)
    assert next(batches) == 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, batches)
        until(lambda: _is_held(loader))
        loader.close()
        with pytest.raises(leat.LeatError, match="Another thread has closed this loader") as raised:
            waiting.result()
    assert raised.value.code == "cancelled"
    with pytest.raises(leat.LeatError, match="it is closed"):
        next(batches)
    assert next(iter(loader)) == 0


def test_a_helper_is_ended_only_while_no_other_thread_is_in_a_call_also_at_the_end_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    held, close = [], Connection.close

    def closing(connection: Connection) -> None:
        held.append(connection._lock._is_owned())  # type: ignore[attr-defined]
        close(connection)

    monkeypatch.setattr(Connection, "close", closing)
    loader = leat.load(PIPELINES, export="endless")
    connection, batches = loader._connection, iter(loader)
    connection.close_in_turn()
    for call in (lambda: next(batches), lambda: connection.helper):
        with pytest.raises(leat.LeatError, match="closed") as raised:
            call()
        assert raised.value.code == "failed_precondition"
    (finalizer,) = [finalizer for finalizer in weakref.finalize._registry if (found := finalizer.peek()) and found[0] is loader]  # type: ignore[attr-defined]
    held.clear()
    finalizer()
    assert held == [True]


def _is_held(loader: leat.Loader) -> bool:
    """Whether another thread is in a call of the loader."""
    lock = loader._connection._lock
    if not lock.acquire(blocking=False):
        return True
    lock.release()
    return False


def test_an_interrupted_loop_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupted

    loader = leat.load(PIPELINES, export="late")
    batches, had = iter(loader), [0]
    assert next(batches) == 0
    helper = loader._connection.helper
    wait = helper._wait

    def waiting() -> bool:
        # The timer runs only here: a signal that comes later could cost a batch that was just taken.
        signal.setitimer(signal.ITIMER_REAL, 0.05 if had else 0)
        try:
            return wait()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with monkeypatch.context() as patched, pytest.raises(Interrupted):
            patched.setattr(helper, "_wait", waiting)
            while True:
                for batch in batches:
                    had.append(batch)
                # No wait was long enough, because this process was late.
                had.clear()
                batches = iter(loader)
                had.append(next(batches))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert had + list(batches) == [0, 1, 2]


# A handler that calls the loader raises a LeatError.
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError, RuntimeError, leat.LeatError])
@pytest.mark.parametrize("interrupted", [(_helper, "decode"), (_slots, "_Mapping"), (_slots, "Lease")], ids=lambda pair: pair[1])
def test_an_exception_of_a_signal_handler_while_a_message_is_read_is_raised_and_the_loop_can_go_on(
    interrupted: tuple[Any, str], kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = iter(leat.load(PIPELINES, export="large", args={"count": 3}))
    with monkeypatch.context() as patched, pytest.raises(kind, match="of a handler"):
        patched.setattr(*interrupted, raising(kind))
        next(batches)
    assert [batch["i"] for batch in batches] == [0, 1, 2]


def raising(kind: type[BaseException]) -> Any:
    def interrupt(*_: Any) -> None:
        raise kind("of a handler")

    return interrupt


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_an_exception_of_a_signal_handler_while_a_helper_starts_is_raised_as_it_is(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(_helper, "Process", raising(kind))
    with pytest.raises(kind, match="of a handler"):
        leat.load(PIPELINES, export="endless")
    assert os.listdir("/proc/self/fd") == before


def test_an_exception_while_the_loop_waits_has_no_other_one_as_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="waiting")
    batches = iter(loader)
    assert next(batches) == 0
    monkeypatch.setattr(loader._connection.helper, "_wait", raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as raised:
        next(batches)
    assert raised.value.__context__ is None


def test_a_signal_handler_cannot_call_the_loader_while_another_call_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="late")
    batches = iter(loader)
    helper = loader._connection.helper
    fill, refused = helper._fill, []

    def handler(*_: Any) -> None:
        for call in (loader.state_dict, lambda: next(batches), lambda: iter(loader)):
            with pytest.raises(leat.LeatError, match="Set a flag in the handler") as raised:
                call()
            refused.append(raised.value.code)

    def waiting() -> None:
        signal.raise_signal(signal.SIGALRM)
        fill()

    before = signal.signal(signal.SIGALRM, handler)
    monkeypatch.setattr(helper, "_fill", waiting)
    try:
        assert list(batches) == [0, 1, 2]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert set(refused) == {"failed_precondition"}
    assert loader.state_dict()["ended"] is True


def test_ctrl_c_while_the_next_batches_are_requested_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="endless")
    batches = iter(loader)
    last = next(batches)
    helper = loader._connection.helper
    write = helper._write

    def interrupted(frame: bytes) -> None:
        write(frame)
        raise KeyboardInterrupt

    monkeypatch.setattr(helper, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        while True:
            last = next(batches)
    loader.load_state_dict(loader.state_dict())
    assert next(iter(loader)) == (last + 1) % 10


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def read_to_interrupt(loader: leat.Loader, batches: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Reads until Ctrl-C comes before the stream has what the helper sent, which makes that helper unusable."""
    found = [next(batches)]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(loader._stream, "add", interrupted)
        while True:
            found.append(next(batches))
    return found


def test_ctrl_c_before_the_stream_has_what_came_is_no_gap_in_the_epoch_or_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_loader() -> leat.Loader:
        return leat.load(PIPELINES, export="numbers", args={"count": 4_000}, seed=5)

    reference, loader = open_loader(), open_loader()
    epochs = [[batch["r"].tolist() for batch in reference] for _ in range(3)]
    for epoch in epochs:
        batches = iter(loader)
        found = read_to_interrupt(loader, batches, monkeypatch)
        # Nor is one that comes while another helper is started.
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Connection, "ask", interrupted)
            next(batches)
        assert len(found) < 1_000
        assert [batch["r"].tolist() for batch in [*found, *batches]] == epoch


def test_len_after_ctrl_c_leaves_the_rest_of_the_epoch_to_the_iterator(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30})
    batches = iter(loader)
    found = read_to_interrupt(loader, batches, monkeypatch)
    assert len(loader) == 30
    assert [batch["i"] for batch in [*found, *batches]] == list(range(30))
    assert len(pickle.loads(pickle.dumps(loader))) == 30


@pytest.mark.parametrize("is_ctrl_c", [True, False], ids=["second Ctrl-C", "error"])
def test_iter_begins_the_next_epoch_where_an_iterator_could_not_continue_after_ctrl_c(
    is_ctrl_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30})
    batches, ask = iter(loader), Connection.ask
    had = len(read_to_interrupt(loader, batches, monkeypatch))
    state = loader.state_dict()

    def failing(connection: Connection, method: str, body: dict[str, Any]) -> Any:
        if method == "start":
            raise KeyboardInterrupt if is_ctrl_c else leat.LeatError("data_loss", "a file has changed")
        return ask(connection, method, body)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt if is_ctrl_c else leat.LeatError):
        patched.setattr(Connection, "ask", failing)
        next(batches)
    assert loader.state_dict() == state
    assert [batch["i"] for batch in pickle.loads(pickle.dumps(loader))] == list(range(30))
    assert [batch["i"] for batch in loader] == list(range(30))
    with pytest.raises(leat.LeatError, match="Another iteration"):
        next(batches)
    loader.load_state_dict(state)
    assert [batch["i"] for batch in loader] == list(range(had, 30))


def test_explain_after_ctrl_c_says_to_call_next_which_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30})
    batches = iter(loader)
    found = read_to_interrupt(loader, batches, monkeypatch)
    with pytest.raises(leat.LeatError, match=r"was interrupted: call next\(\) again, which continues") as raised:
        loader.explain()
    assert raised.value.code == "cancelled"
    assert [batch["i"] for batch in [*found, *batches]] == list(range(30))


def test_ctrl_c_with_a_position_that_only_the_helper_had_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="held")
    batches = iter(loader)
    while loader._stream is None or loader._stream.is_position_known:
        next(batches)
    read_to_interrupt(loader, batches, monkeypatch)
    for call in (lambda: next(batches), loader.state_dict):
        with pytest.raises(leat.LeatError, match="give load_state_dict the last state that you saved") as raised:
            call()
        assert raised.value.code == "cancelled"
    assert len(next(iter(loader))) == 3


def test_ctrl_c_after_the_end_of_an_epoch_begins_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 3})
    batches = iter(loader)
    assert [batch["i"] for batch in batches] == [0, 1, 2]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(loader._connection.helper, "_write", interrupted)
        loader.explain()
    with pytest.raises(StopIteration):
        next(batches)
    assert [batch["i"] for batch in loader] == [0, 1, 2]


def test_ctrl_c_before_a_batch_is_ready_leaves_it_to_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="endless")
    batches = iter(loader)
    assert next(batches) == 0

    monkeypatch.setattr(_stream, "with_arrays", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    monkeypatch.undo()
    assert [next(batches) for _ in range(3)] == [1, 2, 3]


def test_an_iteration_after_a_killed_helper_starts_another() -> None:
    loader = leat.load(PIPELINES, export="endless")
    batches = iter(loader)
    assert next(batches) == 0
    os.kill(helper_of(loader), signal.SIGKILL)
    with pytest.raises(leat.LeatError, match="signal SIGKILL") as raised:
        while True:
            next(batches)
    assert raised.value.code == "unavailable"
    with pytest.raises(leat.LeatError, match="signal SIGKILL"):
        next(batches)
    assert next(iter(loader)) == 0


def test_epochs_go_on_in_the_helper_after_one_that_was_lost() -> None:
    def epoch(loader: leat.Loader) -> list[float]:
        return [batch["r"].tolist() for batch in loader]

    def open_loader() -> leat.Loader:
        return leat.load(PIPELINES, export="numbers", args={"count": 12}, seed=5)

    reference, loader = open_loader(), open_loader()
    epochs = [epoch(reference) for _ in range(7)]
    assert [epoch(loader) for _ in range(2)] == epochs[:2]
    os.kill(helper_of(loader), signal.SIGKILL)
    until(lambda: not loader._connection.helper.is_usable)
    assert len(loader) == 3
    loader._connection.open()  # A call that starts a helper begins no epoch.
    assert [epoch(loader) for _ in range(2)] == epochs[2:4]
    loader.close()
    assert epoch(loader) == epochs[4]
    state = loader.state_dict()
    for restored, following in ((state, 6), ({**state, "ended": False}, 5)):
        other = open_loader()
        other.load_state_dict(restored)
        epoch(other)
        other.close()
        assert epoch(other) == epochs[following]
    beginning = open_loader().state_dict()
    loader.load_state_dict(beginning)
    assert epoch(loader) == epochs[0]
    loader.close()
    assert epoch(loader) == epochs[1]


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("is_new", [False, True], ids=["the same helper", "another helper"])
def test_an_epoch_whose_beginning_failed_is_begun_again(monkeypatch: pytest.MonkeyPatch, is_new: bool, is_sent: bool) -> None:
    loader = leat.load(PIPELINES, export="numbers", args={"count": 12}, seed=5)
    epochs = [[batch["r"].tolist() for batch in loader] for _ in range(4)]
    loader.load_state_dict(leat.load(PIPELINES, export="numbers", args={"count": 12}, seed=5).state_dict())
    assert [[batch["r"].tolist() for batch in loader] for _ in range(2)] == epochs[:2]
    if is_new:
        loader.close()
    ask = Connection.ask

    def interrupted(connection: Connection, method: str, body: dict[str, Any]) -> Any:
        if method != "start":
            return ask(connection, method, body)
        if is_sent:
            ask(connection, method, body)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            iter(loader)
    assert [[batch["r"].tolist() for batch in loader] for _ in range(2)] == epochs[2:]


def test_ctrl_c_in_an_iteration_that_resumes_ends_the_helper_that_is_starting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="numbers", args={"count": 40}, seed=5)
    batches, epoch, states = iter(loader), [], []
    for batch in batches:
        epoch.append(batch["r"].tolist())
        states.append(loader.state_dict())
    helper = helper_of(loader)

    def interrupted(connection: Connection, method: str, body: dict[str, Any]) -> Any:
        connection._send(method, body)
        raise KeyboardInterrupt

    loader.load_state_dict(states[7])
    with monkeypatch.context() as patched:
        patched.setattr(Connection, "ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            iter(loader)
    assert not is_alive(helper), "it would displace the next iteration when it has started this one"
    assert loader.state_dict() == states[7]
    loader.load_state_dict(states[0])
    assert [batch["r"].tolist() for batch in loader] == epoch[1:]


def test_a_helper_runs_starts_one_after_another_and_returns_each_iterator() -> None:
    loader = leat.load(PIPELINES, export="counted")
    batches = iter(loader)
    while next(batches)["i"] < 300:
        pass
    start = {"iteration": 1_000, "state": base64.b64decode(loader.state_dict()["state"])}
    loader._connection._send("start", start)
    loader._connection._send("start", {**start, "iteration": 1_001})
    assert next(iter(loader)) == {"i": 0, "running": 1}


def test_a_helper_that_hangs_ends_with_its_loader() -> None:
    loader = leat.load(PIPELINES, export="stuck")
    assert next(iter(loader)) == 0
    helper = helper_of(loader)
    del loader
    until(lambda: not is_alive(helper))


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_helper_ends_with_a_killed_program_and_leaves_nothing() -> None:
    # Its second element never comes: it does not see that its pipe has ended.
    script = f"import leat, time; i = iter(leat.load({str(PIPELINES)!r}, export='stuck')); print(next(i), flush=True); next(i)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCES}
    ) as program:
        assert program.stdout is not None and program.stdout.readline() == b"0\n"
        (helper,) = children_of(program.pid)
        program.kill()
    until(lambda: not is_alive(helper))
    assert not [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("leat-slots-")]


def test_a_fork_is_refused_with_a_sentence_and_the_loader_goes_on() -> None:
    loader = leat.load(PIPELINES, export="endless")
    batches = iter(loader)
    next(batches)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(batches)
        except leat.LeatError as error:
            stderr = loader._connection.helper._process._child.stderr
            assert stderr is not None and stderr.closed
            os.write(write, f"{error.code}: {error.message}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert "failed_precondition: This loader belongs to the process" in (text := said.read()) and "spawn" in text
    os.waitpid(child, 0)
    assert next(batches) == 1


def test_a_fork_while_another_thread_waits_for_a_batch_is_refused_too() -> None:
    loader = leat.load(PIPELINES, export="waiting")
    batches = iter(loader)
    assert next(batches) == 0
    read, write = os.pipe()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, batches)
        until(lambda: _is_held(loader))
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(DEADLINE_SECONDS)  # Ends a child that waits for a lock.
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
        loader.close()
        assert isinstance(waiting.exception(), leat.LeatError)


def _sum(loader: leat.Loader) -> float:
    return float(sum(batch["x"].sum() for batch in loader))


def test_a_fork_while_another_thread_closes_the_loader_can_read() -> None:
    loader = leat.load(PIPELINES, export="endless")
    # As in a fork, in which the thread that closes the loader does not go on.
    loader._connection._closing.append(None)
    loader._connection._lock_pid = 0
    assert next(iter(loader)) == 0
    loader._connection._lock_pid = 0
    loader.close()
    assert next(iter(loader)) == 0


def test_a_loader_is_pickled_for_a_process_that_is_spawned() -> None:
    loader = leat.load(PIPELINES, export="numbers", args={"count": 40})
    assert _sum(pickle.loads(pickle.dumps(loader))) == sum(range(40))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_sum, (loader,)) == sum(range(40))


def test_the_command_line_is_leats() -> None:
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    program = [sys.executable, "-m", "leat"]
    helped = subprocess.run([*program, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert "Usage: leat COMMAND" in helped.stdout and "dispatcher" in helped.stdout
    assert subprocess.run([*program, "wrker"], env=environment, capture_output=True).returncode != 0


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a file system")
@pytest.mark.parametrize("waits", [False, True], ids=["while it runs", "after it has ended"])
def test_a_full_disk_under_the_slots_is_an_error(tmp_path: Path, waits: bool) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "leat", str(small)], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        loader = leat.load(PIPELINES, export="large", args={"count": 30}, folder=str(small), memory=2**30)
        with pytest.raises(leat.LeatError, match="full") as raised:
            for _ in loader:
                while waits and loader._connection.helper._process.is_running:
                    time.sleep(0.01)
        assert raised.value.code == "resource_exhausted"
        loader.close()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_batches_that_are_kept_need_no_descriptors() -> None:
    batches = iter(leat.load(PIPELINES, export="large", args={"count": 40}, memory=2**30))
    kept = [next(batches)]
    before = len(os.listdir("/proc/self/fd"))
    kept.extend(batches)
    assert [int(batch["x"][0]) for batch in kept] == list(range(40))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_batch_that_cannot_be_mapped_is_an_error_and_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = iter(leat.load(PIPELINES, export="large", args={"count": 3}))

    def failing(*_: Any) -> Any:
        ctypes.set_errno(errno.ENOMEM)
        return _slots._MAP_FAILED

    with monkeypatch.context() as patched:
        patched.setattr(_slots, "_libc", SimpleNamespace(mmap=failing))
        for _ in range(2):
            with pytest.raises(leat.LeatError, match="cannot be mapped into memory: Cannot allocate memory") as raised:
                next(batches)
            assert raised.value.code == "resource_exhausted"
    assert [batch["i"] for batch in batches] == [0, 1, 2]


def test_a_user_without_a_home_gets_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert "--frozen" in _deno._config_flags.__wrapped__()


def test_a_helper_that_cannot_be_started_leaves_no_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(leat.LeatError, match="not a permission"):
        leat.load(PIPELINES, allow=["nett=x"])
    assert os.listdir("/proc/self/fd") == before
    opens = os.open

    def open_no_more(path: Any, *args: Any, **options: Any) -> int:
        if str(path).endswith("/up"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return opens(path, *args, **options)

    monkeypatch.setattr(os, "open", open_no_more)
    with pytest.raises(leat.LeatError, match="/up.*ulimit -n") as raised:
        leat.load(PIPELINES, export="endless")
    assert raised.value.code == "resource_exhausted" and os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("thread", [False, True])
def test_what_threads_of_a_pipeline_print_or_write_to_standard_output_goes_to_standard_error(
    thread: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    loader = leat.load(PIPELINES, export="printed", args={"thread": thread})
    assert [list(batch) for batch in loader] == [list(range(start, start + 10)) for start in range(0, 40, 10)]
    process = loader._connection.helper._process
    loader.close()
    process._thread.join()
    assert set(capfd.readouterr().err.splitlines()) >= {f"{how} {x}" for how in ("printed", "written") for x in range(40)}


@pytest.mark.parametrize("bytes_of_none", [
    b"[1] a note of a library\n",
    HEADER.pack(100, 1023),
    HEADER.pack(2**31, 0),
    HEADER.pack(0, 0),
    HEADER.pack(5, FREED),
    HEADER.pack(0, FREED + 1),
    HEADER.pack(70_000, PIPED),
    HEADER.pack(3, PIPED) + b"abc",
    HEADER.pack(6, PIPED) + b"\xce\x00\x00\x00\x01\x07",
])  # fmt: skip
def test_what_is_no_message_is_an_error_that_ends_the_helper_and_the_next_iteration_has_a_new_one(bytes_of_none: bytes) -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 8})
    batches = iter(loader)
    first = next(batches)
    helper, process = loader._connection.helper, helper_of(loader)
    helper._input[helper._at :] = bytes_of_none
    for _ in range(2):
        with pytest.raises(leat.LeatError, match="violated its protocol") as raised:
            list(batches)
        assert raised.value.code == "internal"
    assert not is_alive(process) and first["x"][0] == 0
    assert [batch["i"] for batch in loader] == list(range(8))


def test_a_program_that_has_closed_its_standard_error_gets_a_loader_that_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_helper, "SLOW_START_MS", 0)
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert next(iter(leat.load(PIPELINES, export="endless"))) == 0


def test_a_standard_error_that_raises_ends_no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError("the log is closed")

    monkeypatch.setattr(sys, "stderr", Closed())
    loader = leat.load(PIPELINES, export="printed", args={"thread": False})
    process = loader._connection.helper._process
    assert len(list(loader)) == 4
    until(lambda: "printed 39" in process._stderr)
    assert process._thread.is_alive()


def test_the_standard_error_of_a_helper_is_shown_whole_and_then_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    # All characters but the first have two bytes, so that reads of an even number end within one.
    program = r"import os; os.write(2, ('a' + 'ü' * 100_000).encode() + b'\xc3')"
    process = _helper.Process([sys.executable, "-S", "-c", program], [os.open(os.devnull, os.O_RDWR) for _ in range(2)])
    process._thread.join()
    process.end()
    assert shown.getvalue() == "a" + "ü" * 100_000 + "\ufffd"
    assert process._child.stderr is not None and process._child.stderr.closed
