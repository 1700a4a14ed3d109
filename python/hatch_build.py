"""Puts Leat's TypeScript sources into the wheel and into the source distribution, and the packages that these need
into their configuration: Deno downloads all that a configuration names."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("mod.ts", "LICENSE")
# What the helper and the command line run. A clone may have other folders with modules, such as a virtual environment.
FOLDERS = ("actors", "cli", "core", "data", "offload", "platform", "server", "sim", "transport")


class SourcesHook(BuildHookInterface[Any]):
    """Includes the sources of the clone that this folder belongs to, or of the source distribution."""

    _made: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        packed = root / "leat-sources"
        sources = packed if packed.exists() else root.parent
        target = "leat-sources" if self.target_name == "sdist" else "leat/_sources"
        names = [*FILES, *FOLDERS]
        included = build_data["force_include"]
        for name in names:
            included[str(sources / name)] = f"{target}/{name}"
        self._made = Path(tempfile.mkdtemp())
        for path in write_configuration(sources, [sources / name for name in names], self._made):
            included[str(path)] = f"{target}/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._made is not None:
            shutil.rmtree(self._made)


def write_configuration(sources: Path, included: list[Path], folder: Path) -> list[Path]:
    """Writes deno.json and deno.lock without the packages that no included module imports."""
    config = json.loads((sources / "deno.json").read_text("utf-8"))
    lock = json.loads((sources / "deno.lock").read_text("utf-8"))
    modules = [module for path in included for module in ([path] if path.is_file() else path.rglob("*.ts"))]
    imported = set(re.findall(r'"([@\w][\w@./-]*)"', "\n".join(module.read_text("utf-8") for module in modules)))
    config["imports"] = {
        name: url
        for name, url in config["imports"].items()
        if any(at == name or at.startswith(f"{name}/") for at in imported)
    }
    made = {"deno.json": config, "deno.lock": prune(lock, set(config["imports"].values()))}
    for name, content in made.items():
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return [folder / name for name in made]


def prune(lock: dict[str, Any], urls: set[str]) -> dict[str, Any]:
    """The lock file, version 5, of the configuration that imports only these."""
    asked = [at for at in lock["workspace"]["dependencies"] if any(matches(url, at) for url in urls)]
    specifiers = {at: version for at, version in lock["specifiers"].items() if at in asked}
    npm = lock["npm"]

    def resolve(dependency: str) -> str:
        # A package of which there is one version is named without it.
        return dependency if dependency in npm else next(key for key in npm if name_of(key) == dependency)

    kept: dict[str, Any] = {}
    waiting = [f"{name_of(at.removeprefix('npm:'))}@{version}" for at, version in specifiers.items()]
    while waiting:
        key = waiting.pop()
        if key in kept:
            continue
        kept[key] = dict(npm[key])
        for kind in ("dependencies", "optionalDependencies"):
            if kind in kept[key]:
                kept[key][kind] = [resolve(at) for at in kept[key][kind]]
                waiting.extend(kept[key][kind])
    versions: dict[str, int] = {}
    for key in kept:
        versions[name_of(key)] = versions.get(name_of(key), 0) + 1
    for entry in kept.values():
        for kind in ("dependencies", "optionalDependencies"):
            if kind in entry:
                entry[kind] = [name_of(key) if versions[name_of(key)] == 1 else key for key in entry[kind]]
    npm = {key: kept[key] for key in npm if key in kept}
    return {**lock, "specifiers": specifiers, "npm": npm, "workspace": {"dependencies": asked}}


def matches(url: str, asked: str) -> bool:
    """Whether a dependency of the lock file, such as `npm:comlink@4.4.2`, is what an import names: it may add a file,
    and versions may be written in another way."""
    return re.split(r"(?<=.)@(?=[\d^~])", url)[0] == re.split(r"(?<=.)@(?=[\d^~])", asked)[0]


def name_of(key: str) -> str:
    """`@scope/name` of `@scope/name@1.2.3`."""
    return re.split(r"(?<=.)@", key, maxsplit=1)[0]
