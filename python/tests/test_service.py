"""Reading from a cluster: a dispatcher and two workers, started with the command line of the package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any, Iterator

import leat
import pytest
from conftest import PIPELINES, SOURCES, until
from leat._deno import _config_flags, deno



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


@pytest.mark.parametrize("export", ["distributed", "offloaded"])
def test_close_releases_a_client_that_the_module_of_the_pipeline_has_made(export: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("cluster")
    # Longer than the test waits.
    patience = ["--client-grace-ms", "3600000", "--client-timeout-ms", "3600000"]
    dispatcher, address = start(folder, "dispatcher", *patience)
    worker, _ = start(folder, "worker", "--dispatcher", address, "--no-sandbox", "--heartbeat-ms", "200")

    def clients() -> list[Any]:
        with urllib.request.urlopen(f"{address.replace('ws', 'http', 1)}/state") as state:
            return [iteration["clients"] for job in json.load(state)["jobs"] for iteration in job["iterations"] if iteration["clients"]]

    try:
        with leat.load(PIPELINES, export=export, args={"service": address}, allow=["net"]) as reader:
            batches = iter(reader)
            until(lambda: next(batches) is not None and clients() != [])
        until(lambda: clients() == [])
    finally:
        for program in (worker, dispatcher):
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


def test_a_state_of_other_splits_is_refused_and_stays_valid(service: str, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{i}\n" for i in range(40)))

    def lines() -> leat.Loader:
        arguments = {"files": f"{tmp_path}/*.txt"}
        return leat.load(PIPELINES, export="lines", args=arguments, seed=1, service=service, mode="DETERMINISTIC")

    whole = [batch["line"] for batch in lines()]
    reader = lines()
    batches = iter(reader)
    assert [next(batches)["line"] for _ in range(30)] == whole[:30]
    state = reader.state_dict()
    reader.close()
    (tmp_path / "c.txt").write_text("c\n")
    other = lines()
    other.load_state_dict(state)
    with pytest.raises(leat.LeatError, match="other splits"):
        list(other)
    (tmp_path / "c.txt").unlink()
    other.load_state_dict(other.state_dict())
    assert [batch["line"] for batch in other] == whole[30:]


def test_consumers_of_a_job_divide_a_deterministic_stream(service: str) -> None:
    whole = list(loader(service, "DETERMINISTIC"))
    readers = [iter(loader(service, "DETERMINISTIC", job="divided", consumer=(i, 2))) for i in range(2)]
    for i, batch in enumerate(whole):
        assert next(readers[i % 2])["x"].tolist() == batch["x"].tolist()


def test_workers_of_data_loader_divide_a_deterministic_stream_in_its_order(service: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import leat.torch

    dataset = leat.torch.IterableDataset(loader(service, "DETERMINISTIC", job="workers"))
    spawning = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert numbers(spawning) == numbers(loader(service, "DETERMINISTIC"))
    with pytest.raises(leat.LeatError, match="give a job"):
        loader(service, "DETERMINISTIC")._for_worker(0, 2, 0)


def test_what_a_function_reads_from_a_service_in_no_fixed_order_is_refused_where_the_order_counts(service: str) -> None:
    def read(free: bool, consumer: tuple[int, int] | None) -> list[int]:
        with leat.load(PIPELINES, export="opened", args={"service": service, "free": free}, consumer=consumer, allow=["net"]) as loader:
            return sorted(loader)

    for free, consumer in [(False, None), (False, (1, 2)), (True, (1, 2))]:
        with pytest.raises(leat.LeatError, match="flatMap: .*reads from a service .*withOptions") as raised:
            read(free, consumer)
        assert raised.value.code == "failed_precondition"
    assert read(True, None) == list(range(20))


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


REGISTER = """
import { Dataset, registerDataset } from "@leat/leat";
import { failing } from %r;
const registered = [Dataset.range(40).batch(3).map((x) => ({ x })), failing];
for (const dataset of registered) console.log(await registerDataset(%r, dataset));
"""


def test_from_id_reads_what_another_program_has_registered(service: str, tmp_path: Path) -> None:
    script = tmp_path / "register.ts"
    script.write_text(REGISTER % (str(PIPELINES), service))
    command = [deno(), "run", *_config_flags(), "--allow-net", "--allow-read", str(script)]
    numbered, failing = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert sorted(numbers(leat.from_id(numbered, service=service, mode="DYNAMIC"))) == list(range(40))
    with pytest.raises(leat.LeatError, match="no 2 today"):
        list(leat.from_id(failing, service=service))
    # Batches over the ends of splits are made at the reader, and the function is another program's.
    with pytest.raises(leat.LeatError, match=r'allow=\["run=deno"\]') as raised:
        list(leat.from_id(numbered, service=service, mode="DETERMINISTIC"))
    assert raised.value.code == "permission_denied"
    confined = numbers(leat.from_id(numbered, service=service, mode="DETERMINISTIC", allow=["run=deno"]))
    trusted = numbers(leat.from_id(numbered, service=service, mode="DETERMINISTIC", options={"trustPipeline": True}))
    assert sorted(confined) == sorted(trusted) == list(range(40))
    with pytest.raises(leat.LeatError) as raised:
        next(iter(leat.from_id("0123456789abcdef", service=service)))
    assert raised.value.code == "not_found"


@pytest.mark.parametrize(("dataset", "service"), [(None, "ws://127.0.0.1:1"), ("images", None)])
def test_from_id_refuses_none_and_names_both_arguments(dataset: Any, service: Any) -> None:
    with pytest.raises(leat.LeatError, match=f"dataset_id and service are texts, not {dataset!r} and {service!r}") as raised:
        leat.from_id(dataset, service=service)
    assert raised.value.code == "invalid_argument"


def test_a_mode_that_there_is_not_is_an_error() -> None:
    with pytest.raises(leat.LeatError, match="processingMode"):
        leat.load(PIPELINES, export="endless", service="ws://127.0.0.1:1", mode="NOSUCH")


def test_explain_names_the_operators(service: str) -> None:
    reader = loader(service, "DYNAMIC")
    batches = iter(reader)
    next(batches)
    until(lambda: "distribute" in reader.explain())
