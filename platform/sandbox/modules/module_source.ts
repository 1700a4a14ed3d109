/**
 * The JavaScript of a module that a confined process is given through hooks. Deno would look for everything
 * that a module names before it loads it, and ask the registries of packages for what is found there.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { stripTypeScriptTypes } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../../core/error.ts";

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
      JSON.stringify(type)
    } }: modules of user functions import json and text`,
  );
}

/** What the module finds in `import.meta`, on the line of its first: places in it stay what they are. */
function metaOf(url: string): string {
  const own = JSON.stringify(url);
  const meta = `import.meta.url=${own};import.meta.resolve=(to)=>new URL(to,${own}).href;`;
  if (!url.startsWith("file:")) return meta;
  const path = fileURLToPath(new URL(url));
  return `${meta}import.meta.filename=${JSON.stringify(path)};import.meta.dirname=${
    JSON.stringify(dirname(path))
  };`;
}

/**
 * The text of a file, under the process's own permission to read it.
 *
 * @throws {LeatError} `not_found` where there is none.
 */
export function fileText(url: string): string {
  try {
    return Deno.readTextFileSync(fileURLToPath(new URL(url)));
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw cause;
    throw new LeatError("not_found", `${NOT_FOUND} "${url}"`, { cause });
  }
}

/** Whether an import failed because there is no such module. */
export function isNotFound(error: unknown): boolean {
  return LeatError.from(error).message.includes(NOT_FOUND);
}

/** The text that a `data:` URL holds. */
export function dataText(url: string): string {
  const fragment = url.indexOf("#");
  const end = fragment < 0 ? url.length : fragment;
  const comma = url.indexOf(",");
  const type = url.slice("data:".length, comma);
  const body = url.slice(comma + 1, end);
  return type.endsWith(";base64")
    ? Buffer.from(decodeURIComponent(body), "base64").toString()
    : decodeURIComponent(body);
}

function javaScript(url: string, text: string, mediaType: string): string {
  if (url.startsWith("data:")) {
    const isTypeScript = url.slice(0, url.indexOf(",")).includes("typescript");
    return isTypeScript ? withoutTypes(text) : text;
  }
  const { pathname } = new URL(url);
  for (const ending of [".tsx", ".jsx", ".wasm", ".cjs", ".cts", ".json"]) {
    if (pathname.endsWith(ending)) throw refused(url, ending);
  }
  // Not whatever might be TypeScript: what is valid JavaScript may mean something else there.
  const isTypeScript = TYPESCRIPT_TYPES.has(mediaType) ||
    !JAVASCRIPT_TYPES.has(mediaType) &&
      (pathname.endsWith(".ts") || pathname.endsWith(".mts"));
  return isTypeScript ? withoutTypes(text) : text;
}

/** A comment in its place: it is one only where a text begins. */
function withoutHashbang(text: string): string {
  return text.startsWith("#!") ? `//${text.slice(2)}` : text;
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
