"""Positions: any one continues the same stream, in another process too."""

from __future__ import annotations

import base64
import json
from typing import Any, Iterator

import leat
import numpy as np
import pytest
from conftest import PIPELINES, until


def plain(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    return batch.tolist() if isinstance(batch, np.ndarray) else batch


def numbers(count: int = 1_000, seed: int | None = 5) -> leat.Loader:
    return leat.load(PIPELINES, export="numbers", args={"count": count}, seed=seed)


def test_state_dict_continues_the_same_stream_after_any_batch() -> None:
    loader, states, batches = numbers(), [], []
    states.append(loader.state_dict())
    for batch in loader:
        batches.append(plain(batch))
        states.append(loader.state_dict())
    assert len(batches) == 250
    other = numbers()
    for had in (0, 1, 7, 100, 249):
        stored = json.dumps(states[had])
        assert len(stored) < 4_000
        other.load_state_dict(json.loads(stored))
        assert [plain(batch) for batch in other] == batches[had:]


def test_a_stream_without_a_seed_is_continued_too() -> None:
    loader = numbers(seed=None)
    batches = iter(loader)
    first = [plain(next(batches)) for _ in range(3)]
    state = loader.state_dict()
    rest = [plain(batch) for batch in batches]
    other = numbers(seed=None)
    other.load_state_dict(state)
    assert [plain(batch) for batch in other] == rest
    assert first[0] != plain(next(iter(numbers(seed=None))))


def read_until_saved_with_batches(loader: leat.Loader) -> tuple[Iterator[Any], dict[str, Any]]:
    """At first there is little on its way, and a position to skip from."""
    batches = iter(loader)
    state: dict[str, Any] = {}

    def is_saved_with_batches() -> bool:
        next(batches)
        state.update(loader.state_dict())
        return "pending" in state

    until(is_saved_with_batches)
    return batches, state


def test_a_pipeline_that_holds_much_is_continued_with_what_is_on_its_way() -> None:
    loader = leat.load(PIPELINES, export="held", seed=1)
    batches, _ = read_until_saved_with_batches(loader)
    state = loader.state_dict()
    assert "skip" not in state
    rest = [plain(next(batches)) for _ in range(40)]
    other = leat.load(PIPELINES, export="held", seed=1)
    other.load_state_dict(json.loads(json.dumps(state)))
    again = iter(other)
    assert [plain(next(again)) for _ in range(2)] == rest[:2]
    # And once more, in the midst of what was restored.
    other.load_state_dict(other.state_dict())
    again = iter(other)
    assert [plain(next(again)) for _ in range(38)] == rest[2:]


def test_each_iter_is_an_epoch_and_a_state_of_the_end_begins_the_next() -> None:
    loader = numbers(count=20)
    epochs = [[plain(batch) for batch in loader]]
    state = loader.state_dict()
    epochs += [[plain(batch) for batch in loader] for _ in range(2)]
    assert epochs[0] != epochs[1] != epochs[2] and all(len(epoch) == 5 for epoch in epochs)
    other = numbers(count=20)
    other.load_state_dict(state)
    assert [plain(batch) for batch in other] == epochs[1]
    assert [plain(batch) for batch in other] == epochs[2]


def test_load_state_dict_refuses_what_is_no_state() -> None:
    loader = numbers(count=4)
    with pytest.raises(leat.LeatError, match="not one that state_dict"):
        loader.load_state_dict({"step": 3})
    state = loader.state_dict()
    next(iter(loader))
    other = leat.load(PIPELINES, export="failing")
    other.load_state_dict(loader.state_dict())
    with pytest.raises(leat.LeatError) as raised:
        iter(other)
    assert raised.value.code == "failed_precondition" and state == {"leat": 1}


def as_text(message: bytes) -> str:
    return base64.b64encode(message).decode()


CHANGES: tuple[dict[str, Any], ...] = (
    *({"skip": skip} for skip in (-1, 2**70, float("inf"), "1e3")),
    *({"dropped": dropped} for dropped in (10**9, -3)),
    *({"state": state} for state in ("!", as_text(b"\x91" * 1_000_000))),
    *({"pending": pending} for pending in ("abcd", {"a": 1})),
    *(
        {"pending": [as_text(message)]}
        for message in (b"", b"\xce\xff\xff\xff\xff\x80", b"\xce\x00\x00\x00\x01\x80", b"\xce\x00\x00\x00\x02\x80\x80")
    ),
)


def test_no_forged_or_damaged_state_is_taken_or_spoils_the_loader() -> None:
    loader = leat.load(PIPELINES, export="held", seed=1)
    batches, state = read_until_saved_with_batches(loader)
    forged = {key: value for key, value in state.items() if key != "crc32"}
    for wrong in ({**known, **change} for known in (state, forged) for change in CHANGES):
        with pytest.raises(leat.LeatError) as error:
            loader.load_state_dict(wrong)
            next(iter(loader))
        assert error.value.code in ("invalid_argument", "data_loss")
    message = bytearray(base64.b64decode(state["pending"][0]))
    message[-1] ^= 1
    with pytest.raises(leat.LeatError, match="damaged"):
        loader.load_state_dict({**state, "pending": [as_text(bytes(message)), *state["pending"][1:]]})
    for known in (state, forged):
        loader.load_state_dict(known)
        next(iter(loader))
