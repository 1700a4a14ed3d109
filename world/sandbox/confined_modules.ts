/**
 * Which modules a confined thread imports. Deno asks its permissions for files and for remote
 * modules; packages and most built-in modules it gives to everybody: the former are downloaded with
 * the process's own access to the network, the latter reach the whole process.
 *
 * @module
 */
import { Module, registerHooks } from "node:module";
import { LeatError } from "../../core/error.ts";
import type { Folders } from "./folders.ts";
import { setHas, slice, startsWith } from "./pristine.ts";
import { shutOff } from "./shut_off.ts";

/** Built-in modules that only compute. */
const NODE_MODULES: ReadonlySet<string> = new Set([
  ...["node:buffer", "node:crypto", "node:path", "node:path/posix", "node:querystring"],
  ...["node:string_decoder", "node:url", "node:zlib"],
]);

/** What nothing can be loaded from, followed by the reason. */
const REFUSED = "leat-refused:";

const { encodeURIComponent, decodeURIComponent } = globalThis;

interface Resolved {
  readonly url: string;
  readonly shortCircuit?: boolean;
}

/** The part of the hooks' signature that is used; Deno's types do not have it yet. */
type RegisterHooks = (hooks: {
  resolve(
    specifier: string,
    context: unknown,
    next: (specifier: string, context: unknown) => Resolved,
  ): Resolved;
  load(url: string, context: unknown, next: (url: string, context: unknown) => unknown): unknown;
}) => unknown;

/**
 * From here on imports are checked; what was imported before stays.
 *
 * What is refused is resolved to what cannot be loaded: what a hook throws while it resolves, Deno
 * ignores where the module is one that it has loaded before.
 *
 * @param own URLs of modules that the program itself imports later.
 */
export function confineModules(readable: Folders, own: ReadonlySet<string>): void {
  const register = registerHooks as unknown as RegisterHooks;
  shutCommonJs();
  register({
    resolve(specifier, context, next) {
      // Before it is resolved: that alone would download a package.
      if (isPackage(specifier)) return refused(refusalOf(specifier));
      const resolved = next(specifier, context);
      const { url } = resolved;
      if (setHas(own, url) || isHarmless(url)) return resolved;
      if (!startsWith(url, "file:")) return refused(refusalOf(url));
      try {
        readable.required(url);
        return resolved;
      } catch (error) {
        return refused(LeatError.from(error).message);
      }
    },
    load(url, context, next) {
      if (!startsWith(url, REFUSED)) return next(url, context);
      const reason = decodeURIComponent(slice(url, REFUSED.length, url.length));
      throw new LeatError("permission_denied", reason);
    },
  });
}

/** CommonJS modules are handed the loader itself, with which they could let themselves import anything. */
function shutCommonJs(): void {
  for (const holder of [Module, Module.prototype] as object[]) {
    for (const name of Object.getOwnPropertyNames(holder)) {
      const { value, writable } = Object.getOwnPropertyDescriptor(holder, name)!;
      if (typeof value !== "function" || !writable || value === Module) continue;
      Reflect.set(holder, name, shutOff("CommonJS"));
    }
    Object.freeze(holder);
  }
}

function isPackage(specifier: string): boolean {
  return startsWith(specifier, "npm:") || startsWith(specifier, "jsr:");
}

/** For remote modules Deno asks for the permission. */
function isHarmless(url: string): boolean {
  return startsWith(url, "https:") || startsWith(url, "http:") || startsWith(url, "data:") ||
    setHas(NODE_MODULES, url);
}

function refused(reason: string): Resolved {
  return { url: `${REFUSED}${encodeURIComponent(reason)}`, shortCircuit: true };
}

function refusalOf(what: string): string {
  const why = startsWith(what, "node:")
    ? "it reaches the whole process"
    : "put what is needed of it into the module, with a bundler for instance";
  return `Cannot import ${what} in user functions, whatever a worker grants: ${why}`;
}
