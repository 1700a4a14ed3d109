/**
 * Imports modules from granted hosts in a confined process. The worker fetches modules, and hooks
 * give Deno their texts. Deno itself fetches nothing, so no import contacts a package registry. Deno
 * resolves imports with known schemes before it calls hooks, so users' modules get an unknown scheme.
 */
import { isBuiltin, registerHooks } from "node:module";
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import { dataText, fileText, sourceOf } from "./module_source.ts";
import type { RemoteModules } from "./remote_modules.ts";

/** The prefix of URLs of users' modules. */
const GIVEN = "leat-";
/** The prefix of URLs of Leat's own modules, whose classes must not be loaded twice. */
const PROGRAM = new URL("../../../", import.meta.url).href;

interface Resolved {
  readonly url: string;
  readonly shortCircuit?: boolean;
}

/** The used part of the signature of `registerHooks`, which Deno's types lack. */
type RegisterHooks = (hooks: {
  resolve(
    specifier: string,
    context: { readonly parentURL?: string },
    next: (specifier: string, context: unknown) => Resolved,
  ): Resolved;
  load(
    url: string,
    context: { readonly importAttributes?: { readonly type?: unknown } },
    next: (url: string, context: unknown) => unknown,
  ): unknown;
}) => unknown;

/** Makes later imports of users' modules go through hooks. */
export function importByHooks(modules: RemoteModules): void {
  (registerHooks as unknown as RegisterHooks)({
    resolve(specifier, context, next) {
      const url = urlOf(specifier, context.parentURL, modules);
      if (url === undefined || url.startsWith(PROGRAM)) return next(specifier, context);
      return { url: `${GIVEN}${modules.positionOf(url)}`, shortCircuit: true };
    },
    load(url, context, next) {
      if (!url.startsWith(GIVEN)) return next(url, context);
      const real = url.slice(GIVEN.length);
      const type = context.importAttributes?.type;
      if (real.startsWith("data:")) return sourceOf(real, type, dataText(real));
      if (real.startsWith("file:")) return sourceOf(real, type, fileText(real));
      const { url: finalUrl, mediaType, text } = modules.moduleAt(real);
      return sourceOf(finalUrl, type, text, mediaType);
    },
  });
}

/**
 * The URL of a user's import. `undefined` for built-in modules, and for files that Leat and its
 * packages import themselves, which may happen while users' functions run.
 */
function urlOf(
  specifier: string,
  parent: string | undefined,
  modules: RemoteModules,
): string | undefined {
  const isUsers = parent?.startsWith(GIVEN) === true;
  const isRelative = /^\.{0,2}\//.test(specifier);
  if (isRelative && !isUsers) return undefined;
  const base = isUsers ? modules.positionOf(parent.slice(GIVEN.length)) : undefined;
  const url = URL.parse(specifier, isRelative ? base : undefined);
  if (url !== null && /^(https?|file|data):$/.test(url.protocol)) return url.href;
  if (isUsers && !isBuiltin(specifier)) throw noPackage(specifier);
  return undefined;
}

function noPackage(specifier: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `Cannot import ${
      shownPath(specifier)
    }: modules of user functions load no packages; bundle them`,
  );
}
