/**
 * Which modules a confined thread imports. Deno asks its permissions for files and for remote
 * modules; packages and most built-in modules it gives to everybody: the former are downloaded with
 * the process's own access to the network, the latter reach the whole process. It asks the
 * registries as soon as a module names a package, before the import itself comes here: so the
 * sources of users' modules are given to it, under names at which it looks for nothing.
 *
 * @module
 */
import { builtinModules, Module, registerHooks } from "node:module";
import { LeatError } from "../../core/error.ts";
import type { Folders } from "./folders.ts";
import { dataText, fileText, sourceOf } from "./module_source.ts";
import { hasOwn, href, setHas, slice, startsWith, startsWithAny } from "./pristine.ts";
import type { RemoteModules } from "./remote_modules.ts";
import { shutOff } from "./shut_off.ts";

/** Built-in modules that only compute. */
const NODE_MODULES: ReadonlySet<string> = new Set([
  ...["node:buffer", "node:crypto", "node:path", "node:path/posix", "node:querystring"],
  ...["node:string_decoder", "node:url", "node:zlib"],
]);
const BUILT_IN: ReadonlySet<string> = new Set(builtinModules);

/** What nothing can be loaded from, followed by the reason. */
const REFUSED = "leat-refused:";

/**
 * Before the URLs of what users import: Deno knows no such scheme, so it looks for nothing there. (What
 * is at a URL that it knows it reads by itself, whatever a hook gives it for that.)
 */
const GIVEN = "leat-";

const { encodeURIComponent, decodeURIComponent, URL: OriginalUrl } = globalThis;

interface Resolved {
  readonly url: string;
  readonly shortCircuit?: boolean;
}

/** The part of the hooks' signature that is used; Deno's types do not have it yet. */
type RegisterHooks = (hooks: {
  resolve(
    specifier: string,
    context: { readonly parentURL?: string },
    next: (specifier: string, context: unknown) => Resolved,
  ): Resolved;
  load(
    url: string,
    context: { readonly importAttributes?: object },
    next: (url: string, context: unknown) => unknown,
  ): unknown;
}) => unknown;

/** What is imported how. */
export interface ConfinedModules {
  readonly readable: Folders;
  /** Beginnings of the URLs of the program's own modules. */
  readonly program: readonly string[];
  /** The beginning of those among them that functions may not have: they hold what is no longer there. */
  readonly machine: string;
  /** URLs of those that it imports later. */
  readonly late: ReadonlySet<string>;
  /** Modules from other hosts. */
  readonly remote: RemoteModules;
}

/**
 * From here on imports are checked; what was imported before stays.
 *
 * What is refused is resolved to what cannot be loaded: what a hook throws while it resolves, Deno
 * ignores where the module is one that it has loaded before.
 */
export function confineModules(
  { readable, program, machine, late, remote }: ConfinedModules,
): void {
  const register = registerHooks as unknown as RegisterHooks;
  shutCommonJs();
  register({
    resolve(specifier, context, next) {
      // Not by Deno: that alone may download a package.
      const url = urlOf(specifier, context.parentURL, remote);
      if (url === undefined) return refused(refusalOf(specifier));
      if (setHas(late, url) || setHas(NODE_MODULES, url)) return next(url, context);
      if (isRemote(url)) {
        const place = remote.placeOf(url);
        return given(isRemote(place) ? place : url);
      }
      if (startsWith(url, "data:")) return given(url);
      if (!startsWith(url, "file:")) return refused(refusalOf(url));
      if (startsWith(url, machine)) return refused(refusalOf(url, "it is of what confines them"));
      try {
        readable.required(url);
      } catch (error) {
        return refused(LeatError.from(error).message);
      }
      // Else there would be two of each of its classes.
      return startsWithAny(url, program) ? next(url, context) : given(url);
    },
    load(url, context, next) {
      if (startsWith(url, REFUSED)) {
        const reason = decodeURIComponent(slice(url, REFUSED.length, url.length));
        throw new LeatError("permission_denied", reason);
      }
      if (!startsWith(url, GIVEN)) return next(url, context);
      const real = realUrl(url);
      const { importAttributes = {} } = context;
      const type = hasOwn(importAttributes, "type")
        ? (importAttributes as { type: unknown }).type
        : undefined;
      if (startsWith(real, "data:")) return sourceOf(real, type, dataText(real));
      if (startsWith(real, "file:")) return sourceOf(real, type, fileText(real));
      const { url: place, mediaType, text } = remote.moduleAt(real);
      return sourceOf(place, type, text, mediaType);
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

/** Where an import leads, as far as it is a place: names that only a list of packages explains are none. */
function urlOf(
  specifier: string,
  parent: string | undefined,
  remote: RemoteModules,
): string | undefined {
  if (setHas(BUILT_IN, specifier) && !startsWith(specifier, "node:")) return `node:${specifier}`;
  const isRelative = startsWith(specifier, "./") || startsWith(specifier, "../") ||
    startsWith(specifier, "/");
  try {
    const base = isRelative && parent !== undefined ? remote.placeOf(realUrl(parent)) : undefined;
    return href(new OriginalUrl(specifier, base));
  } catch {
    return undefined;
  }
}

function given(url: string): Resolved {
  return { url: `${GIVEN}${url}`, shortCircuit: true };
}

function realUrl(url: string): string {
  return startsWith(url, GIVEN) ? slice(url, GIVEN.length, url.length) : url;
}

/** For these the permission is asked for when they are fetched. */
function isRemote(url: string): boolean {
  return startsWith(url, "https:") || startsWith(url, "http:");
}

function refused(reason: string): Resolved {
  return { url: `${REFUSED}${encodeURIComponent(reason)}`, shortCircuit: true };
}

function refusalOf(what: string, why = reasonOf(what)): string {
  return `Cannot import ${what} in user functions, whatever a worker grants: ${why}`;
}

function reasonOf(what: string): string {
  return startsWith(what, "node:")
    ? "it reaches the whole process"
    : "put what is needed of it into the module, with a bundler for instance";
}
