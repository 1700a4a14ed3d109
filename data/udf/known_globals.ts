/**
 * Classifies free names that are globals: those that every thread and host has, and those that belong
 * to one thread, host or module.
 */

/**
 * Globals that a self-contained function may use. The first group is the language's own, without
 * `eval`, which could reach any name. The second group is of the platform: stateless, needs no
 * permission, and the same in every thread. Functions need text codecs to read the bytes of a
 * record, and timers to wait.
 */
export const ALLOWED_GLOBALS: ReadonlySet<string> = new Set([
  ...["globalThis", "Infinity", "NaN", "undefined", "isFinite", "isNaN", "parseFloat", "parseInt"],
  ...["decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape"],
  ...[
    "Object",
    "Function",
    "Boolean",
    "Symbol",
    "Number",
    "BigInt",
    "Math",
    "Date",
    "String",
    "RegExp",
    "Temporal",
  ],
  ...[
    "Error",
    "AggregateError",
    "EvalError",
    "RangeError",
    "ReferenceError",
    "SuppressedError",
    "SyntaxError",
  ],
  ...[
    "TypeError",
    "URIError",
    "Array",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "WeakRef",
    "FinalizationRegistry",
  ],
  ...[
    "Int8Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "Int16Array",
    "Uint16Array",
    "Int32Array",
    "Uint32Array",
  ],
  ...["BigInt64Array", "BigUint64Array", "Float16Array", "Float32Array", "Float64Array"],
  ...[
    "ArrayBuffer",
    "SharedArrayBuffer",
    "DataView",
    "Atomics",
    "JSON",
    "Promise",
    "Reflect",
    "Proxy",
    "Intl",
  ],
  ...["Iterator", "AsyncIterator", "DisposableStack", "AsyncDisposableStack"],

  ...["TextEncoder", "TextDecoder", "atob", "btoa", "URL", "URLSearchParams", "structuredClone"],
  ...["CompressionStream", "DecompressionStream", "WebAssembly", "console"],
  ...["setTimeout", "clearTimeout", "queueMicrotask"],
]);

/** Names that usually mean an object of the host or the module. */
const HOST_GLOBALS: ReadonlySet<string> = new Set([
  ...["Deno", "process", "require", "module", "exports", "Buffer", "global", "window", "self"],
  ...["fetch", "Request", "Response", "Headers", "WebSocket", "Worker", "BroadcastChannel"],
  ...["postMessage", "close", "navigator", "location", "localStorage", "caches", "crypto"],
  ...["Event", "EventTarget", "MessageEvent", "MessageChannel", "MessagePort", "AbortController"],
  ...["AbortSignal", "Blob", "File", "FormData", "ReadableStream", "WritableStream"],
  ...["performance", "setInterval", "setImmediate", "clearInterval", "clearImmediate"],
  ...["eval", "arguments"],
]);

/** Whether a capture cannot replace this free name. */
export function isHostGlobal(name: string): boolean {
  return HOST_GLOBALS.has(name);
}

/** Globals whose results differ from run to run, or through which a function can reach such a global. */
export const AMBIENT_GLOBALS: ReadonlySet<string> = new Set([
  ...["Date", "Temporal", "performance", "crypto"],
  ...["globalThis", "WeakRef", "FinalizationRegistry", "Function"],
]);
