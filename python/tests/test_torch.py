"""Tensors, and the loaders of PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import leat
import pytest
from conftest import PIPELINES

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import leat.torch  # noqa: E402


def large(count: int) -> leat.Loader:
    return leat.load(PIPELINES, export="large", args={"count": count})


def numbers() -> leat.Loader:
    return leat.load(PIPELINES, export="numbers", args={"count": 400}, seed=3)


def firsts(batches: Any) -> list[list[float]]:
    return [batch["x"].tolist() for batch in batches]


def test_tensors_are_views_of_the_shared_memory() -> None:
    loader = large(4)
    for i, batch in enumerate(leat.torch.Loader(loader)):
        assert batch["i"] == i and bool((batch["x"] == i).all()) and batch["x"].dtype == torch.float32
        (region,) = [
            region for region in loader._connection.helper.slots._regions.values()
            if 0 <= batch["x"].data_ptr() - region.__array_interface__["data"][0] < len(region)
        ]  # fmt: skip
        assert region is not None


def test_every_dtype_becomes_a_tensor_and_text_a_list() -> None:
    (element,) = leat.torch.Loader(leat.load(PIPELINES, export="everything"))
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32", "float64"):
        assert element[name].dtype == getattr(torch, name) and element[name].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert element["int64"].dtype == torch.int64 and element["bool"].dtype == torch.bool
    assert element["string"] == [["a", "ü"], ["", "𝄞"]]
    jagged = torch.nested.nested_tensor_from_jagged(element["ragged"].values, element["ragged"].row_splits)
    assert [row.tolist() for row in jagged.unbind()] == [[1, 2], [], [3]]


def test_batches_with_text_are_moved_to_a_device_without_the_text() -> None:
    everything, ragged = (leat.torch.Loader(leat.load(PIPELINES, export=name), device="meta") for name in ("everything", "raggedText"))
    (element,) = everything
    assert element["int64"].device.type == element["ragged"].values.device.type == "meta"
    assert element["string"] == [["a", "ü"], ["", "𝄞"]]
    (rows,) = ragged
    assert rows.values == ["a", "b", "c"] and rows.row_splits.device.type == "meta"


@pytest.mark.parametrize("prefetch", [0, 2])
def test_loader_continues_after_the_batch_that_the_program_has(prefetch: int) -> None:
    loader = leat.torch.Loader(numbers(), prefetch=prefetch)
    whole, states = [], []
    for batch in loader:
        whole.append(batch["x"].tolist())
        states.append(loader.state_dict())
    assert len(whole) == 100
    for had in (1, 40, 99):
        other = leat.torch.Loader(numbers(), prefetch=prefetch)
        other.load_state_dict(states[had - 1])
        assert firsts(other) == whole[had:]


def test_a_state_that_is_refused_leaves_the_position_as_it_is() -> None:
    loader = leat.torch.Loader(numbers(), prefetch=2)
    batches = iter(loader)
    next(batches)
    with pytest.raises(leat.LeatError, match="not one that state_dict"):
        loader.load_state_dict({"leat": 2})
    state, following = loader.state_dict(), next(batches)
    loader.load_state_dict(state)
    assert next(iter(loader))["x"].tolist() == following["x"].tolist()


@pytest.mark.parametrize("wrapped", [leat.torch.Loader, leat.torch.IterableDataset])
def test_len_is_that_of_the_loader_and_no_truth_value_asks_for_it(wrapped: Any) -> None:
    assert len(wrapped(numbers())) == 100
    endless = wrapped(leat.load(PIPELINES, export="endless"))
    assert bool(endless) and bool(leat.load(PIPELINES, export="endless"))
    with pytest.raises(TypeError, match="number of batches is unknown"):
        len(endless)


def test_data_loader_has_the_len_of_all_its_workers_together() -> None:
    dataset = leat.torch.IterableDataset(numbers())
    assert len(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)) == 100


def test_a_loader_that_is_read_can_be_pickled_and_copied_and_begins_again_there() -> None:
    loader = leat.torch.Loader(numbers(), prefetch=2)
    batches = iter(loader)
    first = next(batches)["x"].tolist()
    for other in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        assert other.prefetch == 2 and next(iter(other))["x"].tolist() == first
    assert len(list(batches)) == 99


def test_a_prefetched_error_comes_in_its_place() -> None:
    batches = iter(leat.torch.Loader(leat.load(PIPELINES, export="failing"), prefetch=2))
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(leat.LeatError, match="no 2 today"):
        next(batches)


@pytest.mark.parametrize("workers", [0, 1])
def test_data_loader_goes_on_after_an_element_that_fails(workers: int) -> None:
    dataset = leat.torch.IterableDataset(leat.load(PIPELINES, export="failing"))
    context = "spawn" if workers else None
    batches = iter(
        torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)
    )
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(leat.LeatError, match="no 2 today"):
        next(batches)
    assert list(batches) == [3, 4]


@pytest.mark.parametrize("prefetch", [-1, "2", 1.5, True])
def test_a_prefetch_that_is_no_number_of_batches_is_refused(prefetch: Any) -> None:
    with pytest.raises(leat.LeatError, match="prefetch is") as raised:
        leat.torch.Loader(numbers(), prefetch=prefetch)
    assert raised.value.code == "invalid_argument"


def test_data_loader_reads_it_here_and_refuses_to_fork() -> None:
    dataset = leat.torch.IterableDataset(large(3))
    assert [batch["i"] for batch in torch.utils.data.DataLoader(dataset, batch_size=None)] == [0, 1, 2]
    forking = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(leat.LeatError, match="belongs to the process that this one was forked from"):
        next(iter(forking))


def test_data_loader_spawns_workers_that_divide_the_batches() -> None:
    # Without a seed, which the workers have to agree on.
    dataset = leat.torch.IterableDataset(leat.load(PIPELINES, export="numbers", args={"count": 400}))
    spawning = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert sorted(x for batch in firsts(spawning) for x in batch) == list(range(400))


def test_workers_of_data_loaders_of_two_consumers_read_each_element_once() -> None:
    # Without a seed: each rank's PyTorch draws another one.
    read = []
    for rank in range(2):
        loader = leat.load(PIPELINES, export="numbers", args={"count": 400}, consumer=(rank, 2))
        spawning = torch.utils.data.DataLoader(
            leat.torch.IterableDataset(loader), batch_size=None, num_workers=1, multiprocessing_context="spawn"
        )
        read += firsts(spawning)
    assert sorted(x for batch in read for x in batch) == list(range(400))


def test_workers_of_data_loader_draw_other_numbers_in_each_epoch_and_refuse_a_position() -> None:
    dataset = leat.torch.IterableDataset(leat.load(PIPELINES, export="numbers", args={"count": 40}))
    spawning = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    assert firsts(spawning) != firsts(spawning)
    next(iter(dataset))
    dataset.load_state_dict(dataset.state_dict())
    with pytest.raises(leat.LeatError, match="no position of the parts"):
        next(iter(spawning))


def test_workers_of_data_loader_never_use_a_batch_again_that_is_on_its_way() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 1}, reuse=True)
    assert loader._for_worker(0, 1, 0)._reuse is False


def test_stateful_data_loader_continues() -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def loader() -> Any:
        return stateful.StatefulDataLoader(leat.torch.IterableDataset(numbers()), batch_size=None)

    first = loader()
    batches = iter(first)
    for _ in range(37):
        next(batches)
    state = first.state_dict()
    rest = firsts(batches)
    second = loader()
    second.load_state_dict(state)
    assert firsts(second) == rest and len(rest) == 63


def test_consumer_auto_asks_torch_distributed(tmp_path: Any) -> None:
    store = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        assert [batch["i"] for batch in leat.load(PIPELINES, export="large", args={"count": 2}, consumer="auto")] == [0, 1]
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("reader", [leat.torch.Loader, leat.torch.IterableDataset])
def test_what_is_no_loader_is_refused_when_a_reader_of_it_is_made(reader: Any) -> None:
    with pytest.raises(leat.LeatError, match=r"loader is what leat.load returned, not 'pipeline.ts' \(str\)") as raised:
        reader("pipeline.ts")
    assert raised.value.code == "invalid_argument"


def test_copy_of_a_batch_of_tensors_stays_as_it_is_when_its_slot_is_used_again() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30}, reuse=True, memory=10 * 2**20)
    kept = [leat.copy(batch) for batch in leat.torch.Loader(loader)]
    assert [bool((batch["x"] == i).all()) for i, batch in enumerate(kept)] == [True] * 30


def test_a_loop_that_keeps_copies_of_tensors_keeps_no_slots() -> None:
    loader = leat.load(PIPELINES, export="large", args={"count": 30}, memory=10 * 2**20)
    assert [batch["i"] for batch in [leat.copy(batch) for batch in leat.torch.Loader(loader)]] == list(range(30))


def test_copy_of_a_tensor_has_memory_for_its_own_values_only_and_is_detached() -> None:
    whole = torch.arange(12.0).reshape(4, 3)
    weight = torch.ones(3, requires_grad=True)
    copied = leat.copy({"row": whole[1], "turned": whole.T, "weighted": [2 * weight], "ragged": leat.Ragged(whole, weight)})  # type: ignore[arg-type]
    assert copied["row"].tolist() == [3, 4, 5] and copied["row"].untyped_storage().nbytes() == 3 * 4
    assert copied["turned"].equal(whole.T) and copied["turned"].data_ptr() != whole.data_ptr()
    assert copied["weighted"][0].tolist() == [2, 2, 2] and not copied["weighted"][0].requires_grad
    assert copied["ragged"].values.equal(whole) and copied["ragged"].values.data_ptr() != whole.data_ptr()
