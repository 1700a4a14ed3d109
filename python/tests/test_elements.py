"""What arrives: every dtype, as the pipeline made it, without copies of large arrays."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import leat
import numpy as np
import pytest
from conftest import PIPELINES
from leat import _stream, _tree
from leat._tree import arrays_in
from leat._wire import decode

VECTORS = Path(__file__).parents[2] / "tests" / "transport" / "vectors" / "vectors.json"


def require_everything(element: Any) -> None:
    """Checks the element of the pipeline `everything`."""
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32", "float64"):
        assert element[name].dtype == np.dtype(name)
        assert element[name].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert element["int64"].dtype == np.int64 and element["int64"].tolist() == [-(2**53) - 1, 2]
    assert element["uint64"].dtype == np.uint64 and element["uint64"].tolist() == [2**64 - 1]
    assert element["bool"].dtype == np.bool_ and element["bool"].tolist() == [True, False]
    assert element["string"].tolist() == [["a", "ü"], ["", "𝄞"]]
    assert element["bytes"].tolist() == [b"\1\2", b""]
    ragged = element["ragged"]
    assert [row.tolist() for row in ragged] == [[1, 2], [], [3]] and ragged[-1].tolist() == [3]
    assert element["text"] == "text" and element["number"] == 7 and element["fraction"] == 0.5
    assert element["big"] == 2**40 and element["yes"] is True and element["nothing"] is None
    assert element["short"].dtype == np.uint8 and element["short"].tolist() == [1, 2, 3]
    assert element["long"].dtype == np.uint8 and element["long"].tolist() == [7] * 300
    assert element["list"][0].tolist() == [1.5] and element["list"][1] == {"deep": [1]}
    assert element["scalar"].shape == () and element["scalar"] == 3
    assert element["empty"].shape == (0,) and element["empty"].dtype == np.float32


def test_load_gives_every_dtype() -> None:
    (element,) = leat.load(PIPELINES, export="everything")
    require_everything(element)


def matches(value: Any, expected: Any) -> bool:
    """Whether a value is what a vector says in plain JSON."""
    if isinstance(value, leat.Ragged):
        return matches(value.values, expected["values"]) and value.row_splits.tolist() == expected["rowSplits"]
    if isinstance(value, np.ndarray):
        if "bytes" in expected:
            return value.tobytes().hex() == expected["bytes"]
        items = [item.hex() if isinstance(item, bytes) else item for item in value.ravel().tolist()]
        items = [str(item) for item in items] if value.dtype.itemsize == 8 and value.dtype.kind in "iu" else items
        return list(value.shape) == expected["shape"] and all(map(matches, items, expected["data"]))
    if isinstance(value, bytes):
        return bool(value.hex() == expected["bytes"])
    if isinstance(value, dict):
        return value.keys() == expected.keys() and all(matches(item, expected[key]) for key, item in value.items())
    if isinstance(value, list):
        return len(value) == len(expected) and all(map(matches, value, expected))
    if isinstance(expected, dict):
        names = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf", "-0": "-0.0"}
        return str(value) == names.get(expected.get("number"), expected.get("int"))
    return bool(value == expected)


def test_decode_reads_the_vectors_of_the_wire_format() -> None:
    for vector in json.loads(VECTORS.read_text()):
        message = np.frombuffer(bytearray.fromhex(vector["hex"]), dtype=np.uint8)
        assert matches(decode(message), vector["value"]), vector["name"]


def test_large_arrays_are_views_of_shared_memory_and_stay_as_they_are() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 12})
    kept = list(loader)
    assert loader._connection.helper.slots.held_slots == 12
    for i, batch in enumerate(kept):
        assert batch["i"] == i and np.all(batch["x"] == i)
        assert batch["x"].flags.aligned and not batch["x"].flags.owndata
    # They are writable, and outlive their loader.
    loader.close()
    kept[3]["x"] += 1
    assert np.all(kept[3]["x"] == 4) and np.all(kept[2]["x"] == 2)


def test_a_slot_is_used_again_when_its_last_array_is_gone() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 40})
    for i, batch in enumerate(loader):
        half = batch["x"][1000:]
        del batch
        assert np.all(half == i)
        del half
    assert len(loader._connection.helper.slots._regions) <= 8


def test_many_large_batches_that_are_ready_at_once_arrive() -> None:
    count = 0
    for count, batch in enumerate(leat.load(PIPELINES, export="ready"), 1):
        assert batch[0] == 1
    assert count == 300


def test_reuse_gives_the_memory_of_a_batch_to_a_later_one() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30}, reuse=True)
    kept = []
    for i, batch in enumerate(loader):
        assert np.all(batch["x"] == i)
        kept.append(batch)
    assert len({batch["x"].__array_interface__["data"][0] for batch in kept}) <= 8


def test_a_loop_that_keeps_its_batches_gets_an_error_and_may_go_on() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30}, memory=10 * 2**20)
    kept, batches = [], iter(loader)
    with pytest.raises(leat.LeatError, match="keeps 1[0-9] batches.*leat.copy") as raised:
        kept.extend(batches)
    assert raised.value.code == "resource_exhausted"
    had = len(kept)
    assert all(np.all(batch["x"] == i) for i, batch in enumerate(kept))
    kept.clear()
    assert [int(leat.copy(batch)["x"][0]) for batch in batches] == list(range(had, 30))


@pytest.mark.parametrize(("memory", "slots", "advises_memory"), [(10 * 2**20, 1_024, True), (2**30, 20, False)])
def test_a_loop_that_keeps_its_batches_is_told_of_memory_only_where_more_of_it_helps(
    memory: int, slots: int, advises_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "SLOTS", slots)
    with pytest.raises(leat.LeatError, match=r"keeps 1[0-9] batches") as raised:
        list(leat.load(PIPELINES, export="large", args={"count": 30}, memory=memory))
    assert ("raise memory=" in raised.value.message) == advises_memory


def test_copy_copies_text_and_rows_of_different_lengths_and_does_not_go_through_items(monkeypatch: pytest.MonkeyPatch) -> None:
    (element,) = leat.load(PIPELINES, export="everything")
    monkeypatch.setattr(_tree, "deepcopy", None)
    copied = leat.copy(element)
    require_everything(copied)
    for place, array in arrays_in(element):
        assert not any(np.shares_memory(array, other) for _, other in arrays_in(copied)), place


def test_copy_copies_what_an_array_of_objects_or_another_type_has() -> None:
    array, objects = np.arange(3), np.empty(1, dtype=object)
    objects[0] = array
    copied = leat.copy({"pair": (array, 1), "objects": objects, "ordered": OrderedDict(x=array)})
    array[:] = 7
    assert copied["pair"][0].tolist() == copied["objects"][0].tolist() == copied["ordered"]["x"].tolist() == [0, 1, 2]
    assert copied["pair"][1] == 1 and type(copied["ordered"]) is OrderedDict
