"""Puts Leat's TypeScript sources into the wheel and into the source distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("mod.ts", "deno.json", "deno.lock", "LICENSE")
# Programs for a clone. All other folders of modules are what the helper and the command line run.
LEFT_OUT = ("bench", "examples", "python", "tests", "tools")


class SourcesHook(BuildHookInterface[Any]):
    """Includes the sources of the clone that this folder belongs to, or of the source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        packed = root / "leat-sources"
        sources = packed if packed.exists() else root.parent
        target = "leat-sources" if self.target_name == "sdist" else "leat/_sources"
        folders = [path.name for path in sources.iterdir() if path.is_dir() and any(path.rglob("*.ts"))]
        for name in (*FILES, *(name for name in folders if name not in LEFT_OUT and not name.startswith("."))):
            build_data["force_include"][str(sources / name)] = f"{target}/{name}"
