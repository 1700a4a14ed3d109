"""Leat for JAX: batches as `jax.Array`s, sharded over devices, with Grain's checkpoint protocol.

>>> import leat, leat.jax                                                   # doctest: +SKIP
>>> loader = leat.jax.Loader(leat.load("pipeline.ts"), sharding=sharding)   # doctest: +SKIP
"""

from __future__ import annotations

import json
import warnings
from typing import Any, Mapping, TypeGuard, Union

import jax
import numpy as np
import numpy.typing as npt

from ._ahead import Ahead
from ._arguments import check, check_loader
from ._errors import LeatError
from ._loader import Loader as NumpyLoader
from ._tree import Ragged, arrays_in, map_arrays
from ._wire import INTEGER_MAX

__all__ = ["Loader", "LoaderIterator", "to_jax"]

# Where arrays are placed: one placement for all, or one for each key of a batch; None for the default device.
Placement = Union[jax.sharding.Sharding, jax.Device, Mapping[str, Any], None]

# Up to here, float32 has all integers.
FLOAT32_INTEGER_MAX = 2**24

# Makes a batch with rows of different lengths a pytree.
jax.tree_util.register_dataclass(Ragged, data_fields=["values", "row_splits"], meta_fields=[])


def to_jax(element: Any, sharding: Placement = None) -> Any:
    """The element with a `jax.Array` for each array; on the CPU over the same memory, if the dtype stays.

    Arrays of text and bytes stay numpy's, as JAX has no such arrays. Integers and floats of 64 bits become 32,
    as everywhere in JAX without `jax_enable_x64`. A `UserWarning` names a component of float64 that contains only
    integers, some of which float32 rounds.

    Args:
        element: A batch of `leat.Loader`.
        sharding: See `Loader`.

    Raises:
        LeatError: `invalid_argument` for an array that cannot be divided as `sharding` says, and for a key of
            `sharding` that the batch does not have, and for a `Ragged` that several processes have parts of;
            `out_of_range` for an integer that needs 64 bits without `jax_enable_x64`.
    """
    if jax.dtypes.canonicalize_dtype(np.float64) == np.float32:
        for place, array in arrays_in(element):
            _require_fits(place, array)
            _warn_if_rounded(place, array)
    return _placed(element, sharding)


def _placed(element: Any, sharding: Placement, place: str = "") -> Any:
    if isinstance(sharding, Mapping):
        if not isinstance(element, dict) or not set(sharding) <= set(element):
            has = f"the keys {list(element)}" if isinstance(element, dict) else f"none: it is {type(element).__name__}"
            raise LeatError(
                "invalid_argument",
                f"sharding has the keys {list(sharding)}, and the batch has {has}. Give one placement for all arrays, or "
                "one for each key of a batch",
            )
        return {key: _placed(value, sharding.get(key), f"{place}[{key!r}]") for key, value in element.items()}
    if _is_of_processes(sharding) and not sharding.is_fully_replicated:
        _refuse_ragged(element, place)
    return map_arrays(lambda array: _array(array, sharding), element)


def _is_of_processes(sharding: Any) -> TypeGuard[jax.sharding.Sharding]:
    return isinstance(sharding, jax.sharding.Sharding) and not sharding.is_fully_addressable


def _refuse_ragged(element: Any, place: str) -> None:
    """Refuses rows of different lengths: the row splits of one process do not count the values of those before it."""
    for where, _ in arrays_in(element, place):
        if where.endswith(".row_splits"):
            raise LeatError(
                "invalid_argument",
                f"batch{where.removesuffix('.row_splits')} is a leat.Ragged, which cannot be divided among processes: use paddedBatch() in "
                "the pipeline, or give sharding as a dict without this key, so that each process keeps its own rows",
            )


def _array(array: npt.NDArray[Any], sharding: Any) -> Any:
    if array.dtype == np.object_:
        return array
    if not isinstance(sharding, jax.sharding.Sharding):
        return jax.device_put(array, sharding)
    try:
        return jax.make_array_from_process_local_data(sharding, array)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise LeatError(
            "invalid_argument",
            f"An array of shape {array.shape} cannot be divided by {sharding}: {error}. Choose a batch size that is "
            "a multiple of the devices, or give a dict with the sharding of each key",
        ) from error


