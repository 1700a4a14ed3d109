"""Elements: trees of arrays, numbers and text."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

# The types of values that contain nothing.
_PLAIN = frozenset((int, float, str, bytes, bool, type(None)))


# Compared by identity: NumPy's arrays have no single truth value for `==`.
@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths: row i is `values[row_splits[i]:row_splits[i + 1]]`.

    Attributes:
        values: The values of all rows along axis 0.
        row_splits: int64, one more than there are rows, from 0 to the number of values.
    """

    values: npt.NDArray[Any]
    row_splits: npt.NDArray[np.int64]

    @staticmethod
    def from_rows(rows: Sequence[npt.ArrayLike]) -> Ragged:
        """Joins rows whose shapes differ only in their first axis.

        >>> Ragged.from_rows([[1, 2], [], [3]]).row_splits
        array([0, 2, 2, 3])
        """
        arrays = [np.asarray(row) for row in rows]
        splits = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        # Without empty rows, because NumPy makes them float64 and would convert all rows.
        filled = [array for array in arrays if len(array)] or arrays[:1]
        return Ragged(np.concatenate(filled) if filled else np.empty(0), splits)

    def __array__(self, *_: Any, **__: Any) -> npt.NDArray[Any]:
        raise TypeError(
            "Rows of different lengths are not an array: use ragged.values and ragged.row_splits, or ragged[i] for row i. In "
            "PyTorch, torch.nested.nested_tensor_from_jagged(ragged.values, ragged.row_splits) makes a tensor of them; "
            "paddedBatch() in the pipeline gives rows of one length"
        )

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return self.values[self.row_splits[row] : self.row_splits[row + 1]]


def map_arrays(function: Callable[[npt.NDArray[Any]], Any], element: Any) -> Any:
    """The element with the result of `function` for each of its NumPy arrays.

    Structure, numbers and text stay as they are. In a `Ragged`, both arrays are mapped.
    """
    if isinstance(element, np.ndarray):
        return function(element)
    # Without a call for each number or text: there may be many.
    if isinstance(element, dict):
        return {key: value if type(value) in _PLAIN else map_arrays(function, value) for key, value in element.items()}
    if isinstance(element, list):
        return [value if type(value) in _PLAIN else map_arrays(function, value) for value in element]
    if isinstance(element, Ragged):
        return Ragged(function(element.values), function(element.row_splits))
    return element


def arrays_in(element: Any, place: str = "") -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Each array that `map_arrays` maps, after its place, such as `['x'][3]`; the place is "" for the element itself."""
    if isinstance(element, np.ndarray):
        yield place, element
    elif isinstance(element, (dict, list)):
        for key, item in element.items() if isinstance(element, dict) else enumerate(element):
            yield from arrays_in(item, f"{place}[{key!r}]")
    elif isinstance(element, Ragged):
        yield from arrays_in(element.values, f"{place}.values")
        yield from arrays_in(element.row_splits, f"{place}.row_splits")


def copy(element: Any) -> Any:
    """A copy in memory of this process alone: for batches that a program keeps, or that a forked process gets.

    Tensors and `jax.Array`s are copied, too, on their device; a copy of a tensor is detached. Objects of other types, also
    of subclasses of dict and list, are copied as `copy.deepcopy` does.

    >>> import numpy as np
    >>> copy({"x": np.arange(3)})
    {'x': array([0, 1, 2])}
    """
    kind = type(element)
    if kind in _PLAIN:
        return element
    if kind is dict:
        return {key: copy(value) for key, value in element.items()}
    if kind in (list, tuple):
        return kind(map(copy, element))
    if kind is Ragged:
        return Ragged(copy(element.values), copy(element.row_splits))
    if kind is np.ndarray and _is_copied_by_value(element):
        return element.copy(order="K")
    if hasattr(element, "detach") and hasattr(element, "clone"):
        # A tensor of PyTorch: deepcopy copies all that it is a view of, and refuses one that has a gradient function.
        return element.detach().clone()
    return deepcopy(element)


def _is_copied_by_value(array: npt.NDArray[Any]) -> bool:
    """Whether the array's own copy is one in depth: it has no objects, or only such as text, which need no copy."""
    return not array.dtype.hasobject or array.dtype.names is None and set(map(type, array.ravel().tolist())) <= _PLAIN
