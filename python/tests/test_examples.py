"""The examples: they learn, and continue where they were killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import leat
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

SOURCES = str(Path(leat.__file__).parents[1])
TRAIN_IMAGES = Path(__file__).parents[1] / "examples" / "train_images.py"


def run(*options: str, kill_at: str | None = None) -> dict[str, float]:
    """The losses that the example prints, by step; it is killed after a step."""
    command = [sys.executable, str(TRAIN_IMAGES), *options]
    losses = {}
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout is not None
        for line in program.stdout:
            step, _, rest = line.partition(": loss ")
            losses[step] = float(rest.split(",")[0])
            if step == kill_at:
                program.kill()
    assert program.returncode == 0 or kill_at is not None
    return losses


def test_train_images_learns_and_continues_with_the_same_losses_after_sigkill(tmp_path: Path) -> None:
    whole = run("--steps", "150")
    assert whole["step 10"] > 0.8 and whole["step 150"] < 0.5
    checkpoint = str(tmp_path / "run.pt")
    first = run("--steps", "150", "--checkpoint", checkpoint, kill_at="step 140")
    rest = run("--steps", "150", "--checkpoint", checkpoint)
    assert "step 10" not in rest and "step 150" in rest
    assert {**first, **rest} == whole
