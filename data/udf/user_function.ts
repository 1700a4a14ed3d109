/**
 * Serialises user functions: how a function given to `map`, `filter`, … is written, and how another
 * thread or host rebuilds it. A pipeline that runs where it was made calls the function itself and
 * needs none of this.
 */
import { isLeaf, isPlainObject, TREE_DEPTH_MAX } from "../../core/tree.ts";
import { LeatError } from "../../core/error.ts";
import { shownClass, shownPath } from "../../core/shown_text.ts";
import { GIVEN_NAMES, withCapturedNames } from "./captured_names.ts";
import { analyzeFunction, excerptOf, type FunctionAnalysis, hasSource } from "./free_names.ts";
import { importFunction, type ModuleHost } from "./import_function.ts";
import { isHostGlobal } from "./known_globals.ts";
import { ModuleFunction } from "./module_function.ts";
import { callsPython, PythonFunction } from "./python_function.ts";
import { SourceFunction } from "./source_function.ts";
import type { Path, WireCaptures, WireFunction } from "./wire_function.ts";

/** Any function; operators declare the exact signature. */
// deno-lint-ignore no-explicit-any -- parameters are contravariant: nothing narrower accepts every function
export type AnyFunction = (...args: any[]) => unknown;

/**
 * What operators hold: a function, a reference to an export or a Python function, or the text of a
 * received function.
 */
export type UserFunction<F extends AnyFunction = AnyFunction> =
  | F
  | ModuleFunction<F>
  | PythonFunction<F>
  | SourceFunction;

/** Named values for a function's last argument: plain data, tensors, and serialisable functions. */
export type Captures = Readonly<Record<string, unknown>>;

/** A function and its captures, received or to be sent. */
export interface BoundFunction<F extends AnyFunction = AnyFunction> {
  readonly fn: UserFunction<F>;
  readonly captures?: Captures;
}

/** A function that can be called, with the captures for its last argument. */
export interface LoadedFunction<F extends AnyFunction = AnyFunction> {
  readonly fn: F;
  readonly captures?: Captures;
}

/**
 * Serialises a function as plain data.
 *
 * A reference is written as it is. Any other function is written as its source, so it must be
 * self-contained: its inputs are its parameters and the `captures` in the last one.
 *
 * @throws {LeatError} `failed_precondition` naming free names, `this`, `import.meta`, … that the
 * function uses; `invalid_argument` for native and bound functions, classes, and captures that are
 * not plain data.
 *
 * @param arity How many arguments it takes before the last, to show how to pass captures. Default: not
 * known.
 *
 * @example
 * ```ts
 * import { serializeFunction } from "./user_function.ts";
 * serializeFunction((x: number, { mean }: { mean: number }) => x - mean, { mean: 3 });
 * ```
 */
export function serializeFunction(
  fn: UserFunction,
  captures?: Captures,
  arity?: number,
): WireFunction {
  const wire = serializeAlone(fn, "", arity);
  return captures === undefined ? wire : { ...wire, captures: serializeCaptures(captures) };
}

/**
 * Reads what {@linkcode serializeFunction} wrote. References stay references and text stays text:
 * {@linkcode loadFunction} imports and evaluates them. The text is checked here, because it may
 * come from an untrusted sender.
 *
 * @throws {LeatError} `invalid_argument` for malformed input, `failed_precondition` for source that
 * is not self-contained.
 */
export function deserializeFunction(wire: unknown): BoundFunction {
  if (!isPlainObject(wire)) throw malformed("it is no object");
  const fn = deserializeAlone(wire);
  return wire.captures === undefined
    ? { fn }
    : { fn, captures: deserializeCaptures(wire.captures) };
}

/** A function as messages show it. */
export function functionText(fn: UserFunction): string {
  const { name, place } = referenceOf(fn) ?? {};
  return place === undefined ? excerptOf(sourceOf(fn)) : `"${name}" of ${shownPath(place)}`;
}

/** The name and the module or file of a reference; undefined for a function with source. */
export function referenceOf(
  fn: unknown,
): { readonly name: string; readonly place: string } | undefined {
  if (fn instanceof ModuleFunction) return { name: fn.name, place: fn.module };
  return fn instanceof PythonFunction ? { name: fn.name, place: fn.file } : undefined;
}

