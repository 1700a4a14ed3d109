"""Leat feeds accelerators: its pipelines and clusters, read from Python.

>>> import leat
>>> for batch in leat.load("pipeline.ts", args={"split": "train"}, seed=7):  # doctest: +SKIP
...     step(batch["image"], batch["label"])

A batch has the structure that the pipeline gives it: dicts and lists of numpy arrays, numbers and
text. Large arrays are views of memory that a helper process shares with this one.
"""

from ._errors import LeatError
from ._loader import Loader, LoaderIterator, from_id, load
from ._tree import Ragged, copy, map_arrays

__all__ = ["LeatError", "Loader", "LoaderIterator", "Ragged", "copy", "from_id", "load", "map_arrays"]
__version__ = "0.1.0"

# Tracebacks and help() then have the names that programs use: leat.LeatError.
for _name in __all__:
    globals()[_name].__module__ = __name__
