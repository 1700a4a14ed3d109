/**
 * Shuts off what a user function could reach other threads or harm the process with. Files, network
 * and the like are not held back here: those are the thread's permissions, which Deno itself keeps.
 *
 * Deno leaves some things open to a thread without any permission: its process can be killed
 * (`Deno.kill(Deno.pid)`, `abort` of `node:process`), its current folder changed, its flags set. So
 * names are allowed one by one, and what a later Deno brings is shut off until it is allowed here.
 *
 * After this, whatever runs on the thread may have changed any built-in.
 *
 * @module
 */
import { ALLOWED_GLOBALS } from "../../data/udf/known_globals.ts";
import { confinedDeno } from "./confined_deno.ts";
import { type ConfinedModules, confineModules } from "./confined_modules.ts";
import { Folders } from "./folders.ts";
import { freezeKinds, startsWith, uncurried } from "./pristine.ts";
import { shutOff } from "./shut_off.ts";

/** Globals beside those that every function may name. Network among them asks for permission. */
const PLATFORM_GLOBALS = [
  ...["eval", "Buffer", "crypto", "Crypto", "CryptoKey", "SubtleCrypto", "performance"],
  ...["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate"],
  ...["clearImmediate", "queueMicrotask", "reportError", "onerror", "onunhandledrejection"],
  ...["Request", "Response", "Headers", "FormData", "Blob", "File", "FileReader", "ProgressEvent"],
  ...["WebSocket", "CloseEvent", "URLPattern", "ImageData", "DOMException"],
  ...["AbortController", "AbortSignal", "Event", "EventTarget", "CustomEvent", "ErrorEvent"],
  ...["MessageEvent", "PromiseRejectionEvent"],
  ...["ReadableStream", "ReadableStreamDefaultReader", "ReadableStreamBYOBReader"],
  ...["ReadableStreamDefaultController", "ReadableByteStreamController"],
  ...["ReadableStreamBYOBRequest", "WritableStream", "WritableStreamDefaultWriter"],
  ...["WritableStreamDefaultController", "TransformStream", "TransformStreamDefaultController"],
  ...["ByteLengthQueuingStrategy", "CountQueuingStrategy"],
  ...["TextDecoderStream", "TextEncoderStream"],
];

/** Functions that are there to say that they are not. */
const SHUT_GLOBALS = ["postMessage", "close", "Worker", "BroadcastChannel", "MessageChannel"];

const CONSOLE_METHODS = [
  ...["assert", "count", "countReset", "debug", "dir", "error", "group", "groupCollapsed"] as const,
  ...["groupEnd", "info", "log", "table", "time", "timeEnd", "timeLog", "trace", "warn"] as const,
];

/** What is left open. */
export interface LockdownOptions {
  /** Folders (their real paths) that files may be read in. */
  readonly readable: readonly string[];
  /** The same of those that files may be made in. */
  readonly writable: readonly string[];
  /** What is imported from here on. */
  readonly modules: Omit<ConfinedModules, "readable">;
  /** Any port: what makes it one can no longer be changed. */
  readonly port: MessagePort;
}

/** Shuts the thread off, for good. */
export function lockDown(options: LockdownOptions): void {
  const readable = new Folders("read", options.readable);
  confineModules({ ...options.modules, readable });
  const kept = {
    self: globalThis,
    Deno: confinedDeno(readable, new Folders("write", options.writable)),
    console: confinedConsole(),
    fetch: fetchWithoutFiles(),
  };
  const allowed = new Set([...ALLOWED_GLOBALS, ...PLATFORM_GLOBALS]);
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!allowed.has(name)) Reflect.deleteProperty(globalThis, name);
  }
  for (const [name, value] of Object.entries(kept)) fix(name, value);
  for (const name of SHUT_GLOBALS) fix(name, shutOff(name));
  // Else a function could put itself between an edge and its port, or show a check another path
  // than it shows Deno.
  freezeKinds(Object.getPrototypeOf(options.port), MessageEvent.prototype, URL.prototype);
  // Its entries are kept by the process, and outlive the thread.
  Reflect.deleteProperty(URL, "createObjectURL");
}

function fix(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: false, configurable: false });
}

/** Without its streams, which lead on to `process`. */
function confinedConsole(): Readonly<Record<string, unknown>> {
  return Object.freeze(
    Object.fromEntries(CONSOLE_METHODS.map((name) => [name, console[name].bind(console)])),
  );
}

/** Files are read by path, where links are looked at. */
function fetchWithoutFiles(): typeof fetch {
  const original = fetch;
  const OriginalRequest = Request;
  const urlOf = uncurried(Object.getOwnPropertyDescriptor(Request.prototype, "url")!.get!);
  const refuse = shutOff("fetch of file: URLs");
  return (input, init) => {
    const request = new OriginalRequest(input as RequestInfo, init);
    return startsWith(urlOf(request) as string, "file:") ? refuse() : original(request);
  };
}
