/**
 * Makes the JavaScript that a load hook returns for a module in a confined process. Deno must not load
 * the module itself, because it would first resolve all imports, and contact package registries.
 */
import { Buffer } from "node:buffer";
import { stripTypeScriptTypes } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../../core/error.ts";

/** Marks a missing module in an error's message, because Deno keeps only the message of a hook's error. */
const NOT_FOUND = "Module not found";

/** Media types of TypeScript. The last two are video types, which some hosts send for `.ts`. */
const TYPESCRIPT_TYPES: ReadonlySet<string> = new Set([
  ...["application/typescript", "text/typescript", "application/x-typescript"],
  ...["video/mp2t", "video/vnd.dlna.mpeg-tts"],
]);
const JAVASCRIPT_TYPES: ReadonlySet<string> = new Set([
  ...["application/javascript", "text/javascript", "application/ecmascript", "text/ecmascript"],
  ...["application/x-javascript"],
]);

/** The result of a load hook. */
interface ModuleSource {
  readonly format: "module" | "json";
  readonly source: string;
  readonly shortCircuit: true;
}

/**
 * Converts a text to a module.
 * @param url The URL of the text. Its ending shows the language if the media type does not.
 * @param type The import attribute `type`, if any: `text` or `json`.
 * @param mediaType The media type that the host sent.
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
    `Cannot import ${url} with { type: ${JSON.stringify(type)} }: modules of user functions ` +
      "can import only json and text in this way",
  );
}

/** Code that sets `import.meta`, for the start of the first line, so that line numbers stay the same. */
function metaOf(url: string): string {
  const own = JSON.stringify(url);
  const meta = `import.meta.url=${own};import.meta.resolve=(to)=>new URL(to,${own}).href;`;
  if (!url.startsWith("file:")) return meta;
  const path = fileURLToPath(new URL(url));
  return `${meta}import.meta.filename=${JSON.stringify(path)};import.meta.dirname=${
    JSON.stringify(dirname(path))
  };`;
}

/** Reads the text of a file with the process's own permission. @throws {LeatError} `not_found` */
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
  // Other texts keep their form, because some valid JavaScript has another meaning in TypeScript.
  const isTypeScript = TYPESCRIPT_TYPES.has(mediaType) ||
    !JAVASCRIPT_TYPES.has(mediaType) &&
      (pathname.endsWith(".ts") || pathname.endsWith(".mts"));
  return isTypeScript ? withoutTypes(text) : text;
}

/** Makes a hashbang a comment, because it is valid only at the start, where `metaOf` adds code. */
function withoutHashbang(text: string): string {
  return text.startsWith("#!") ? `//${text.slice(2)}` : text;
}

function refused(url: string, ending: string): LeatError {
  const remedy = ending === ".json"
    ? 'import it with { type: "json" }'
    : ending === ".wasm"
    ? "read the file, and instantiate it"
    : ending === ".cjs" || ending === ".cts"
    ? "user functions cannot use CommonJS, whatever a worker grants: convert it to an ES module"
    : "compile it to JavaScript first";
  const message = `Cannot import ${url} as a module of user functions: ${remedy}`;
  return new LeatError("invalid_argument", message);
}

/** Removes types. Positions in the text stay the same, except with enums and similar syntax. */
function withoutTypes(text: string): string {
  try {
    return stripTypeScriptTypes(text, { mode: "strip" });
  } catch {
    return stripTypeScriptTypes(text, { mode: "transform" });
  }
}
