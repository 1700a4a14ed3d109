"""What the package carries: Leat's sources, and a configuration of the packages that these need."""

from __future__ import annotations

import json
import subprocess

import pytest
from leat._deno import deno, environment, sources


def test_the_lock_file_is_that_of_the_configuration() -> None:
    top = sources()
    command = [deno(), "run", "--quiet", "--frozen", f"--config={top / 'deno.json'}", "-P=server", str(top / "cli" / "leat.ts"), "--help"]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "dispatcher" in run.stdout


def test_an_installed_package_downloads_nothing_that_only_a_clone_needs() -> None:
    if sources().name != "_sources":
        pytest.skip("this is a clone")
    imports = json.loads((sources() / "deno.json").read_text())["imports"]
    assert "msgpackr" in imports and "@std/cli" in imports
    assert not [name for name in imports if name.startswith("@tensorflow/") or name in ("fast-check", "wabt")]
