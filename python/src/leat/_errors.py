"""The error class, with the codes that Leat has in TypeScript."""

from __future__ import annotations

import re
from typing import Any, Mapping
from urllib.parse import unquote

# What Deno, and Leat in TypeScript, tell a program of Deno.
_DENO_FLAG = re.compile(r"run (?:it|again) with (?:the )?--allow-([a-z]+)(=[^\s;]*[^\s;.,])?(?: flag)?")


class LeatError(Exception):
    """An error with a canonical code.

    Attributes:
        code: One of gRPC's codes in snake case: `invalid_argument`, `not_found`, `unavailable`, …
        message: What happened, with the value, the place and the remedy.
        details: Plain data for programs.
        places: Lines of the pipeline's files that the error comes from, `path:line:column`, the
            innermost call first. Empty where it comes from elsewhere.
    """

    def __init__(
        self, code: str, message: str = "", details: Mapping[str, Any] | None = None, cause: LeatError | None = None
    ) -> None:
        if not message:
            # Made again from its text, as PyTorch does with an error of a worker.
            code, message = "unknown", code
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.places = [_path(place) for place in self.details.get("places", ())]
        if cause is not None:
            self.__cause__ = cause

    def __str__(self) -> str:
        lines = [f"{self.message} ({self.code})"]
        cause = self.__cause__
        while isinstance(cause, LeatError):
            if cause.message not in lines[-1]:
                lines.append(f"  caused by: {cause.message} ({cause.code})")
            cause = cause.__cause__
        return "\n".join([*lines, *(f"  at {place}" for place in self.places)])

    def __reduce__(self) -> tuple[Any, ...]:
        return (LeatError, (self.code, self.message, self.details))


def _path(place: str) -> str:
    """Of a file, its path."""
    return unquote(place.removeprefix("file://")) if place.startswith("file:///") else place


def from_wire(error: Any) -> LeatError:
    """The error in a message of the helper."""
    if not isinstance(error, dict):
        return LeatError("unknown", str(error))
    cause = error.get("cause")
    return LeatError(
        str(error.get("code", "unknown")),
        _DENO_FLAG.sub(r'give leat.load allow=["\1\2"]', str(error.get("message", ""))),
        error.get("details"),
        None if cause is None else from_wire(cause),
    )
