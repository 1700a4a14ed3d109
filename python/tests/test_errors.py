"""Errors of others: of functions that are not this program's, and of a service."""

from __future__ import annotations

from typing import Any

import pytest
from leat._errors import from_wire

STEERING = "a\x1b[2J\x9b\r\n\u2028\u202e\u061c\u200e\u200f\u200b\ufeff\xadERROR forged"


@pytest.mark.parametrize("places", [[f"file:///x{STEERING}", f"file:///%1b%0aforged", 7, {}], "text", None, 5])
@pytest.mark.parametrize("cause", [None, {"code": "internal", "message": STEERING}, STEERING, 7])
def test_no_error_of_others_steers_a_terminal_or_begins_a_line(places: Any, cause: Any) -> None:
    error = from_wire({"code": STEERING, "message": STEERING, "details": {"places": places}, "cause": cause})
    for text in (str(error), error.message, error.code, *error.places):
        assert all(char.isprintable() or char == "\n" for char in text), repr(text)
        assert all(line.startswith(" ") for line in text.split("\n")[1:]), repr(text)


@pytest.mark.parametrize("error", [None, 7, "text", [], {}, {"details": [1]}, {"details": 3, "message": {}, "code": []}])
def test_a_malformed_error_is_an_error_too(error: Any) -> None:
    assert str(from_wire(error))