function sourceOf(fn: UserFunction): string {
  return fn instanceof SourceFunction ? fn.source : Function.prototype.toString.call(fn);
}

export function isUserFunction(value: unknown): value is UserFunction {
  return typeof value === "function" || value instanceof ModuleFunction ||
    value instanceof PythonFunction || value instanceof SourceFunction;
}

/**
 * Makes a function and the functions among its captures callable; synchronously if no module has to
 * be imported. This is the only place that evaluates text.
 *
 * @throws {LeatError} `not_found` if the module or the export does not exist; `permission_denied`
 * if it may not be imported, text may not be evaluated, or Python may not run; `failed_precondition` if
 * loading it fails; `deadline_exceeded` after `MODULE_LOAD_TIMEOUT_MS`; `invalid_argument` if the export
 * is no function.
 *
 * @param loadedCaptures Captured arrays and objects in which nothing has to be loaded; those that it
 * finds are added. Default: none are known.
 */
export function loadFunction<F extends AnyFunction>(
  bound: BoundFunction<F>,
  host: ModuleHost,
  loadedCaptures: WeakSet<object> = new WeakSet(),
): LoadedFunction<F> | Promise<LoadedFunction<F>> {
  const { fn, captures } = bound;
  if (fn instanceof PythonFunction) return callsPython(fn, captures, host.python);
  const walked = captures && (walkOfReceived.get(captures) ?? walk(captures, { loadedCaptures }));
  const unloaded = walked === undefined ? [] : unloadedIn(walked);
  if (typeof fn === "function" && unloaded.length === 0) return bound as LoadedFunction<F>;
  if (fn instanceof ModuleFunction || unloaded.some((fn) => fn instanceof ModuleFunction)) {
    return loadModules(fn, walked, unloaded, host);
  }
  const loaded = (fn instanceof SourceFunction ? fn.load(host) : fn) as F;
  if (walked === undefined) return { fn: loaded };
  const callable = new Map(unloaded.map((fn) => [fn, (fn as SourceFunction).load(host)]));
  return { fn: loaded, captures: withLoaded(walked, callable) };
}

/**
 * The clocks and ambient random sources (`Date`, `Math.random`, …) in the source of a function and of
 * its captured functions. They make a stream differ from run to run. Functions in modules, native and
 * bound functions are not examined.
 */
export function ambientNamesOf({ fn, captures = {} }: BoundFunction): string[] {
  const captured = walk(captures).functions.flatMap(({ fn }) => ambientNamesIn(fn));
  return [...new Set([...ambientNamesIn(fn), ...captured])];
}

const ambientNames = new WeakMap<UserFunction, readonly string[]>();

function ambientNamesIn(fn: UserFunction): readonly string[] {
  if (referenceOf(fn) !== undefined) return [];
  return ambientNames.getOrInsertComputed(fn, () => {
    const source = sourceOf(fn);
    return hasSource(source) ? analyzeFunction(source).ambientNames : [];
  });
}

/**
 * Whether the source of a function shows that its results depend on its arguments alone: it uses no
 * clock and no ambient random source, and keeps no state around it or in its captures.
 */
export function dependsOnArguments({ fn, captures = {} }: BoundFunction): boolean {
  const holdsState = Object.values(captures).some((value) => Object(value) === value);
  const source = referenceOf(fn) === undefined ? sourceOf(fn) : undefined;
  if (holdsState || source === undefined || !hasSource(source)) return false;
  const { freeNames, placeBound, ambientNames } = analyzeFunction(source);
  return freeNames.length + placeBound.length + ambientNames.length === 0;
}

/** @param where the capture that holds the function, or `""`. */
function serializeAlone(fn: unknown, where: string, arity?: number): WireFunction {
  if (!isUserFunction(fn)) {
    throw new LeatError(
      "invalid_argument",
      `a user function is a function, udf(…) or python(…), not ${typeof fn}`,
    );
  }
  if (fn instanceof PythonFunction) {
    if (where !== "") throw pythonCaptured(where);
    return { python: fn.file, name: fn.name };
  }
  if (fn instanceof ModuleFunction) return { module: fn.module, name: fn.name };
  const analysis = analyzeFunction(sourceOf(fn));
  requireSelfContained(analysis, where, arity);
  return { source: analysis.source };
}

