/**
 * Modules of Node's that bring much with them. Every thread has modules of its own, and one of these
 * with what it stands on takes as long to load as a hundred of Leat's. So whoever first needs one
 * loads it: at once, and without `import()`, which the simulator could not wait for.
 *
 * @module
 */

/** The modules by name. */
interface Builtins {
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:zlib": typeof import("node:zlib");
}

const loaded = new Map<string, unknown>();

/** What `node:crypto` exports. */
export function nodeCrypto(): Builtins["node:crypto"] {
  return builtin("node:crypto");
}

/** What `node:zlib` exports. */
export function nodeZlib(): Builtins["node:zlib"] {
  return builtin("node:zlib");
}

/** Loads all of them: for a thread on which nothing can be loaded later. */
export function loadBuiltins(): void {
  nodeCrypto();
  nodeZlib();
}

function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] {
  let found = loaded.get(name);
  if (found === undefined) loaded.set(name, found = globalThis.process.getBuiltinModule(name));
  return found as Builtins[Name];
}
