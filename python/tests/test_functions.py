"""Python functions in pipelines: what they get and give, how they fail, and who may call them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import leat
import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest
from conftest import children_of, is_alive, named, until
from test_elements import require_everything
from test_service import start

from leat import _functions, _wire

FUNCTIONS = Path(__file__).parent / "functions.ts"


def load(export: str, **options: Any) -> leat.Loader:
    return leat.load(FUNCTIONS, export=export, seed=3, allow=["python"], **options)


def called(name: str, **args: Any) -> leat.Loader:
    return load("numbers", args={"name": name, **args})


def outcomes(batches: Any) -> Iterator[Any]:
    """The elements, and errors where they come."""
    batches = iter(batches)
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        except leat.LeatError as error:
            yield error


def test_a_function_gets_arrays_captures_and_random_numbers_and_the_stream_is_the_same_again() -> None:
    loader = load("augmented")
    whole, states = [], []
    for batch in loader:
        whole.append((batch["x"].tolist(), batch["r"]))
        states.append(loader.state_dict())
    assert [x for xs, _ in whole for x in xs] == [2.0 * x for x in range(400)]
    assert len({r for _, r in whole}) == 100
    for had in (1, 57):
        other = load("augmented")
        other.load_state_dict(states[had - 1])
        assert [(batch["x"].tolist(), batch["r"]) for batch in other] == whole[had:]


def test_every_kind_of_value_goes_through_a_function() -> None:
    (element,) = load("everything")
    require_everything(element)


def test_a_function_returns_text_ragged_rows_and_large_arrays(capfd: pytest.CaptureFixture[str]) -> None:
    loader = load("text")
    for x, element in enumerate(loader):
        assert element["words"].tolist() == ["a", f"{x}"] and element["blobs"].tolist() == [b"\0", b"ab"]
        assert element["pair"] == [1, None] and element["half"] == 0.5 and element["bytes"].tolist() == [97, 98, 99]
        assert element["large"].shape == (300, 1_000) and (element["large"] == x).all()
        assert element["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
        assert [row.tolist() for row in element["ragged"]] == [[], [1.5, 2.5]]
    loader.close()
    # What functions print does not go to the program's own output.
    assert capfd.readouterr().out == ""
    assert list(load("odd")) == list(range(1, 20, 2))


def test_what_functions_print_is_shown_at_once_and_at_the_end_of_the_program_also_without_a_newline(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    loader = called("prints", count=1)
    assert list(loader) == [0]
    shown: list[str] = []

    def has_line() -> bool:
        shown.append(capfd.readouterr().err)
        return "python: line of 0\n" in "".join(shown)

    until(has_line)
    assert "rest of 0" not in "".join(shown)
    process = loader._connection.helper._process
    loader.close()
    process._thread.join()
    assert "python: rest of 0\n" in capfd.readouterr().err


def test_a_function_before_a_prefetch_on_a_thread_runs_in_the_interpreter_of_the_program() -> None:
    assert [batch.tolist() for batch in load("threaded")] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_numbers_of_numpy_keep_their_dtype_in_batches_and_those_of_python_are_numbers() -> None:
    (batch,) = load("labels")
    dtypes = {name: array.dtype.name for name, array in batch.items()}
    assert dtypes == {"int64": "int64", "uint8": "uint8", "float32": "float32", "flag": "bool", "int": "float64", "yes": "bool"}
    assert all(array.tolist() == [0, 1, 0] for array in batch.values())


def test_integers_beyond_2_to_the_53_are_int64_in_batches_and_lists_stay_lists() -> None:
    (batch,) = load("beyond")
    assert batch["id"].dtype == np.int64 and batch["id"].tolist() == [2**53 + 1, 2**53 + 2]
    first, (second, third) = batch["list"]
    assert first.tolist() == [0, 1] and second.tolist() == [2.5, 2.5] and third.shape == (2, 2)


def test_an_error_costs_its_element_and_has_the_traceback() -> None:
    found = list(outcomes(called("fail_at_7")))
    assert found[:7] + found[8:] == [x for x in range(20) if x != 7]
    assert found[7].code == "unknown" and "ValueError: no 7 today" in str(found[7])
    assert f'{FUNCTIONS.with_suffix(".py")}", line' in str(found[7]) and "in check" in str(found[7])
    assert "_functions.py" not in str(found[7])


def _raised(function: Any) -> str:
    """The message of the error of a function."""
    try:
        function()
    except BaseException as error:
        message = _functions._error_fields(error)["message"]
    assert isinstance(message, str)
    return message


def test_an_error_names_its_causes_once_without_the_frames_of_leat() -> None:
    def read() -> None:
        try:
            _wire.sendable({1: 2}, [])
        except leat.LeatError as error:
            raise KeyError("k") from error

    def hide() -> None:
        try:
            read()
        except KeyError:
            raise ValueError("alone") from None

    message = _raised(read)
    assert message.startswith("KeyError: 'k'\n") and message.count("KeyError") == 3
    assert message.count("The keys of an element's dict are text") == 1 and "direct cause of the following" in message
    assert "_wire.py" not in message and "in read" in message
    assert "KeyError" not in _raised(hide) and "Traceback" not in _raised(hide)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="has no groups")
def test_an_error_names_the_errors_of_a_group() -> None:
    def fail() -> None:
        raise ExceptionGroup("two", [ValueError("a"), OSError("b")])  # type: ignore[name-defined]  # noqa: F821

    message = _raised(fail)
    assert message.startswith("ExceptionGroup: two (2 sub-exceptions)\n") and "ValueError: a" in message and "OSError: b" in message


def test_the_message_of_an_error_is_bounded_and_has_its_begin_and_its_end() -> None:
    def fail() -> None:
        cause = None
        for depth in range(300):
            error = ValueError(f"{depth} {'x' * 100}")
            error.__cause__, cause = cause, error
        raise KeyError("last") from cause

    def long() -> None:
        raise ValueError("begin" + "z" * 100_000)

    for message, begin in ((_raised(fail), "KeyError: 'last"), (_raised(long), "ValueError: begin")):
        assert message.startswith(begin) and len(message) < _functions.MESSAGE_CHARS_MAX + 100
        assert "characters are left out" in message


def test_a_process_that_dies_costs_its_element_and_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    found = list(outcomes(called("die_at_7")))
    assert found[:7] + found[8:] == [x for x in range(20) if x != 7]
    assert found[7].code == "internal" and "has ended by SIGKILL: seven" in str(found[7])


def test_a_process_outlives_the_signals_that_stop_a_group_but_those_that_it_forks_do_not() -> None:
    assert list(outcomes(called("signalled_at_7"))) == [signal.SIGTERM if x == 7 else x for x in range(20)]


def test_a_process_that_dies_and_leaves_another_costs_its_element(tmp_path: Path) -> None:
    found = list(outcomes(called("orphan_at_7")))
    orphans = named(f"orphan of {tmp_path}")
    for orphan in orphans:
        os.kill(orphan, signal.SIGKILL)
    assert found[:7] + found[8:] == [x for x in range(20) if x != 7]
    assert found[7].code == "internal" and "has ended by SIGKILL" in str(found[7])
    # No call waited for their end.
    assert orphans != []


def test_what_no_message_can_have_costs_its_element_and_no_process() -> None:
    found = list(outcomes(called("unsendable", count=4)))
    assert [getattr(outcome, "code", outcome) for outcome in found] == ["invalid_argument", "not_found", "invalid_argument", 3]
    assert "half of a surrogate pair" in str(found[0]) and "no ?" in str(found[1]) and "64 bits" in str(found[2])


@pytest.mark.parametrize("name", ["proto_at_7", "ragged_at_7"])
def test_a_result_that_cannot_be_sent_costs_its_element(name: str) -> None:
    found = list(outcomes(called(name)))
    assert found[:7] + found[8:] == [x for x in range(20) if x != 7]
    assert found[7].code == "invalid_argument"


def test_an_argument_that_cannot_be_sent_costs_its_element() -> None:
    found = list(outcomes(load("dated")))
    assert found[:7] + found[8:] == [{"x": x} for x in range(20) if x != 7]
    assert found[7].code == "invalid_argument" and "when" in str(found[7])


def test_a_result_that_fits_no_message_is_an_error_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_functions, "VALUE_BYTES_MAX", 100_000)
    asked = _wire.encode({"captures": {}, "calls": [{"args": [size], "seed": 0} for size in (100_000, 7)]})
    request = {"file": str(FUNCTIONS.with_suffix(".py")), "name": "zeros", "onlyOwn": False, "calls": _bytes(asked)}
    large, small = _wire.decode(_bytes(_functions.call(request)))
    assert large["error"]["code"] == "resource_exhausted" and small["value"].tolist() == [0] * 7


def test_a_call_that_changes_its_captures_changes_none_of_the_next_call() -> None:
    payloads: list[bytes] = []
    captures = _wire.sendable({"mean": np.array([1.5]), "seen": {"all": [7]}}, payloads)
    calls = [{"args": [x], "seed": 0} for x in range(3)]
    asked = _wire.joined(msgpack.packb({"captures": captures, "calls": calls}), payloads)
    request = {"file": str(FUNCTIONS.with_suffix(".py")), "name": "spoil", "onlyOwn": False, "calls": _bytes(bytearray(asked))}
    first, refused, last = _wire.decode(_bytes(_functions.call(request)))
    assert first["value"] == [7, 0, 1.5] and last["value"] == [7, 2, 1.5]
    assert "output array is read-only" in refused["error"]["message"]


def test_a_large_vocabulary_among_captures_takes_no_call_for_each_of_its_values() -> None:
    payloads: list[bytes] = []
    seen = {"all": [7], "ids": {f"word {i}": i for i in range(5_000)}, "parts": [i / 2 for i in range(5_000)]}
    captures = _wire.sendable({"mean": np.array([1.5]), "seen": seen}, payloads)
    asked = _wire.joined(msgpack.packb({"captures": captures, "calls": [{"args": [0], "seed": 0}] * 2}), payloads)
    request = {"file": str(FUNCTIONS.with_suffix(".py")), "name": "spoil", "onlyOwn": False, "calls": _bytes(bytearray(asked))}
    _functions.call(request)  # Imports the file.
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        answer = _functions.call(request)
    finally:
        sys.setprofile(None)
    assert [outcome["value"] for outcome in _wire.decode(_bytes(answer))] == [[7, 0, 1.5]] * 2
    assert len(calls) < 1_000


def test_calls_that_are_no_message_fail_and_end_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(number: int, calls: bytes) -> dict[str, Any]:
        body = {"file": str(FUNCTIONS.with_suffix(".py")), "name": "same", "onlyOwn": True, "calls": _bytes(calls)}
        return {"kind": "ask", "id": number, "method": "call", "body": body}

    good = _wire.encode({"captures": {}, "calls": [{"args": [7], "seed": 0}]})
    requests = [asked(0, b"\xce\0\0\0\1\xc1"), asked(1, _wire.encode([])), asked(2, good)]
    received, sent = iter([{"node": "worker"}, *requests, {"kind": "bye"}]), []

    class Link:
        def __init__(self, *_: str) -> None:
            pass

        def receive(self) -> Any:
            return next(received)

        def send(self, message: bytes) -> None:
            sent.append(_wire.decode(_bytes(message)))

    monkeypatch.setattr(_functions, "Link", Link)
    monkeypatch.setattr("sys.argv", ["", "read", "written", "python", "aa"])
    _functions.main()
    assert [(answer.get("id"), answer["kind"]) for answer in sent] == [(None, "hello"), (0, "failure"), (1, "failure"), (2, "reply")]
    assert sent[1]["error"]["code"] == "unknown" and sent[3]["number"] == 3
    (outcome,) = _wire.decode(sent[3]["body"])
    assert outcome == {"value": 7}


def _bytes(message: bytes | bytearray) -> _wire.Bytes:
    return np.frombuffer(message, dtype=np.uint8)


def test_a_file_whose_name_does_not_end_in_py_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "functions.txt").write_text("def same(x): return x\n")
    with pytest.raises(leat.LeatError, match=r"functions.txt has no functions .* ends in \.py") as raised:
        _functions.Function(str(tmp_path / "functions.txt"), "same", False)
    assert raised.value.code == "invalid_argument"


def test_what_cannot_be_called_or_sent_is_refused() -> None:
    unknown, nothing, missing = next(outcomes(called("unknown"))), next(outcomes(called("nothing"))), next(outcomes(load("missing")))
    assert unknown.code == "invalid_argument" and "returned object, which cannot" in str(unknown)
    assert nothing.code == "not_found" and "has no function nothing" in str(nothing)
    assert missing.code == "not_found" and "no file /no/such/file.py" in str(missing)


def test_processes_end_with_the_loader_also_amid_a_call() -> None:
    loader = called("endless")
    # The helper begins to compute what will be asked for.
    batches = iter(loader)
    (helper,) = children_of(os.getpid())
    until(lambda: children_of(helper, b"leat._functions") != [])
    processes = children_of(helper, b"leat._functions")
    loader.close()
    until(lambda: not any(is_alive(process) for process in processes))
    del batches


@pytest.mark.parametrize(("allow", "given"), [(["python"], ""), (["python", "run"], "/opt/cuda")])
def test_functions_get_the_path_of_libraries_only_if_all_programs_are_allowed(
    allow: list[str], given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/cuda")
    args = {"name": "libraries", "count": 1}
    assert list(leat.load(FUNCTIONS, export="numbers", args=args, allow=allow)) == [given]


def test_python_is_refused_unless_it_is_allowed() -> None:
    error = next(outcomes(leat.load(FUNCTIONS, export="odd")))
    assert error.code == "permission_denied" and 'allow=["python"]' in str(error)


@contextlib.contextmanager
def worker(folder: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Options of `leat.load` to read from a cluster with a worker."""
    programs = []
    try:
        dispatcher, address = start(folder, "dispatcher", "--client-grace-ms", "600000")
        programs.append(dispatcher)
        programs.append(start(folder, "worker", "--dispatcher", address, "--heartbeat-ms", "200", *options)[0])
        yield {"service": address, "mode": "DYNAMIC"}
    finally:
        for program in programs:
            program.kill()
            program.wait()