function requireSelfContained(analysis: FunctionAnalysis, where: string, arity?: number): void {
  const { freeNames, placeBound, source } = analysis;
  if (freeNames.length === 0 && placeBound.length === 0) return;
  const which = where === "" ? "This function" : `The function in captures${where}`;
  const captured = freeNames.filter((name) => !isHostGlobal(name));
  const ofHost = freeNames.filter(isHostGlobal);
  const uses = [
    ...(captured.length > 0 ? [`${captured.join(", ")} from around it`] : []),
    ...(ofHost.length > 0
      ? [`${ofHost.join(", ")}, which only functions of modules may name`]
      : []),
    ...placeBound,
  ].join(" and ");
  const module = `export it from a module and give udf(import.meta.resolve("./f.ts"), "name")`;
  const remedy = ofHost.length === 0 && placeBound.length === 0
    ? `Either ${captureRemedy(analysis, captured, where, arity)}, or ${module}.`
    : `Instead ${module}.`;
  const { assignedNames } = analysis;
  const lost = assignedNames.length === 0
    ? ""
    : ` What it assigns to ${assignedNames.join(", ")} would stay there: keep state with scan().`;
  throw new LeatError(
    "failed_precondition",
    `${which} cannot travel to another thread or host, because it uses ${uses}. ${remedy}${lost} ` +
      `The function: ${excerptOf(source)}`,
    { details: { freeNames: [...freeNames], placeBound: [...placeBound] } },
  );
}

function pythonCaptured(where: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `captures${where} is a Python function, which only an operator can call: give it to map`,
  );
}

/** Says how to pass in the outer variables of a function; shows a short function rewritten. */
function captureRemedy(
  { source }: FunctionAnalysis,
  names: string[],
  where: string,
  arity: number | undefined,
): string {
  const list = names.join(", ");
  if (where !== "") return `give it ${list} as parameters`;
  const rewritten = arity === undefined ? undefined : withCapturedNames(source, names, arity);
  const fn = rewritten ?? `(${arity === 0 ? "" : "…, "}{ ${list} }) => …`;
  const given = names.filter((name) => GIVEN_NAMES.includes(name));
  const own = names.filter((name) => !GIVEN_NAMES.includes(name));
  const captures = own.length === 0 ? fn : `${fn}, { captures: { ${own.join(", ")} } }`;
  if (given.length === 0) return `pass its inputs by name: ${captures}`;
  return `take ${given.join(", ")} from its last argument, which every function gets` +
    `${own.length === 0 ? "" : `, and pass the rest by name`}: ${captures}`;
}

function serializeCaptures(captures: Captures): WireCaptures {
  if (!isPlainObject(captures)) {
    throw new LeatError("invalid_argument", "captures are a plain object of named values");
  }
  const functions: { path: Path; fn: WireFunction }[] = [];
  const copy = (value: unknown, path: Path): unknown => {
    if (isUserFunction(value)) {
      functions.push({ path, fn: serializeAlone(value, pathText(path)) });
      return null;
    }
    if (isLeaf(value)) return value;
    if (path.length < TREE_DEPTH_MAX) {
      if (Array.isArray(value)) return value.map((item, i) => copy(item, [...path, i]));
      if (isPlainObject(value) && !Object.hasOwn(value, "__proto__")) {
        return Object.fromEntries(
          Object.entries(value).map(([key, item]) => [key, copy(item, [...path, key])]),
        );
      }
    }
    throw cannotCapture(value, path);
  };
  const names = Object.keys(captures).sort();
  const byName = Object.fromEntries(names.map((name) => [name, captures[name]]));
  const values = copy(byName, []) as Record<string, unknown>;
  return { values, functions };
}

