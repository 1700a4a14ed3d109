"""JAX's arrays: where they are, what they hold, and Grain's way to save positions."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import leat
import numpy as np
import pytest
from conftest import DEADLINE_SECONDS, PIPELINES, SOURCES

# Before JAX counts its devices.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"
jax = pytest.importorskip("jax", reason="JAX is not installed")

import leat.jax  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402



def over_devices() -> Any:
    return NamedSharding(jax.make_mesh((2,), ("batch",)), PartitionSpec("batch"))


def large(count: int, **options: Any) -> leat.Loader:
    return leat.load(PIPELINES, export="large", args={"count": count}, **options)


def numbers() -> leat.Loader:
    return leat.load(PIPELINES, export="numbers", args={"count": 400}, seed=3)


def test_arrays_are_views_of_the_shared_memory_which_is_theirs_while_they_live() -> None:
    loader = large(40)
    kept = []
    for i, batch in enumerate(leat.jax.Loader(loader)):
        assert isinstance(batch["x"], jax.Array) and batch["x"].dtype == np.float32
        starts = [
            (region.__array_interface__["data"][0], len(region)) for region in loader._connection.helper.slots._regions.values()
        ]
        assert any(0 <= batch["x"].unsafe_buffer_pointer() - start < length for start, length in starts)
        kept.append(batch)
    assert [bool((batch["x"] == i).all()) for i, batch in enumerate(kept)] == [True] * 40


def test_every_dtype_becomes_an_array_and_text_stays() -> None:
    everything = leat.load(PIPELINES, export="everything")
    with pytest.raises(leat.LeatError, match="keeps 32 bits: call jax.config.update"):
        next(iter(leat.jax.Loader(everything)))
    with jax.enable_x64(True):
        (element,) = leat.jax.Loader(everything)
    names = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32", "float64"]
    for name in names:
        assert element[name].dtype == name and element[name].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert element["int64"].tolist() == [-(2**53) - 1, 2] and element["uint64"].tolist() == [2**64 - 1]
    assert element["string"].tolist() == [["a", "ü"], ["", "𝄞"]] and element["number"] == 7
    assert [row.tolist() for row in element["ragged"]] == [[1, 2], [], [3]]
    doubled = jax.tree.map(lambda leaf: 2 * leaf, element["ragged"])
    assert isinstance(doubled, leat.Ragged) and doubled.values.tolist() == [2, 4, 6]


def test_integers_that_float32_rounds_are_named_in_a_warning_once_and_no_other_floats() -> None:
    fine = [np.array([2**24, -(2.0**24)]), np.array([0.1, 2**24 + 1.5]), np.array([2**24 + 2.0]), np.array([2.0**53 + 2, 1e30])]
    fine += [np.array([np.nan, 2**24 + 1]), np.array([np.inf]), np.zeros(0), np.float64(0.1).reshape(())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leat.jax.to_jax({"fine": fine, "f4": np.float32([2**24 + 2])})
        with jax.enable_x64(True):
            assert leat.jax.to_jax(np.array([2**24 + 1.0])).tolist() == [2**24 + 1]
    loader = leat.jax.Loader(leat.load(PIPELINES, export="ids"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        assert [batch["of"][0]["id"].tolist() for batch in loader] == [[2**24, 2**24], [2**24 + 2, 2**24 + 4]]
    assert len(warned) == 1 and warned[0].category is UserWarning
    assert str(warned[0].message).startswith("batch['of'][0]['id'] has integers above 2**24 as float64")
    assert 'dtype: "int32"' in str(warned[0].message) and "jax_enable_x64" in str(warned[0].message)


def test_an_integer_of_64_bits_is_refused_with_its_place() -> None:
    with pytest.raises(leat.LeatError, match=r"batch\['a'\]\[1\]\.values has uint64 from 3 to 4294967296") as raised:
        leat.jax.to_jax({"a": [0, leat.Ragged(np.array([3, 2**32], np.uint64), np.array([0, 2]))]}, {"a": None})
    assert raised.value.code == "out_of_range"


def test_a_sharding_divides_batches_among_devices() -> None:
    whole = [batch["x"] for batch in numbers()]
    for had, batch in zip(whole, leat.jax.Loader(numbers(), over_devices(), prefetch=2), strict=True):
        shards = batch["x"].addressable_shards
        assert [shard.device.id for shard in shards] == [0, 1]
        assert [shard.data.tolist() for shard in shards] == [had[:2].tolist(), had[2:].tolist()]


def test_a_dict_places_arrays_by_key_and_what_cannot_be_divided_is_refused() -> None:
    second = jax.devices()[1]
    batch = next(iter(leat.jax.Loader(numbers(), {"x": over_devices(), "r": second})))
    assert len(batch["x"].addressable_shards) == 2 and batch["r"].devices() == {second}
    odd = leat.load(PIPELINES, export="numbers", args={"count": 9, "size": 3})
    with pytest.raises(leat.LeatError, match=r"shape \(3,\) cannot be divided by NamedSharding.*multiple of the devices"):
        next(iter(leat.jax.Loader(odd, over_devices())))
    with pytest.raises(leat.LeatError, match=r"sharding has the keys \['X'\], and the batch has the keys \['x'"):
        next(iter(leat.jax.Loader(numbers(), {"X": second})))
    with pytest.raises(leat.LeatError, match=r"sharding has the keys \[\], and the batch has none: it is int"):
        next(iter(leat.jax.Loader(leat.load(PIPELINES, export="endless"), {})))
    with pytest.raises(leat.LeatError, match="prefetch is a number of batches, 0 or more, not -1"):
        leat.jax.Loader(numbers(), prefetch=-1)
    with pytest.raises(leat.LeatError, match="without reuse=True"):
        leat.jax.Loader(large(1, reuse=True))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_state_continues_after_the_batch_that_the_program_has(prefetch: int) -> None:
    batches = iter(leat.jax.Loader(numbers(), prefetch=prefetch))
    whole, states = [], []
    for batch in batches:
        whole.append(batch["x"].tolist())
        states.append(batches.get_state())
    assert len(whole) == 100
    other = iter(leat.jax.Loader(numbers(), prefetch=prefetch))
    for had in (40, 1, 99):
        other.set_state(states[had - 1])
        assert [batch["x"].tolist() for batch in other] == whole[had:]


def test_an_error_that_was_met_ahead_comes_in_its_place_and_the_rest_after_it() -> None:
    loader = leat.jax.Loader(leat.load(PIPELINES, export="failing"), prefetch=2)
    batches = iter(loader)
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(leat.LeatError, match="no 2 today"):
        next(batches)
    assert list(batches) == [3, 4]


def test_a_loader_that_is_read_can_be_pickled_and_begins_again_there() -> None:
    loader = leat.jax.Loader(numbers(), prefetch=1)
    first = next(iter(loader))["x"].tolist()
    other = pickle.loads(pickle.dumps(loader))
    assert bool(other) and len(other) == 100 and next(iter(other))["x"].tolist() == first


def test_grain_saves_and_restores_an_iterator(tmp_path: Path) -> None:
    checkpoint = pytest.importorskip("grain.checkpoint", reason="Grain is not installed")
    batches = iter(leat.jax.Loader(numbers()))
    for _ in range(37):
        next(batches)
    handler = checkpoint.CheckpointHandler()
    handler.save(tmp_path, batches)
    rest = [batch["x"].tolist() for batch in batches]
    restored = handler.restore(tmp_path, iter(leat.jax.Loader(numbers())))
    assert [batch["x"].tolist() for batch in restored] == rest and len(rest) == 63


RANK = """
import sys, jax
rank, address, pipelines = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.distributed.initialize(address, 2, rank)
import leat, leat.jax
mesh = jax.make_mesh((2,), ("batch",))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
loader = leat.load(pipelines, export="numbers", args={"count": 16}, seed=3, consumer="auto")
for batch in leat.jax.Loader(loader, sharding):
    print(batch["x"].shape, batch["x"].addressable_shards[0].data.tolist(), flush=True)
replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
ragged = leat.load(pipelines, export="raggedText")
for refused in (lambda: next(iter(leat.jax.Loader(ragged, sharding))), lambda: leat.jax.Loader(loader, {"x": replicated})):
    try:
        refused()
    except leat.LeatError as error:
        print(error, flush=True)
print(next(iter(leat.jax.Loader(ragged, replicated))).row_splits, flush=True)
jax.distributed.shutdown()
"""


def free_port() -> int:
    """A port that the system gives to nobody, unlike one that it has chosen itself and that is free again."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("localhost", port))
            return port


def test_the_batches_of_two_processes_are_one_global_batch_and_what_cannot_be_one_is_refused() -> None:
    address = f"localhost:{free_port()}"
    environment = {**os.environ, "PYTHONPATH": SOURCES, "XLA_FLAGS": ""}
    with contextlib.ExitStack() as stack:
        started = []
        for rank in (0, 1):
            command = [sys.executable, "-c", RANK, str(rank), address, str(PIPELINES)]
            started.append(stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)))
            stack.callback(started[-1].kill)
        printed = [process.communicate(timeout=DEADLINE_SECONDS)[0].splitlines() for process in started]
    for rank in (0, 1):
        part = leat.load(PIPELINES, export="numbers", args={"count": 16}, seed=3, consumer=(rank, 2))
        *batches, ragged, replicated, splits = printed[rank]
        assert batches == [f"(8,) {batch['x'].tolist()}" for batch in part]
        assert ragged.startswith("batch is a leat.Ragged, which cannot be divided among processes: use paddedBatch()")
        assert "is replicated over processes, and the loader gives each of 2 consumers other batches" in replicated
        assert splits == "[0 2 3]"
    assert printed[0] != printed[1]


def test_what_is_no_loader_is_refused_when_a_reader_of_it_is_made() -> None:
    with pytest.raises(leat.LeatError, match=r"loader is what leat.load returned, not 'pipeline.ts' \(str\)") as raised:
        leat.jax.Loader("pipeline.ts")  # type: ignore[arg-type]
    assert raised.value.code == "invalid_argument"


def test_a_loop_that_keeps_copies_of_jax_arrays_keeps_no_slots() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30}, memory=10 * 2**20)
    kept = [leat.copy(batch) for batch in leat.jax.Loader(loader)]
    assert all(isinstance(batch["x"], jax.Array) and bool((batch["x"] == i).all()) for i, batch in enumerate(kept))
    assert len(kept) == 30
