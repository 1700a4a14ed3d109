/**
 * Creates the Python environment of the peers below `.cache/peers/`. If a package cannot be installed
 * or imported, its peer is left out, and the reason is recorded.
 */
import type { Peer } from "./cases.ts";

/** A peer, or Leat's side in Python. */
export type Needed = Peer | "leat";

/** The pinned packages of each side, and the imports and calls that must work. */
const PACKAGES: Readonly<Record<Needed, { readonly install: readonly string[]; imports: string }>> =
  {
    leat: { install: ["deno==2.9.8", "msgpack==1.2.4"], imports: "deno, msgpack, torch" },
    tensorflow: { install: ["tensorflow-cpu==2.21.0"], imports: "tensorflow" },
    torch: { install: ["torch==2.15.0", "torchvision==0.29.2"], imports: "torch, torchvision" },
    grain: { install: ["grain==0.2.18"], imports: "grain" },
    // The call is needed because SPDL loads FFmpeg's libraries only when it is first used.
    spdl: {
      install: ["spdl==0.8.0", "spdl-io==0.8.0"],
      imports: "torch, spdl.io; spdl.io.demux_config()",
    },
  };

/** How the results call a package, where its own name misleads. */
const PACKAGE_NAMES: Readonly<Record<string, string>> = { deno: "Deno of Leat's side in Python" };

/** The environment: its interpreter, and the peers that run in it. */
export interface Environment {
  readonly python: string;
  readonly available: ReadonlySet<Needed>;
  /** Why a side was left out. */
  readonly missing: ReadonlyMap<Needed, string>;
  /** The versions of the available sides' packages. */
  readonly versions: Readonly<Record<string, string>>;
}

/**
 * Returns a program in Python that fails unless the pinned packages in its arguments are installed and
 * the imports work.
 */
export function checkOf(imports: string): string {
  return `import sys
from importlib.metadata import version
for pin in sys.argv[1:]:
    name, pinned = pin.split("==")
    found = version(name).split("+")[0]
    if found != pinned:
        sys.exit(f"{name} is {found}, not {pinned}")
import ${imports}`;
}

/**
 * Creates the environment if it does not exist, and installs the packages of `wanted` that are missing
 * or have another version.
 */
export async function openEnvironment(
  folder: string,
  wanted: ReadonlySet<Needed>,
  onProgress: (line: string) => void,
): Promise<Environment> {
  const python = `${folder}/bin/python`;
  const available = new Set<Needed>();
  const missing = new Map<Needed, string>();
  const created = await exists(python)
    ? { ok: true, text: "" }
    : await output("python3", ["-m", "venv", folder]);
  for (const peer of wanted) {
    const { install, imports } = PACKAGES[peer];
    const check = ["-c", checkOf(imports), ...install];
    if (!created.ok) missing.set(peer, `no environment: ${created.text}`);
    else if ((await output(python, check)).ok) available.add(peer);
    else {
      onProgress(`installing ${install.join(" ")} …`);
      const pip = await output(python, ["-m", "pip", "install", "--quiet", ...install]);
      const imported = await output(python, check);
      if (pip.ok && imported.ok) available.add(peer);
      else missing.set(peer, lastLine(pip.ok ? imported.text : pip.text));
    }
  }
  return { python, available, missing, versions: versionsOf(available) };
}

/** Returns the versions of the packages of some sides, by name. */
export function versionsOf(sides: ReadonlySet<Needed>): Record<string, string> {
  const pins = [...sides].flatMap((side) => PACKAGES[side].install).map((pin) => pin.split("=="));
  return Object.fromEntries(pins.map(([name, version]) => [PACKAGE_NAMES[name!] ?? name, version]));
}

async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

async function output(command: string, args: string[]): Promise<{ ok: boolean; text: string }> {
  try {
    const { success, stderr } = await new Deno.Command(command, { args }).output();
    return { ok: success, text: new TextDecoder().decode(stderr) };
  } catch (error) {
    return { ok: false, text: String(error) };
  }
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
