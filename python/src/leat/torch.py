"""Leat for PyTorch: batches as tensors, on their device, and datasets for `DataLoader`.

>>> import leat, leat.torch                                            # doctest: +SKIP
>>> loader = leat.torch.Loader(leat.load("pipeline.ts"), device="cuda")  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import torch
import torch.utils.data

from ._ahead import Ahead
from ._arguments import check, check_loader
from ._errors import LeatError
from ._loader import Loader as NumpyLoader
from ._tree import map_arrays

__all__ = ["IterableDataset", "Loader", "to_tensors"]


def to_tensors(element: Any) -> Any:
    """The element with a tensor for each array, over the same memory.

    Arrays of text and bytes become nested lists, as PyTorch has no such tensors. A `Ragged` has
    tensors: `torch.nested.nested_tensor_from_jagged(r.values, r.row_splits)` makes one of it.
    """
    return map_arrays(_tensor, element)


def _tensor(array: npt.NDArray[Any]) -> Any:
    return array.tolist() if array.dtype == np.object_ else torch.from_numpy(array)


class Loader:
    """A loader's batches as tensors.

    On the CPU, tensors are views of shared memory. For another device, a thread copies the next batch
    to pinned memory and from there to the device, while the program uses this one.
    """

    def __init__(
        self, loader: NumpyLoader, device: torch.device | str | None = None, prefetch: int | None = None
    ) -> None:
        """
        Args:
            loader: What `leat.load` returned.
            device: Where the tensors are. Default: the CPU.
            prefetch: How many batches are copied ahead. Default: 1 for a device, 0 for the CPU.

        Raises:
            LeatError: `invalid_argument` for what is no loader of `leat.load`, for batches ahead on the CPU
                from a loader with `reuse=True`, and for a `prefetch` that is no number of batches.
        """
        check_loader(loader, NumpyLoader)
        check(prefetch=prefetch)
        self.loader = loader
        self.device = torch.device("cpu" if device is None else device)
        is_cpu = self.device.type == "cpu"
        self.prefetch = (0 if is_cpu else 1) if prefetch is None else prefetch
        if is_cpu and self.prefetch > 0 and loader._reuse:
            raise LeatError("invalid_argument", "Batches moved ahead would be overwritten: load without reuse=True")
        self._mover: _Mover | None = None
        self._batches: Ahead | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mover": None, "_batches": None}

    def __len__(self) -> int:
        return len(self.loader)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        """Begins the next epoch, or continues from what `load_state_dict` was given."""
        if self.device.type == "cpu":
            self._batches = Ahead(self.loader, to_tensors, self.prefetch)
            return self._batches
        # One mover for all epochs: PyTorch keeps memory for each stream.
        mover = self._mover = self._mover or _Mover(self.device)
        self._batches = Ahead(self.loader, mover.move, self.prefetch, mover.thread)
        return map(mover.ready, self._batches)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that the program got; see `leat.Loader.state_dict`."""
        return (self._batches or self.loader).state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Lets the next `iter()` continue from a position."""
        self.loader.load_state_dict(state_dict)
        self._batches = None


class _Mover:
    """Copies batches to a device while the program computes."""

    def __init__(self, device: torch.device) -> None:
        # With an index: the thread's current device may differ from the program's.
        self._device = torch.empty(0, device=device).device
        self._stream = torch.cuda.Stream(self._device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.thread = ThreadPoolExecutor(1, "leat-copies")
        # One core is enough to copy, as in DataLoader. `set_num_threads` also changes the default of later
        # threads, so it is reset below. Reading the number first in the thread keeps it there.
        threads = torch.get_num_threads()
        with contextlib.suppress(RuntimeError):  # The main thread has ended, and Python starts no threads.
            self.thread.submit(torch.get_num_threads).result()
            self.thread.submit(torch.set_num_threads, 1).result()
        torch.set_num_threads(threads)

    def move(self, batch: Any) -> tuple[Any, Any]:
        """Begins to copy a batch. When this returns, the batch has been read. Returns the copy and the event of its arrival."""
        tensors = to_tensors(batch)
        if self._stream is None:
            return _map_tensors(lambda tensor: tensor.to(self._device), tensors), None
        with torch.cuda.stream(self._stream):
            # PyTorch reuses the pinned memory after the copy.
            moved = _map_tensors(lambda tensor: tensor.pin_memory().to(self._device, non_blocking=True), tensors)
            return moved, self._stream.record_event()  # type: ignore[no-untyped-call]

    def ready(self, moved: tuple[Any, Any]) -> Any:
        """The batch; the program's current stream waits for its arrival."""
        batch, arrival = moved
        if arrival is not None:
            current = torch.cuda.current_stream(self._device)
            current.wait_event(arrival)  # type: ignore[no-untyped-call]
            _map_tensors(lambda tensor: tensor.record_stream(current), batch)
        return batch


def _map_tensors(function: Any, element: Any) -> Any:
    if isinstance(element, torch.Tensor):
        return function(element)
    if isinstance(element, dict):
        return {key: _map_tensors(function, value) for key, value in element.items()}
    if isinstance(element, list):
        return [_map_tensors(function, value) for value in element]
    if hasattr(element, "row_splits"):
        return type(element)(_map_tensors(function, element.values), function(element.row_splits))
    return element


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """A loader as a dataset for `DataLoader(dataset, batch_size=None)`, also `StatefulDataLoader`.

    `num_workers=0` is best, because Leat already works in a process of its own. Workers need the
    method `spawn`: each has a helper, and worker w of n reads every n-th batch of this process's part.
    With a service or a `consumer`, or if the pipeline has a seed, also give `persistent_workers=True`:
    otherwise each epoch starts new workers, which give the first epoch again, or nothing if the epoch
    of their job has ended.
    """

    def __init__(self, loader: NumpyLoader) -> None:
        super().__init__()
        check_loader(loader, NumpyLoader)
        self._loader = loader
        self._part: NumpyLoader | None = None

    def __len__(self) -> int:
        """How many batches all workers together give in an epoch; see `leat.Loader.__len__`."""
        return len(self._loader)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return _Batches(self)

    def _current(self) -> NumpyLoader:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return self._loader
        if self._part is None:
            # PyTorch draws a number for each epoch, and adds the worker's number to it.
            self._part = self._loader._for_worker(worker.id, worker.num_workers, (worker.seed - worker.id) % 2**53)
        return self._part

    def state_dict(self) -> dict[str, Any]:
        """The position in this process's part; see `leat.Loader.state_dict`."""
        return self._current().state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Lets the next iteration continue from a position."""
        self._current().load_state_dict(state_dict)


class _Batches(Iterator[Any]):
    """The batches of a dataset. An element that fails does not end them, as it would end a generator."""

    def __init__(self, dataset: IterableDataset) -> None:
        self._dataset = dataset
        # Opened when the first batch is read: StatefulDataLoader makes iterators that it never reads.
        self._batches: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._batches is None:
            self._batches = iter(self._dataset._current())
        return to_tensors(next(self._batches))
