/** CRC-32C with the processor's own instructions: the native addon of `@node-rs/crc32`. */

import { createRequire } from "node:module";
import type { Crc32c } from "../../data/formats/tfrecord/crc32c.ts";

/** Parts of the names of the addon's packages. */
const PROCESSORS: Readonly<Record<string, string>> = { x86_64: "x64", aarch64: "arm64" };
const SYSTEMS: Readonly<Record<string, string>> = { darwin: "darwin", windows: "win32" };

/**
 * Never called. It exists because Deno downloads a package only if some module imports it. A call would
 * look for the C library, in files that this program may have no permission to read.
 */
export const crc32cPackage = () => import("@node-rs/crc32");

/**
 * Loads the addon. Returns `undefined` if there is none for this machine, or if the program has no
 * `ffi` permission for it. Never prompts for the permission.
 */
export function loadCrc32cAddon(): Crc32c | undefined {
  try {
    const require = createRequire(import.meta.resolve("@node-rs/crc32"));
    const path = require.resolve(addonName());
    const { state } = Deno.permissions.querySync({ name: "ffi", path });
    return state === "granted" ? (require(path) as { crc32c: Crc32c }).crc32c : undefined;
  } catch {
    return undefined;
  }
}

function addonName(): string {
  const { os, arch, target } = Deno.build;
  const name = `@node-rs/crc32-${SYSTEMS[os] ?? os}-${PROCESSORS[arch] ?? arch}`;
  if (os === "windows") return `${name}-msvc`;
  if (os === "darwin") return name;
  return `${name}-${target.endsWith("musl") ? "musl" : "gnu"}`;
}