def _require_fits(place: str, array: npt.NDArray[Any]) -> None:
    """Refuses integers that need 64 bits: JAX would silently keep the lower half of each."""
    if array.dtype not in (np.int64, np.uint64) or array.size == 0:
        return
    bounds = np.iinfo(np.int32 if array.dtype == np.int64 else np.uint32)
    if array.min() < bounds.min or array.max() > bounds.max:
        raise LeatError(
            "out_of_range",
            f"batch{place} has {array.dtype} from {array.min()} to {array.max()}, and JAX keeps 32 bits: call "
            'jax.config.update("jax_enable_x64", True)',
        )


def _warn_if_rounded(place: str, array: npt.NDArray[Any]) -> None:
    """Warns of integers that float32 rounds: they are ids or counts. Each other float loses digits, as is usual."""
    if array.dtype != np.float64 or array.size == 0 or not FLOAT32_INTEGER_MAX < np.abs(array).max() <= INTEGER_MAX:
        return  # Above INTEGER_MAX every float is an integer.
    if (array == np.trunc(array)).all() and (array.astype(np.float32) != array).any():
        # Without the values, so that Python shows it once for each component.
        warnings.warn(
            f"batch{place} has integers above 2**24 as float64, and JAX's float32 rounds them: two ids may become one. Let the "
            f'pipeline return tensor(value, {{ dtype: "int32" }}), or call jax.config.update("jax_enable_x64", True)',
            stacklevel=3,
        )


def _refuse_replicated(sharding: Placement, consumers: int) -> None:
    if isinstance(sharding, Mapping):
        for of_key in sharding.values():
            _refuse_replicated(of_key, consumers)
    elif _is_of_processes(sharding) and sharding.is_fully_replicated:
        raise LeatError(
            "invalid_argument",
            f"{sharding} is replicated over processes, and the loader gives each of {consumers} consumers other batches: load "
            "without consumer=, or divide the batches with a PartitionSpec that names an axis",
        )


class Loader:
    """A loader's batches as `jax.Array`s.

    On the CPU they are views of shared memory, if the dtype stays. For other devices, the next batch is on
    its way while the program uses this one.
    """

    def __init__(self, loader: NumpyLoader, sharding: Placement = None, prefetch: int | None = None) -> None:
        """
        Args:
            loader: What `leat.load` returned, without `reuse=True`.
            sharding: A `jax.sharding.Sharding` or a device for all arrays, or a dict with one for
                each key of a batch, which may be a dict again. Default: JAX's default device. If the
                sharding has devices of several processes, each process's batch is its part of the
                global one: all processes need as many batches, of the same shapes. If it is replicated,
                all need the same batches.
            prefetch: How many batches are moved ahead. Default: 1, and 0 where JAX uses the CPU.

        Raises:
            LeatError: `invalid_argument` for what is no loader of `leat.load`, for one with `reuse=True`, and
                for a `prefetch` that is no number of batches, and for a `sharding` that replicates over
                processes what `consumer` of the loader divides among them.
        """
        check_loader(loader, NumpyLoader)
        check(prefetch=prefetch)
        if loader._reuse:
            raise LeatError("invalid_argument", "JAX uses a batch's memory without a copy: load it without reuse=True")
        if loader._consumers > 1:
            _refuse_replicated(sharding, loader._consumers)
        self.loader = loader
        self.sharding = sharding
        self.prefetch = (0 if jax.default_backend() == "cpu" else 1) if prefetch is None else prefetch
        self._batches: LoaderIterator | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batches": None}

    def __len__(self) -> int:
        return len(self.loader)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> LoaderIterator:
        """Begins the next epoch, or continues from the position that `load_state_dict` was given."""
        self._batches = LoaderIterator(self.loader, lambda batch: to_jax(batch, self.sharding), self.prefetch)
        return self._batches

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that the program got; see `leat.Loader.state_dict`."""
        return (self._batches or self.loader).state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Lets the next `iter()` continue from a position."""
        self.loader.load_state_dict(state_dict)
        self._batches = None


class LoaderIterator(Ahead):
    """One epoch of a loader, with the methods of Grain's iterators.

    `grain.checkpoint.CheckpointHandler`, and so Orbax, saves and restores it.
    """

    def get_state(self) -> bytes:
        """The position after the last batch that the program got, as JSON."""
        return json.dumps(self.state_dict()).encode()

    def set_state(self, state: bytes) -> None:
        """Continues from a position of this pipeline, in any process."""
        self._loader.load_state_dict(json.loads(state))
        self._begin()

    def start_prefetch(self) -> None:
        """Does nothing: the helper reads ahead by itself."""