function cannotCapture(value: unknown, path: Path): LeatError {
  const found = path.length >= TREE_DEPTH_MAX
    ? `nests deeper than ${TREE_DEPTH_MAX} levels (TREE_DEPTH_MAX)`
    : typeof value === "object" && value !== null
    ? `is ${shownClass(value)} (or has a key __proto__)`
    : `is ${String(value)}`;
  return new LeatError(
    "invalid_argument",
    `captures${pathText(path)} ${found}; captures that travel are plain objects and arrays of ` +
      "numbers, bigints, booleans, strings, null, typed arrays, tensors and self-contained " +
      "functions.",
  );
}

function deserializeAlone(wire: Record<string, unknown>): UserFunction {
  if (typeof wire.source === "string") {
    const analysis = analyzeFunction(wire.source);
    requireSelfContained(analysis, "");
    return new SourceFunction(analysis.source);
  }
  if (typeof wire.module === "string" && typeof wire.name === "string") {
    return new ModuleFunction(wire.module, wire.name);
  }
  if (typeof wire.python === "string" && typeof wire.name === "string") {
    return new PythonFunction(wire.python, wire.name);
  }
  throw malformed("it has neither source nor module and name");
}

function deserializeCaptures(wire: unknown): Captures {
  if (!isPlainObject(wire) || !isPlainObject(wire.values) || !Array.isArray(wire.functions)) {
    throw malformed("its captures are not { values, functions }");
  }
  let values: unknown = wire.values;
  for (const entry of wire.functions as unknown[]) {
    if (!isPlainObject(entry) || !Array.isArray(entry.path) || !isPlainObject(entry.fn)) {
      throw malformed("a function among its captures is not { path, fn }");
    }
    if (entry.path.length > TREE_DEPTH_MAX) throw tooDeep();
    values = replaceAt(values, entry.path, deserializeAlone(entry.fn));
  }
  const captures = values as Captures;
  walkOfReceived.set(captures, walk(captures, { depthMax: TREE_DEPTH_MAX }));
  return captures;
}

function tooDeep(): LeatError {
  return malformed(`its captures nest deeper than ${TREE_DEPTH_MAX} levels (TREE_DEPTH_MAX)`);
}

