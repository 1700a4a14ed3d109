"""The error class, with the codes that Leat has in TypeScript."""

from __future__ import annotations

import re
from typing import Any, Mapping

# How error messages of Deno and of Leat in TypeScript name a missing permission.
_DENO_FLAG = re.compile(r"run (?:it|again) with (?:the )?--allow-([a-z]+)(=[^\s;]*[^\s;.,])?(?: flag)?")


class LeatError(Exception):
    """An error with a canonical code.

    Attributes:
        code: One of gRPC's codes in snake case: `invalid_argument`, `not_found`, `unavailable`, …
        message: What happened, with the value, the place and the remedy.
        details: Plain data for programs.
        places: Lines of the pipeline's files that the error comes from, `path:line:column`, the
            innermost call first. Empty where it comes from elsewhere, as from a worker.
    """

    def __init__(
        self, code: str, message: str = "", details: Mapping[str, Any] | None = None, cause: LeatError | None = None
    ) -> None:
        if not message:
            # PyTorch constructs a worker's error again, with its text as the only argument.
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
    """A place with a path instead of a file URL, which Deno writes in stacks without escapes."""
    return _shown(place.removeprefix("file://")) if place.startswith("file:///") else place


# Control characters, line ends, marks that change the direction of text, and characters without width.
_STEERING = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def _shown(text: str) -> str:
    """The text on one line, with escapes for characters that a terminal or a log would interpret."""
    return _STEERING.sub(lambda found: repr(found.group())[1:-1], text)


def _shown_lines(text: str) -> str:
    """As `_shown`, but keeps lines. Each after the first is indented, so that it cannot look like a log line."""
    first, *lines = re.split("\r?\n", text)
    return "\n".join([_shown(first), *(_shown(line if line == "" or line.startswith("    ") else f"    {line}") for line in lines)])


def from_wire(error: Any) -> LeatError:
    """The error in a message of the helper. Its text is untrusted: it may come from a foreign function."""
    if not isinstance(error, dict):
        return LeatError("unknown", _shown_lines(str(error)))
    cause, details = error.get("cause"), error.get("details")
    if isinstance(details, dict) and "places" in details:
        places = details["places"] if isinstance(details["places"], list) else []
        details = {**details, "places": [_shown(place) for place in places if isinstance(place, str)]}
    return LeatError(
        _shown(str(error.get("code", "unknown"))),
        _DENO_FLAG.sub(r'give leat.load allow=["\1\2"]', _shown_lines(str(error.get("message", "")))),
        details if isinstance(details, dict) else None,
        None if cause is None else from_wire(cause),
    )
