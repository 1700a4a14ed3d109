"""How programs end, and what they leave: nothing. The fixture `nothing_left` looks after each test."""

from __future__ import annotations

import code
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import leat
import pytest
from conftest import DEADLINE_SECONDS, PIPELINES, SOURCES, children_of, is_alive, named, until

FUNCTIONS = Path(__file__).parent / "functions.ts"


@contextlib.contextmanager
def program(script: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that reads: a session of its own, as the foreground process group of a terminal."""
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, text=True, env=environment, start_new_session=True, **options) as running:
        try:
            yield running
        finally:
            running.kill()


def left_folders() -> list[str]:
    return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("leat-slots-")]


def test_ctrl_c_reaches_the_loop_and_not_the_helper() -> None:
    script = f"""if True:
        import leat
        loader = leat.load({str(PIPELINES)!r}, export="late")
        while True:
            try:
                for batch in loader: print("batch", flush=True)
            except KeyboardInterrupt:
                break
        print("interrupted", next(iter(loader)), flush=True)
        for batch in leat.load({str(PIPELINES)!r}, export="waiting"): print("more", flush=True)
    """
    with program(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline() == "batch\n"
        os.killpg(running.pid, signal.SIGINT)
        while (line := running.stdout.readline()) == "batch\n":
            pass
        assert line == "interrupted 0\n" and running.stdout.readline() == "more\n"
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait() == -signal.SIGINT and "KeyboardInterrupt" in running.stderr.read()
    until(lambda: named(f"{tempfile.gettempdir()}/leat-slots-") == [])
    assert left_folders() == []


def test_an_exception_in_the_loop_ends_the_program_and_its_helper() -> None:
    script = f"import leat\nloader = leat.load({str(PIPELINES)!r}, export='large', args={{'count': 9}})\nfor batch in loader: 1 / 0"
    with program(script, stderr=subprocess.PIPE) as running:
        assert "ZeroDivisionError" in running.communicate(timeout=DEADLINE_SECONDS)[1]
        assert running.returncode == 1
    assert left_folders() == [] and named(f"{tempfile.gettempdir()}/leat-slots-") == []


def test_a_daemon_thread_that_reads_when_the_program_ends_prints_no_traceback() -> None:
    script = f"""if True:
        import leat, threading
        loader, has_begun = leat.load({str(PIPELINES)!r}, export="waiting"), threading.Event()
        def read():
            for _ in loader:
                has_begun.set()
        threading.Thread(target=read, daemon=True).start()
        has_begun.wait()
    """
    ended = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": SOURCES}, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_del_of_a_loader_ends_its_helper_when_the_loop_is_gone_too() -> None:
    loader = leat.load(PIPELINES, export="endless")
    batches = iter(loader)
    next(batches)
    del loader
    assert next(batches) == 1
    (helper,) = children_of(os.getpid())
    del batches
    until(lambda: not is_alive(helper))


def test_a_notebook_that_reruns_a_cell_has_one_helper() -> None:
    cell = f"""if True:
        import leat
        loader = leat.load({str(PIPELINES)!r}, export="large", args={{"count": 4}})
        for batch in loader:
            if fails: raise RuntimeError("in the loop")
    """
    notebook = code.InteractiveInterpreter({"fails": True})
    try:
        for _ in range(3):
            # It keeps the last traceback, and with it the iterator of that loop.
            notebook.runcode(compile(cell, "cell", "exec"))
            assert len(children_of(os.getpid())) <= 2
        notebook.runcode(compile("fails = False", "cell", "exec"))
        notebook.runcode(compile(cell, "cell", "exec"))
        assert notebook.locals["batch"]["i"] == 3
    finally:
        sys.last_exc = sys.last_value = sys.last_traceback = None  # type: ignore[assignment]
        notebook.locals.clear()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_next_loader_removes_what_a_program_killed_at_its_start_has_left() -> None:
    # Each waits where the folder is there, and the helper has not opened its files.
    script = """if True:
        import leat, time
        from leat import _helper
        _helper.Process = lambda *_: (print("started", flush=True), time.sleep(1_000))
        leat.load(%r, export="endless")
    """ % str(PIPELINES)
    with program(script, stdout=subprocess.PIPE) as killed, program(script, stdout=subprocess.PIPE) as living:
        assert killed.stdout is not None and living.stdout is not None
        assert killed.stdout.readline() == living.stdout.readline() == "started\n"
        killed.kill()
        killed.wait()
        assert len(left_folders()) == 2
        (Path(tempfile.gettempdir()) / "leat-slots-before-the-lock").mkdir()
        leat.load(PIPELINES, export="endless").close()
        assert len(left_folders()) == 1
    leat._folder._looked.clear()  # Only a process's first loader looks.
    leat.load(PIPELINES, export="endless").close()
    assert left_folders() == []


def test_a_loader_leaves_the_folders_of_other_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tmp_path / "shared"
    own, foreign = os.geteuid(), os.geteuid() + 1
    for name in ("leat-slots-empty", "leat-slots-left"):
        (parent / name).mkdir(parents=True)
    (parent / "leat-slots-left" / "lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: foreign)
    with leat._folder.slot_folder(str(parent)):
        assert len(os.listdir(parent)) == 3
    leat._folder._looked.clear()
    monkeypatch.setattr(os, "geteuid", lambda: own)
    with leat._folder.slot_folder(str(parent)) as folder:
        assert os.listdir(parent) == [folder.name]


def test_a_folder_that_is_nested_too_deep_to_be_removed_hinders_no_loader(tmp_path: Path) -> None:
    parent = tmp_path / "shared"
    (parent / "leat-slots-deep").mkdir(parents=True)
    (parent / "leat-slots-deep" / "lock").touch()
    within = os.open(parent / "leat-slots-deep", os.O_RDONLY)
    for _ in range(sys.getrecursionlimit()):
        os.mkdir("d", dir_fd=within)
        below = os.open("d", os.O_RDONLY, dir_fd=within)
        os.close(within)
        within = below
    os.close(within)
    try:
        with leat._folder.slot_folder(str(parent)) as folder:
            assert folder.is_dir()
    finally:
        # Otherwise pytest would try it.
        subprocess.run(["rm", "-rf", str(parent)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_program_killed_while_its_helper_starts_leaves_no_helper() -> None:
    script = f"import leat; leat.load({str(PIPELINES)!r}, export='endless')"
    with program(script) as running:
        until(lambda: children_of(running.pid) != [])
        running.kill()
    until(lambda: named(f"{tempfile.gettempdir()}/leat-slots-") == [])
    leat.load(PIPELINES, export="endless").close()
    assert left_folders() == []


def test_a_helper_outlives_a_signal_to_all_processes_of_a_job_so_that_the_program_can_save_its_position() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 9})
    batches = iter(loader)
    before = [next(batches)["i"] for _ in range(3)]
    (helper,) = children_of(os.getpid())
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(helper, number)
    state = loader.state_dict()
    before += [next(batches)["i"] for _ in range(2)]
    loader.close()
    other = leat.load(PIPELINES, export="large", args={"count": 9})
    other.load_state_dict(state)
    assert before == [0, 1, 2, 3, 4] and [batch["i"] for batch in other] == [3, 4, 5, 6, 7, 8]


def test_python_functions_end_with_a_killed_helper() -> None:
    loader = leat.load(FUNCTIONS, export="numbers", args={"name": "endless"}, allow=["python"])
    batches = iter(loader)
    (helper,) = children_of(os.getpid())
    # A folder for each process is there until that has opened its files.
    until(lambda: children_of(helper, b"leat._functions") != [] and left_folders() == [])
    processes = children_of(helper, b"leat._functions")
    os.kill(helper, signal.SIGKILL)
    until(lambda: not any(is_alive(process) for process in processes))
    with pytest.raises(leat.LeatError, match="signal SIGKILL"):
        next(batches)
