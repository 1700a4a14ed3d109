"""Python functions in pipelines: what they get and give, how they fail, and who may call them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterator

import leat
import pytest
from conftest import children_of, is_alive, until
from test_elements import require_everything
from test_service import start

FUNCTIONS = Path(__file__).parent / "functions.ts"


def load(export: str, **options: Any) -> leat.Loader:
    return leat.load(FUNCTIONS, export=export, seed=3, allow=["python"], **options)


def called(name: str, **options: Any) -> leat.Loader:
    return load("numbers", args={"name": name}, **options)


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


def test_an_error_costs_its_element_and_has_the_traceback() -> None:
    found = list(outcomes(called("fail_at_7")))
    assert found[:7] + found[8:] == [x for x in range(20) if x != 7]
    assert found[7].code == "unknown" and "ValueError: no 7 today" in str(found[7])
    assert f'{FUNCTIONS.with_suffix(".py")}", line' in str(found[7]) and "in check" in str(found[7])
    assert "_functions.py" not in str(found[7])


def test_a_process_that_dies_costs_its_element_and_is_replaced() -> None:
    found = list(outcomes(called("die_at_7")))
    assert found[:7] + found[8:] == [x for x in range(20) if x != 7]
    assert found[7].code == "internal" and "has ended by SIGKILL" in str(found[7])


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


def test_python_is_refused_unless_it_is_allowed() -> None:
    error = next(outcomes(leat.load(FUNCTIONS, export="odd")))
    assert error.code == "permission_denied" and 'allow=["python"]' in str(error)


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (["--no-sandbox", "--allow-python"], None),
        (["--no-sandbox"], "this program may not run python3"),
        (["--allow-python"], "is not called here"),
    ],
)
def test_a_worker_calls_functions_if_its_operator_grants_it(
    options: list[str], refused: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    programs = []
    try:
        folder = tmp_path_factory.mktemp("cluster")
        dispatcher, address = start(folder, "dispatcher")
        programs.append(dispatcher)
        programs.append(start(folder, "worker", "--dispatcher", address, *options)[0])
        args = {"name": "process"}
        loader = leat.load(FUNCTIONS, export="numbers", args=args, service=address, mode="DYNAMIC", seed=3)
        found = list(outcomes(loader))
        if refused is None:
            assert os.getpid() not in found and all(isinstance(process, int) for process in found)
            # They end with the task that called them.
            until(lambda: not any(is_alive(process) for process in found))
        else:
            assert found and all(error.code == "permission_denied" and refused in str(error) for error in found)
    finally:
        for program in programs:
            program.kill()
            program.wait()
