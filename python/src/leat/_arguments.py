"""Checks of what a program gives to `leat.load`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import LeatError

# A message may nest 128 deep, and wraps arguments in a few maps.
DEPTH_MAX = 120
# Halves of UTF-16 pairs, which UTF-8 does not have. File names that are not UTF-8 have them in Python.
_SURROGATES = re.compile("[\ud800-\udfff]")
_TEXTS = "a list of texts, such as ['net=example.org']"
# What each argument may be, if it is given.
_KINDS: dict[str, tuple[Any, str]] = {
    **{name: (str, "text") for name in ("export", "service", "token", "ca", "mode", "job", "dataset_id")},
    **{name: ((str, os.PathLike), "a path") for name in ("pipeline", "folder")},
    **{name: ((int, np.integer), "an integer") for name in ("seed", "memory", "prefetch")},
    **{name: (Mapping, "a dict") for name in ("args", "options")},
}


def check(**given: Any) -> None:
    """Raises `invalid_argument` for an argument of another type, or out of its range."""
    for name, value in given.items():
        if name == "allow":
            if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
                raise _refused(name, value, _TEXTS)
        elif value is not None:
            kinds, what = _KINDS[name]
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise _refused(name, value, what)
        for text in value if name == "allow" else (value,):
            # A command line cannot have NUL.
            if isinstance(text, (str, os.PathLike)) and ("\0" in (text := os.fspath(text)) or _SURROGATES.search(text)):
                raise _refused(name, value, "text without NUL and lone surrogates")
    seed, memory, prefetch = given.get("seed"), given.get("memory"), given.get("prefetch")
    if seed is not None and not -(2**63) <= seed < 2**64:
        raise _refused("seed", seed, "an integer of 64 bits")
    if memory is not None and memory <= 0:
        raise _refused("memory", memory, "a positive number of bytes")
    if prefetch is not None and prefetch < 0:
        raise _refused("prefetch", prefetch, "a number of batches, 0 or more")


def check_loader(loader: Any, kind: type) -> None:
    """Raises `invalid_argument` for what is no loader, such as the path of a pipeline."""
    if not isinstance(loader, kind):
        raise _refused("loader", loader, "what leat.load returned")


def _refused(name: str, value: Any, what: str) -> LeatError:
    shown = "…" if name == "token" else f"{value!r:.200}"
    return LeatError("invalid_argument", f"{name} is {what}, not {shown} ({type(value).__name__})")


def plain(value: Any, place: str, depth: int = 0) -> Any:
    """A copy that can be sent: dicts with keys of text, lists, text, numbers, booleans and None.

    Raises:
        LeatError: `invalid_argument` for anything else. The message names the item, such as `args['a']`.
    """
    if depth > DEPTH_MAX:
        raise LeatError(
            "invalid_argument",
            f"{place:.80}… nests more than {DEPTH_MAX} deep: give a flatter value, or remove the reference of a dict or list to itself",
        )
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, (bool, float)) or _is_text(value):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    if isinstance(value, Mapping) and "__proto__" in value:
        raise LeatError("invalid_argument", f'{place} has the key "__proto__", which no message may have: rename it')
    if isinstance(value, Mapping) and all(_is_text(key) for key in value):
        return {key: plain(item, f"{place}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise LeatError(
        "invalid_argument",
        f"{place} is {value!r:.200} ({type(value).__name__}), which cannot be sent to a pipeline: give dicts with keys of "
        "text, lists, text without lone surrogates, numbers of at most 64 bits, booleans and None, such as array.tolist()",
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and _SURROGATES.search(value) is None
