/**
 * Node modules that are slow to load. Each thread loads its own copy, and one of these with its
 * dependencies takes as long as a hundred of Leat's modules. So each is loaded on first use,
 * synchronously: the simulator could not wait for an `import()`.
 */

interface Builtins {
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:zlib": typeof import("node:zlib");
}

const loaded = new Map<string, unknown>();

/** Loads `node:crypto` on first use. */
export function nodeCrypto(): Builtins["node:crypto"] {
  return builtin("node:crypto");
}

/** Loads `node:zlib` on first use. */
export function nodeZlib(): Builtins["node:zlib"] {
  return builtin("node:zlib");
}

function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] {
  let found = loaded.get(name);
  if (found === undefined) loaded.set(name, found = globalThis.process.getBuiltinModule(name));
  return found as Builtins[Name];
}
