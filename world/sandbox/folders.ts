/**
 * Folders that a confined thread may use, and links in them that lead elsewhere: Deno grants by the
 * path as it is written, and follows them.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { freezeKinds, slice, startsWith } from "./pristine.ts";

const { realPathSync } = Deno;
const permissionStatus = Deno.permissions.querySync.bind(Deno.permissions);
const OriginalUrl = URL;

/** See the module. */
export class Folders {
  readonly #access: "read" | "write";
  readonly #roots: readonly string[];

  /** @param roots Real paths. */
  constructor(access: "read" | "write", roots: readonly string[]) {
    this.#access = access;
    this.#roots = roots.map((root) => root.endsWith("/") ? root : `${root}/`);
  }

  /**
   * The path to go on with, which nobody changes any more.
   *
   * @throws {LeatError} `permission_denied` where a link leads out of the folders. What Deno itself
   * refuses is let through: it says so better.
   */
  checked(path: string | URL): string {
    const fixed = typeof path === "string" ? path : fileURLToPath(new OriginalUrl(`${path}`));
    return this.#isGranted(fixed) ? this.#withoutLink(fixed) : fixed;
  }

  /** As `checked`, of what Deno would not refuse although it is not granted: a loaded module. */
  required(url: string): void {
    const path = fileURLToPath(new OriginalUrl(url));
    if (!this.#isGranted(path)) throw this.#denied(path);
    this.#withoutLink(path);
  }

  #isGranted(path: string): boolean {
    return permissionStatus({ name: this.#access, path }).state === "granted";
  }

  #withoutLink(path: string): string {
    const real = realPathOf(path);
    if (real === undefined || this.#hold(real)) return path;
    throw this.#denied(real, `, where "${path}" leads by a link`);
  }

  #denied(path: string, why = ""): LeatError {
    const message = `Requires ${this.#access} access to "${path}"${why}`;
    return new LeatError("permission_denied", message);
  }

  #hold(real: string): boolean {
    for (let i = 0; i < this.#roots.length; i++) {
      if (startsWith(`${real}/`, this.#roots[i]!)) return true;
    }
    return false;
  }
}

freezeKinds(Folders.prototype);

/** Where a path leads, or the nearest folder above it that is there; `undefined` where none is granted. */
function realPathOf(path: string): string | undefined {
  for (let end = path.length; end >= 0; end--) {
    if (end < path.length && path[end] !== "/") continue;
    try {
      return realPathSync(end === 0 && path[0] !== "/" ? "." : slice(path, 0, end) || "/");
    } catch {
      // Not there, or not granted.
    }
  }
  return undefined;
}