@pytest.mark.parametrize("options", [["--no-sandbox"], ["--allow-python", str(FUNCTIONS.parent)]])
def test_tasks_of_a_worker_share_a_process_for_each_core_which_ends_with_them(
    options: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with worker(tmp_path_factory.mktemp("cluster"), *options) as service:
        args = {"name": "process", "count": 1_000_000}
        loaders = [leat.load(FUNCTIONS, export="numbers", args=args, seed=seed, **service) for seed in (1, 2)]
        found = [process for both in zip(*map(iter, loaders), range(30)) for process in both[:2]]
        assert os.getpid() not in found and 1 <= len(set(found)) <= (os.cpu_count() or 1)
        for loader in loaders:
            loader.close()
        until(lambda: not any(is_alive(process) for process in found))


def test_a_confined_pipeline_calls_what_granted_files_define_and_nothing_else(tmp_path_factory: pytest.TempPathFactory) -> None:
    with worker(tmp_path_factory.mktemp("cluster"), "--allow-python", str(FUNCTIONS.parent)) as service:

        def called(**args: Any) -> list[Any]:
            return list(outcomes(leat.load(FUNCTIONS, export="numbers", args=args, **service)))

        (imported,) = called(name="getppid", count=1)
        assert imported.code == "permission_denied" and "imports getppid, and a worker calls only" in str(imported)
        (imported,) = called(name="doubled", count=1)
        assert imported.code == "permission_denied" and "imports doubled, and a worker calls only" in str(imported)
        (inherited,) = called(name="Inheriting", count=1)
        assert inherited.code == "permission_denied" and "has a class Inheriting, and a worker" in str(inherited)
        (outside,) = called(name="load", file=str(FUNCTIONS.parents[1] / "src" / "leat" / "_loader.py"), count=1)
        assert outside.code == "permission_denied" and "outside of the folders that the operator" in str(outside)
        # No more than of a file that is there.
        (nowhere,) = called(name="load", file="/no/such/file.py", count=1)
        assert nowhere.code == "permission_denied" and "outside of the folders that the operator" in str(nowhere)
        found = called(name="die_at_7")
        (failed,) = [outcome for outcome in found if isinstance(outcome, leat.LeatError)]
        # What the process has printed may be of calls of others.
        assert failed.code == "internal" and "by SIGKILL" in str(failed) and "seven" not in str(failed)
        assert sorted(outcome for outcome in found if outcome is not failed) == [x for x in range(20) if x != 7]
        for element in leat.load(FUNCTIONS, export="text", **service):
            assert element["large"].shape == (300, 1_000) and len(element["ragged"]) == 2


DECORATED = """
import functools, operator, os, numpy as np
from operator import itemgetter
{imports}

def returns(value):
    return lambda function: value

@np.vectorize
def scale(x):
    return 2 * x

@functools.lru_cache
def half(x):
    return x / 2

@returns(os.system)
def system(x):
    return x

class Holder:
    @np.vectorize
    def method(x):
        return x

def outer():
    @np.vectorize
    def nested(x):
        return x
    return nested

def later(x):
    return x

{imports_at_the_end}
"""


def test_a_decorated_function_is_one_that_its_file_defines_and_one_that_it_only_imports_is_not(tmp_path: Path) -> None:
    (tmp_path / "leat_test_others.py").write_text("import numpy as np\nlater = method = nested = shared = np.vectorize(abs)\n")
    file = tmp_path / "leat_test_decorated.py"
    imports = "from leat_test_others import method, nested, shared, shared as scale"
    file.write_text(DECORATED.format(imports=imports, imports_at_the_end="from leat_test_others import *"))
    for name in ("itemgetter", "later", "method", "nested", "scale", "shared", "system"):
        with pytest.raises(leat.LeatError, match=f"{name}, and a worker calls only functions that the file defines") as raised:
            _functions.Function(str(file), name, True)
        assert raised.value.code == "permission_denied"
    file = tmp_path / "leat_test_own.py"
    file.write_text(DECORATED.format(imports="", imports_at_the_end=""))
    assert _functions.Function(str(file), "scale", True)([3], 0, {}) == 6
    assert _functions.Function(str(file), "half", True)([3], 0, {}) == 1.5


def test_a_result_that_cannot_be_sent_is_an_invalid_argument_with_its_place() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]
    empty = np.empty((2**32, 0), np.float32)
    for result, part in (
        (2**70, "An integer has more than 64 bits"),
        ({"x": [1, -(2**63) - 1]}, "(at ['x'][1] of what the function returned)"),
        ({"x": [1, empty]}, "(at ['x'][1] of what the function returned)"),
        (empty, "shape (4294967296, 0)"),
        ((1, {"y": object()}), "object, which cannot be part of an element (at [1]['y'] of"),
        (cyclic, "contain themselves"),
        ({"x": cyclic}, "contain themselves"),
        (deep, "nest too deep"),
        ({"x": "a\ud800"}, "the text 'a\\ud800', in which character 1 is half of a surrogate pair"),
        ([{"\udcff": 1}], "key '\\udcff', in which character 0 is half of a surrogate pair"),
        ((np.array(["\ud800"]),), "array with the text '\\ud800', in which character 0"),
        ({"x": {"__proto__": 1}}, 'the key "__proto__", which no message may have: rename it (at [\'x\'] of'),
        ({"x": np.zeros(2, [("a", "i4"), ("b", "f4")])}, "return a dict of its fields"),
        (np.array(["2020-01-01"], "M8[D]"), "no dtype datetime64[D]: return its numbers, as with array.astype(np.int64)"),
        (np.array([1j]), "no dtype complex128: return array.real"),
        (np.zeros(2, "V3"), "no dtype |V3: return its bytes"),
        (np.zeros(2, np.longdouble), "array.astype(np.float32)"),
        ({"x": np.ma.masked_array([1, 2], mask=[0, 1])}, "array.filled(value), or array.data and np.ma.getmaskarray(array)"),
        (np.ma.masked_array(np.zeros(1, [("a", "i4")]), mask=[(1,)]), "return a dict of its fields"),
        (leat.Ragged(np.ma.masked_array([1, 2], mask=[0, 1]), np.array([0, 2])), "with masked values"),
    ):
        with pytest.raises(leat.LeatError, match=re.escape(part)) as caught:
            _functions._packed(result, [])
        assert caught.value.code == "invalid_argument"
    assert msgpack.unpackb(_functions._packed([2**64 - 1, -(2**63)], [])) == {"value": [2**64 - 1, -(2**63)]}


def test_files_of_two_folders_import_each_their_own_of_the_same_name(tmp_path: Path) -> None:
    files = [tmp_path / folder / "augment.py" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text("from utils import HERE\n\ndef where(x):\n    return HERE\n")
        (file.parent / "utils.py").write_text(f"HERE = {file.parent.name!r}\n")
    assert list(load("folders", args={"files": [str(file) for file in files]})) == [["a", "b"]] * 40


@pytest.mark.parametrize("tmpdir", [None, "missing"])
def test_functions_run_wherever_python_has_its_folder_for_temporary_files(
    tmpdir: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tmpdir is None:
        monkeypatch.delenv("TMPDIR")
    else:
        monkeypatch.setenv("TMPDIR", str(tmp_path / tmpdir))
    monkeypatch.setenv("TEMP", str(tmp_path))
    assert tempfile.gettempdir() == str(tmp_path)
    assert list(called("same", count=2)) == [0, 1]