/** A copy of `tree` with `value` at `path`, which must exist. */
function replaceAt(tree: unknown, path: readonly unknown[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (path.length === 0) return value;
  if (Array.isArray(tree) && typeof key === "number" && Object.hasOwn(tree, key)) {
    return tree.with(key, replaceAt(tree[key], rest, value));
  }
  if (isPlainObject(tree) && typeof key === "string" && Object.hasOwn(tree, key)) {
    return { ...tree, [key]: replaceAt(tree[key], rest, value) };
  }
  throw malformed(`its captures have nothing at ${JSON.stringify(path)}`);
}

/** A reference or received function, which has to be loaded. */
type Unloaded = ModuleFunction | SourceFunction;

/** An array or plain object among captures. */
type Structure = Record<string, unknown>;

/** What captures are made of. Structure may have cycles. */
interface Walk {
  readonly captures: Captures;
  /** Every function and reference, once for each place. */
  readonly functions: readonly Found[];
  /** By each array and plain object: those in which it is. */
  readonly holders: ReadonlyMap<Structure, readonly Structure[]>;
}

interface Found {
  readonly fn: UserFunction;
  readonly key: string | number;
  readonly holder: Place;
}

/** Where a structure is. A whole path for each would take memory with the square of the depth. */
interface Place {
  readonly structure: Structure;
  readonly key: string | number;
  /** `undefined` for the captures themselves. */
  readonly holder: Place | undefined;
  readonly depth: number;
}

function pathOf(key: string | number, holder: Place): Path {
  const path = [key];
  for (let at = holder; at.holder !== undefined; at = at.holder) path.push(at.key);
  return path.reverse();
}

/**
 * Of received captures: each iterator that opens loads their functions. A program may change its own
 * captures between two iterators.
 */
const walkOfReceived = new WeakMap<Captures, Walk>();

function isStructure(value: unknown): value is Structure {
  return Array.isArray(value) || isPlainObject(value);
}

/**
 * @param options.loadedCaptures Captures in which nothing has to be loaded: it passes over them.
 * @param options.depthMax Limit of nesting for captures of others. Default: none.
 */
function walk(
  captures: Captures,
  { loadedCaptures, depthMax = Infinity }: {
    readonly loadedCaptures?: WeakSet<object>;
    readonly depthMax?: number;
  } = {},
): Walk {
  const functions: Found[] = [];
  const holders = new Map<Structure, Structure[]>([[captures, []]]);
  const queue: Place[] = [{ structure: captures, key: "", holder: undefined, depth: 0 }];
  for (const holder of queue) {
    const { structure, depth } = holder;
    if (depth >= depthMax) throw tooDeep();
    for (const name of Object.keys(structure)) {
      const value = structure[name];
      const isFunction = isUserFunction(value);
      if (!isFunction && !isStructure(value)) continue;
      const key = Array.isArray(structure) ? Number(name) : name;
      if (isFunction) functions.push({ fn: value, key, holder });
      else if (loadedCaptures && depth === 0 && isLoaded(value, loadedCaptures)) continue;
      else if (holders.has(value)) holders.get(value)!.push(structure);
      else {
        holders.set(value, [structure]);
        queue.push({ structure: value, key, holder, depth: depth + 1 });
      }
    }
  }
  return { captures, functions, holders };
}

/**
 * Whether nothing in a structure has to be loaded. Takes a third of the time of a walk, because a
 * vocabulary may have many words: `Object.entries` would make an array for each.
 */
function isLoaded(root: Structure, known: WeakSet<object>): boolean {
  if (known.has(root)) return true;
  const found = new Set([root]);
  for (const structure of found) {
    for (const key in structure) {
      const value = structure[key];
      if (typeof value !== "object") continue;
      if (isUserFunction(value)) return false;
      if (isStructure(value)) found.add(value);
    }
  }
  known.add(root);
  return true;
}

/** Every function among the captures that has to be loaded first. */
function unloadedIn({ functions }: Walk): Unloaded[] {
  return functions.flatMap(({ fn, key, holder }) => {
    if (fn instanceof PythonFunction) throw pythonCaptured(pathText(pathOf(key, holder)));
    return typeof fn === "function" ? [] : [fn];
  });
}

/**
 * The captures with loaded functions. Copies what leads to one of these, with its cycles; the rest
 * stays as it is.
 */
function withLoaded(
  { captures, functions, holders }: Walk,
  loaded: ReadonlyMap<unknown, unknown>,
): Captures {
  const leading = new Set(
    functions.flatMap(({ fn, holder }) => loaded.has(fn) ? [holder.structure] : []),
  );
  for (const structure of leading) holders.get(structure)!.forEach((holder) => leading.add(holder));
  const replaced = new Map<unknown, unknown>(loaded);
  const copies = [...leading].map((structure) => {
    const copy = (Array.isArray(structure) ? [...structure] : { ...structure }) as Structure;
    replaced.set(structure, copy);
    return copy;
  });
  for (const copy of copies) {
    for (const [key, value] of Object.entries(copy)) {
      if (replaced.has(value)) copy[key] = replaced.get(value);
    }
  }
  return (replaced.get(captures) ?? captures) as Captures;
}

async function loadModules<F extends AnyFunction>(
  fn: UserFunction<F>,
  walked: Walk | undefined,
  unloaded: readonly Unloaded[],
  host: ModuleHost,
): Promise<LoadedFunction<F>> {
  const callable = (fn: UserFunction) => {
    if (fn instanceof ModuleFunction) return importFunction(fn, host);
    return fn instanceof SourceFunction ? fn.load(host) : fn;
  };
  const loaded = await callable(fn) as F;
  if (walked === undefined) return { fn: loaded };
  const functions = new Map<Unloaded, unknown>();
  for (const fn of unloaded) functions.set(fn, await callable(fn));
  return { fn: loaded, captures: withLoaded(walked, functions) };
}

function pathText(path: Path): string {
  return path.map((key) => typeof key === "number" ? `[${key}]` : `.${key}`).join("");
}

function malformed(why: string): LeatError {
  return new LeatError("invalid_argument", `This is no serialised user function: ${why}.`);
}
