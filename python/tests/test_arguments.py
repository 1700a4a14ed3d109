"""What `leat.load` refuses: each time with a `LeatError` that names the argument."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args, get_type_hints
from unittest.mock import Mock

import leat
import numpy as np
import pytest
from conftest import PIPELINES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"args": [1]}, r"args is a dict, not \[1\]"),
        ({"args": {"count": {1}}}, r"args\['count'\] is \{1\} \(set\)"),
        ({"args": {"list": [1, np.zeros(2)]}}, r"args\['list'\]\[1\] is array.*array.tolist"),
        ({"args": {"count": 2**64}}, "numbers of at most 64 bits"),
        ({"args": {1: 2}}, "with keys of text"),
        ({"args": {"list": [{"__proto__": 1}]}}, r"args\['list'\]\[0\] has the key \"__proto__\".*rename it"),
        ({"args": {"list": ["\ud800"]}}, r"args\['list'\]\[0\] is '\\ud800' \(str\).*without lone surrogates"),
        ({"args": {"\ud800": 1}}, "which cannot be sent"),
        ({"export": "\ud800"}, r"export is text without NUL and lone surrogates, not '\\ud800'"),
        ({"folder": Path("a\0b")}, "folder is text without NUL"),
        ({"allow": ["net=\ud800"]}, "allow is text without NUL"),
        ({"service": "ws://127.0.0.1:1", "token": "secret\ud800"}, r"token is text without .*, not … \(str\)"),
        ({"seed": 1.5}, r"seed is an integer, not 1.5 \(float\)"),
        ({"seed": True}, "seed is an integer"),
        ({"seed": 2**64}, "seed is an integer of 64 bits"),
        ({"export": 3}, "export is text"),
        ({"memory": 0}, "memory is a positive number"),
        ({"folder": 7}, "folder is a path"),
        ({"allow": "net"}, "allow is a list of texts"),
        ({"consumer": 3}, "rank < world, or 'auto', not 3"),
        ({"consumer": (0, 1, 2)}, "rank < world"),
        ({"service": "ws://127.0.0.1:1", "consumer": (0, 2)}, r"consumer=\(0, 2\) with a service needs job="),
        ({"service": 1}, "service is text"),
        ({"service": "ws://127.0.0.1:1", "options": [1]}, "options is a dict"),
        ({"service": "ws://127.0.0.1:1", "job": "a", "options": {"jobName": "b"}}, "options has jobName, which another argument"),
    ],
)
def test_an_argument_of_another_kind_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(leat.LeatError, match=message) as raised:
        leat.load(PIPELINES, **{"export": "numbers", **options})
    assert raised.value.code == "invalid_argument"


def test_load_gives_none_in_args_to_the_pipeline_as_null() -> None:
    args: dict[str, Any] = {"a": None, "list": [None, 1], "of": {"b": None}}
    (text,) = leat.load(PIPELINES, export="json", args=args)
    assert json.loads(text) == args


def test_load_gives_options_that_are_none_their_default() -> None:
    loader = Mock()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("leat._loader.Loader", loader)
        leat.load(PIPELINES, service="ws://127.0.0.1:1", options={"runId": None, "targetTags": ["a"]})
    (request, *_), _ = loader.call_args
    assert request["service"] == {"service": "ws://127.0.0.1:1", "targetTags": ["a"]}


@pytest.mark.parametrize("name", ["args", "options"])
def test_an_argument_that_contains_itself_is_refused_by_name(name: str) -> None:
    cyclic: dict[str, Any] = {"list": []}
    cyclic["list"].append(cyclic)
    others = {"options": {"service": "ws://127.0.0.1:1"}}.get(name, {})
    with pytest.raises(leat.LeatError, match=rf"{name}\['list'\]\[0\]\['list'\].*… nests more than 120 deep.*to itself") as raised:
        leat.load(PIPELINES, **{"export": "numbers", name: cyclic, **others})  # type: ignore[arg-type]
    assert raised.value.code == "invalid_argument"


def test_an_argument_as_deep_as_allowed_reaches_the_pipeline() -> None:
    deep: Any = 3
    for _ in range(119):
        deep = [deep]
    assert len(leat.load(PIPELINES, export="numbers", args={"count": 8, "deep": deep})) == 2


def test_a_pipeline_that_is_no_path_is_refused() -> None:
    for pipeline in (None, 3, leat, "a\0b", "\udcff.ts"):
        with pytest.raises(leat.LeatError, match="pipeline is") as raised:
            leat.load(pipeline)  # type: ignore[arg-type]
        assert raised.value.code == "invalid_argument"


@pytest.mark.parametrize(("pipeline", "options"), [("pipelines.ts", {}), (PIPELINES, {"folder": "slots"})])
def test_a_path_in_a_removed_working_directory_is_refused_with_the_remedy(
    pipeline: Any, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    with pytest.raises(leat.LeatError, match=r"'(pipelines.ts|slots)' begins in .* was removed: call os.chdir\(\)") as raised:
        leat.load(pipeline, **options)
    assert raised.value.code == "failed_precondition"


def test_a_function_that_needs_args_and_gets_none_fails_with_the_remedy() -> None:
    with pytest.raises(leat.LeatError, match=r"was called without its argument: pass args=\{\} in Python") as raised:
        leat.load(PIPELINES, export="large")
    assert raised.value.code == "failed_precondition"


@pytest.mark.parametrize(("rank", "world"), [("first", "2"), ("3", None), ("-1", "2")])
def test_ranks_of_the_environment_that_are_none_are_refused_by_name(
    rank: str, world: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if world is not None:
        monkeypatch.setenv("WORLD_SIZE", world)
    with pytest.raises(leat.LeatError, match=f"RANK and WORLD_SIZE, which are '{rank}' and '{world or 1}'") as raised:
        leat.load(PIPELINES, export="endless", consumer="auto")
    assert raised.value.code == "invalid_argument"


def test_numbers_of_numpy_and_paths_are_arguments_like_others() -> None:
    args = {"count": np.int64(8), "size": np.float32(4), "path": Path("a")}
    assert len(leat.load(PIPELINES, export="numbers", args=args, seed=np.int64(3))) == 2


def test_a_folder_that_cannot_hold_the_slots_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder, code, message in (
        (tmp_path / "none", "not_found", "No such file or directory.*Give another folder="),
        (tmp_path / "file", "invalid_argument", "Not a directory"),
        (tmp_path / "a,b", "invalid_argument", "separates paths by commas"),
        ("/dev/shm", "invalid_argument", "Deno writes to no files in /dev: give folder=, or.*TMPDIR"),
    ):
        with pytest.raises(leat.LeatError, match=message) as raised:
            leat.load(PIPELINES, export="endless", folder=folder)
        assert raised.value.code == code


def test_a_folder_may_be_relative_and_have_spaces_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    (batch,) = leat.load(PIPELINES, export="large", args={"count": 1}, folder=folder.name)
    assert batch["x"].shape == (262_144,)


def test_a_request_that_the_disk_cannot_hold_is_an_error_and_the_loader_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = leat.load(PIPELINES, export="endless")
    batches = iter(loader)
    assert next(batches) == 0
    state = {**loader.state_dict(), "state": "AAAA" * 100_000}

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    loader.load_state_dict(state)
    with monkeypatch.context() as patched, pytest.raises(leat.LeatError, match="No space left.*another folder") as raised:
        patched.setattr(os, "pwrite", full)
        iter(loader)
    assert raised.value.code == "resource_exhausted"
    loader.load_state_dict({"leat": 1})
    assert next(iter(loader)) == 0


def test_a_state_that_is_none_is_refused() -> None:
    loader = leat.load(PIPELINES, export="endless")
    for part in ({"leat": 2}, {"state": "?"}, {"state": 3}, {"skip": "x"}, {"pending": 3}):
        with pytest.raises(leat.LeatError, match="not one that state_dict") as raised:
            loader.load_state_dict({"leat": 1, **part})
        assert raised.value.code == "invalid_argument"


def test_ragged_rows_are_made_of_rows_and_say_what_to_do_where_an_array_is_wanted() -> None:
    ragged = leat.Ragged.from_rows([[1, 2], [], [3]])
    assert [row.tolist() for row in ragged] == [[1, 2], [], [3]] and ragged.values.dtype == np.int64
    assert len(leat.Ragged.from_rows([])) == 0 and len(leat.Ragged.from_rows([[], []])) == 2
    with pytest.raises(TypeError, match="nested_tensor_from_jagged.*paddedBatch"):
        np.asarray(ragged)


def test_ragged_rows_are_compared_by_identity_as_their_arrays_have_no_truth_value() -> None:
    ragged, other = (leat.Ragged.from_rows([[1, 2], [3]]) for _ in range(2))
    assert ragged == ragged and ragged != other and ragged in {ragged: 1}


def test_the_types_of_load_and_ragged_allow_a_seed_of_numpy_and_a_loop_over_rows() -> None:
    assert np.integer[Any] in get_args(get_type_hints(leat.load)["seed"])
    assert isinstance(leat.Ragged.from_rows([[1]]), Iterable)
