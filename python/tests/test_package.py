"""What the package carries: Leat's sources, and a configuration of the packages that these need."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

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


def test_the_build_hook_packs_leats_folders_and_no_other_of_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("core", "python", "venv/leat/_sources", "videos"):
        (tmp_path / folder).mkdir(parents=True)
    for module in ("mod.ts", "core/a.ts", "venv/leat/_sources/mod.ts"):
        (tmp_path / module).write_text('import "msgpackr";')
    (tmp_path / "videos" / "clip.ts").write_bytes(b"G\xff\xfe")  # MPEG
    for name in ("deno.json", "deno.lock"):
        shutil.copy(sources() / name, tmp_path)
    interface: Any = ModuleType("interface")
    interface.BuildHookInterface = {Any: SimpleNamespace}
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("hatch_build", Path(__file__).parents[1] / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    built = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(built)
    hook, build_data = built.SourcesHook(), dict[str, Any](force_include={})
    hook.root, hook.target_name = str(tmp_path / "python"), "wheel"
    hook.initialize("standard", build_data)
    hook.finalize("standard", build_data, "")
    included = {target.removeprefix("leat/_sources/") for target in build_data["force_include"].values()}
    assert {"mod.ts", "core", "deno.json"} <= included and not {"venv", "videos", "python"} & included
