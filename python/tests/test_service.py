"""Reading from a cluster: a dispatcher and two workers, started with the command line of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator

import leat
import pytest
from conftest import PIPELINES, SOURCES, until



def start(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], str]:
    """A program of the cluster, and its address."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "leat", *arguments, "--port", "0"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    assert program.stdout is not None
    for line in program.stdout:
        if found := re.search(rb"ws://\S+:\d+", line):
            # Nobody reads the rest, and a full pipe would stop it.
            threading.Thread(target=program.stdout.read, daemon=True).start()
            return program, found.group().decode()
    raise AssertionError(f"{arguments} did not start")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    dispatcher, address = start(folder, "dispatcher")
    worker = ["worker", "--dispatcher", address, "--no-sandbox", "--heartbeat-ms", "200"]
    programs = [dispatcher, *(start(folder, *worker)[0] for _ in range(2))]
    yield address
    for program in programs:
        program.kill()
        program.wait()


def loader(service: str, mode: str, **options: Any) -> leat.Loader:
    return leat.load(PIPELINES, export="numbers", args={"count": 400}, seed=2, service=service, mode=mode, **options)


def numbers(batches: Any) -> list[float]:
    return [x for batch in batches for x in batch["x"].tolist()]


def test_dynamic_gives_every_element_once(service: str) -> None:
    assert sorted(numbers(loader(service, "DYNAMIC"))) == list(range(400))


def test_deterministic_continues_from_a_state_after_any_batch(service: str) -> None:
    whole = numbers(loader(service, "DETERMINISTIC"))
    assert sorted(whole) == list(range(400))
    reader = loader(service, "DETERMINISTIC")
    batches = iter(reader)
    for _ in range(33):
        next(batches)
    state = reader.state_dict()
    assert len(str(state)) < 4_000
    reader.close()
    other = loader(service, "DETERMINISTIC")
    other.load_state_dict(state)
    assert numbers(other) == whole[33 * 4 :]


def test_consumers_of_a_job_divide_a_deterministic_stream(service: str) -> None:
    whole = list(loader(service, "DETERMINISTIC"))
    readers = [iter(loader(service, "DETERMINISTIC", job="divided", consumer=(i, 2))) for i in range(2)]
    for i, batch in enumerate(whole):
        assert next(readers[i % 2])["x"].tolist() == batch["x"].tolist()


def test_consumers_without_a_mode_read_in_rounds(service: str) -> None:
    both = [
        leat.load(PIPELINES, export="endless", service=service, job="rounds", consumer=(i, 2)) for i in range(2)
    ]  # fmt: skip
    readers = [iter(both[0]), iter(both[1])]
    for _ in range(5):
        first, second = next(readers[0]), next(readers[1])
        # Neighbours of one worker.
        assert second == (first + 1) % 10


def test_sharing_gives_each_trainer_the_stream(service: str) -> None:
    options = {"sharing": {"trainerId": "a"}}
    reader = leat.load(PIPELINES, export="endless", service=service, job="shared", options=options)
    assert all(0 <= x < 10 for x, _ in zip(reader, range(20)))


def test_a_mode_that_there_is_not_is_an_error() -> None:
    with pytest.raises(leat.LeatError, match="processingMode"):
        leat.load(PIPELINES, export="endless", service="ws://127.0.0.1:1", mode="NOSUCH")


def test_explain_names_the_operators(service: str) -> None:
    reader = loader(service, "DYNAMIC")
    batches = iter(reader)
    next(batches)
    until(lambda: "distribute" in reader.explain())
