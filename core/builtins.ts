/**
 * Node modules that are loaded on first use. One of them, with its dependencies, loads as slowly as a
 * hundred of Leat's modules, and each thread loads its own copy. They load synchronously, because the
 * simulator cannot wait for an `import()`.
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
