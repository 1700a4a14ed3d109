"""Puts Leat's TypeScript sources into the wheel and into the source distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What the helper and the command line run. The simulator is for `leat plan`.
SOURCES = (
    "mod.ts", "deno.json", "deno.lock", "LICENSE", "core", "data", "actors", "transport", "platform", "server",
    "sim", "cli",
)  # fmt: skip


class SourcesHook(BuildHookInterface[Any]):
    """Includes the sources of the clone that this folder belongs to, or of the source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        packed = root / "leat-sources"
        sources = packed if packed.exists() else root.parent
        target = "leat-sources" if self.target_name == "sdist" else "leat/_sources"
        for name in SOURCES:
            build_data["force_include"][str(sources / name)] = f"{target}/{name}"
