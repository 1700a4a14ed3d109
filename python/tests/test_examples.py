"""The examples: they learn, and continue where they were killed."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SOURCES

EXAMPLES = Path(__file__).parents[1] / "examples"
README = Path(__file__).parents[2] / "README.md"


# Runs a program that is killed as soon as it has printed a line that begins so: from outside it could print more.
KILLED = """
import builtins, os, runpy, signal, sys
line, sys.argv = sys.argv[1], sys.argv[2:]
show = print

def shown(text, **options):
    show(text, **options)
    if text.startswith(line):
        os.kill(os.getpid(), signal.SIGKILL)

builtins.print = shown
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(example: str, *options: str, by: tuple[str, ...] = (), kill_at: str | None = None) -> dict[str, float]:
    """The losses that the example prints, by step; it is killed after a step."""
    killing = () if kill_at is None else ("-c", KILLED, f"{kill_at}:")
    command = [sys.executable, *by, *killing, str(EXAMPLES / example), *options]
    losses = {}
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout is not None
        for line in program.stdout:
            step, _, rest = line.partition(": loss ")
            losses[step] = float(rest.split(",")[0])
    assert program.returncode == (0 if kill_at is None else -signal.SIGKILL)
    return losses


def test_the_program_of_the_readme_runs_as_it_stands_there(tmp_path: Path) -> None:
    blocks = re.search(r"Or train in Python.*?```ts\n(.*?)```.*?```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks is not None
    for name, text in zip(("pipeline.ts", "first.py"), blocks.groups()):
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    printed = subprocess.run([sys.executable, "first.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout == "1000 rows\n"


@pytest.mark.parametrize(
    ("package", "example", "checkpoint"),
    [("torch", "train_images.py", "run.pt"), ("jax", "train_jax.py", "run.npz")],
)
def test_an_example_learns_and_continues_with_the_same_losses_after_sigkill(
    package: str, example: str, checkpoint: str, tmp_path: Path
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    whole = run(example, "--steps", "150")
    assert whole["step 10"] > 0.8 and whole["step 150"] < 0.5
    path = str(tmp_path / checkpoint)
    first = run(example, "--steps", "150", "--checkpoint", path, kill_at="step 140")
    rest = run(example, "--steps", "150", "--checkpoint", path)
    assert "step 10" not in rest and "step 150" in rest
    assert {**first, **rest} == whole


def test_two_ranks_of_torchrun_learn_together_and_continue_with_the_same_losses(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    losses = run("train_images.py", "--steps", "60", by=launcher)
    # Only the first one prints, and both need the same number of batches.
    assert len(losses) == 6 and losses["step 60"] < 0.8 * losses["step 10"]
    path = str(tmp_path / "run.pt")
    first, rest = (run("train_images.py", "--steps", steps, "--checkpoint", path, by=launcher) for steps in ("30", "60"))
    assert len(first) == len(rest) == 3 and {**first, **rest} == losses


def test_the_bench_for_an_accelerator_runs_in_its_tiny_form() -> None:
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    bench = EXAMPLES.with_name("bench") / "resnet.py"
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    run = subprocess.run([sys.executable, str(bench), "--tiny"], env=environment, capture_output=True, text=True, check=True)
    assert [row.split("  ")[0] for row in run.stdout.splitlines()[1:]] == ["DataLoader", "Leat", "Leat, offloading"]
    # The decision, which `loader.explain()` gives.
    assert "Workers prepared " in run.stderr and "local (Lthp, Pcycle)" in run.stderr
