/**
 * The JavaScript of a module that a confined thread loads by itself. Deno would look for everything
 * that a module names before it loads it, and ask the registries of packages for what is found there.
 *
 * What decides here runs after user functions have: it uses built-ins as they were before.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { stripTypeScriptTypes } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { endsWith, indexOf, setHas, slice, startsWith } from "./pristine.ts";

const { readTextFileSync } = Deno;
const NotFoundError = Deno.errors.NotFound;
const { decodeURIComponent, URL: OriginalUrl } = globalThis;
const { stringify } = JSON;

/** What stands in the message of an import whose file is not there: Deno keeps nothing else of an error. */
const NOT_FOUND = "Module not found";

/** Media types, the last two of which are those of films whose names end in `.ts`. */
const TYPESCRIPT_TYPES: ReadonlySet<string> = new Set([
  ...["application/typescript", "text/typescript", "application/x-typescript"],
  ...["video/mp2t", "video/vnd.dlna.mpeg-tts"],
]);
const JAVASCRIPT_TYPES: ReadonlySet<string> = new Set([
  ...["application/javascript", "text/javascript", "application/ecmascript", "text/ecmascript"],
  ...["application/x-javascript"],
]);

/** What a load hook gives Deno. */
export interface ModuleSource {
  readonly format: "module" | "json";
  readonly source: string;
  readonly shortCircuit: true;
}

/**
 * A module made of a text.
 *
 * @param url Where the text is from, which says what it is written in.
 * @param type What it is imported as, if that was said: `text` and `json` are known.
 * @param mediaType What a host says that it is; where that says nothing, its name does.
 */
export function sourceOf(url: string, type: unknown, text: string, mediaType = ""): ModuleSource {
  if (type === "json") return { format: "json", source: text, shortCircuit: true };
  const source = type === undefined
    ? `${metaOf(url)}${withoutHashbang(javaScript(url, text, mediaType))}`
    : type === "text"
    ? text
    : undefined;
  if (source !== undefined) return { format: "module", source, shortCircuit: true };
  throw new LeatError(
    "invalid_argument",
    `Cannot import ${url} with { type: ${
      stringify(type)
    } }: modules of user functions import json and text`,
  );
}

/** What the module finds in `import.meta`, on the line of its first: places in it stay what they are. */
function metaOf(url: string): string {
  const own = stringify(url);
  const meta =
    `import.meta.url=${own};import.meta.resolve=(to)=>new globalThis.URL(to,${own}).href;`;
  if (!startsWith(url, "file:")) return meta;
  const path = fileURLToPath(new OriginalUrl(url));
  return `${meta}import.meta.filename=${stringify(path)};import.meta.dirname=${
    stringify(dirname(path))
  };`;
}

/**
 * The text of a file, under the thread's own permission to read it.
 *
 * @throws {LeatError} `not_found` where there is none.
 */
export function fileText(url: string): string {
  try {
    return readTextFileSync(fileURLToPath(new OriginalUrl(url)));
  } catch (cause) {
    if (!(cause instanceof NotFoundError)) throw cause;
    throw new LeatError("not_found", `${NOT_FOUND} "${url}"`, { cause });
  }
}

/** Whether an import failed because there is no such module. */
export function isNotFound(error: unknown): boolean {
  return LeatError.from(error).message.includes(NOT_FOUND);
}

/** The text that a `data:` URL holds. */
export function dataText(url: string): string {
  const fragment = indexOf(url, "#");
  const end = fragment < 0 ? url.length : fragment;
  const comma = indexOf(url, ",");
  const type = slice(url, "data:".length, comma);
  const body = slice(url, comma + 1, end);
  return endsWith(type, ";base64")
    ? Buffer.from(decodeURIComponent(body), "base64").toString()
    : decodeURIComponent(body);
}

function javaScript(url: string, text: string, mediaType: string): string {
  if (startsWith(url, "data:")) {
    return indexOf(slice(url, 0, indexOf(url, ",")), "typescript") < 0 ? text : withoutTypes(text);
  }
  const { pathname } = new OriginalUrl(url);
  for (const ending of [".tsx", ".jsx", ".wasm", ".cjs", ".cts", ".json"]) {
    if (endsWith(pathname, ending)) throw refused(url, ending);
  }
  // Not whatever might be TypeScript: what is valid JavaScript may mean something else there.
  const isTypeScript = setHas(TYPESCRIPT_TYPES, mediaType) ||
    !setHas(JAVASCRIPT_TYPES, mediaType) &&
      (endsWith(pathname, ".ts") || endsWith(pathname, ".mts"));
  return isTypeScript ? withoutTypes(text) : text;
}

/** A comment in its place: it is one only where a text begins. */
function withoutHashbang(text: string): string {
  return startsWith(text, "#!") ? `//${slice(text, 2, text.length)}` : text;
}

function refused(url: string, ending: string): LeatError {
  const remedy = ending === ".json"
    ? 'import it with { type: "json" }'
    : ending === ".wasm"
    ? "read the file, and instantiate it"
    : ending === ".cjs" || ending === ".cts"
    ? "CommonJS is shut off for user functions, whatever a worker grants: make it an ES module"
    : "compile it to JavaScript first";
  const message = `Cannot import ${url} as a module of user functions: ${remedy}`;
  return new LeatError("invalid_argument", message);
}

/** Places in the text stay what they are, but where it has enums and the like. */
function withoutTypes(text: string): string {
  try {
    return stripTypeScriptTypes(text, { mode: "strip" });
  } catch {
    return stripTypeScriptTypes(text, { mode: "transform" });
  }
}
