/**
 * Walks elements, which are trees: plain objects and arrays are structure, everything else is a
 * leaf.
 */
import { copyOfArray } from "./bytes.ts";
import { dtypeOf, isTypedArray, type TypedArray } from "./dtype.ts";
import { LeatError } from "./error.ts";
import { shownClass } from "./shown_text.ts";
import { RaggedTensor, Tensor } from "./tensor.ts";

/** The leaves that a tree may have. */
export type Leaf =
  | number
  | bigint
  | boolean
  | string
  | null
  | TypedArray
  | Tensor
  | RaggedTensor;

/** Maximum nesting of structure. It also stops cycles. */
export const TREE_DEPTH_MAX = 64;

/** Whether `value` is a leaf. Structure, and values that elements cannot hold, are none. */
export function isLeaf(value: unknown): value is Leaf {
  switch (typeof value) {
    case "number":
    case "bigint":
    case "boolean":
    case "string":
      return true;
    case "object":
      return value === null || dtypeOf(value) !== undefined || value instanceof Tensor ||
        value instanceof RaggedTensor;
    default:
      return false;
  }
}

/**
 * Whether `value` is structure with named parts: an object made by a literal, `JSON.parse` or
 * `Object.create(null)`.
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The fields of a plain object; none for any other value. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isPlainObject(value) ? value : {};
}

/**
 * The same structure with every leaf replaced by `fn(leaf)`.
 *
 * @throws {LeatError} `invalid_argument` with the path, for a value that is neither structure nor
 * leaf, an own `__proto__` key, or structure deeper than {@linkcode TREE_DEPTH_MAX}.
 */
export function mapTree(tree: unknown, fn: (leaf: Leaf) => unknown): unknown {
  return zip([tree], (leaves) => fn(leaves[0]!), []);
}

/** The leaves, depth first, keys in the object's own order. Throws like {@linkcode mapTree}. */
export function flattenTree(tree: unknown): Leaf[] {
  const leaves: Leaf[] = [];
  visit(tree, [], (leaf) => leaves.push(leaf));
  return leaves;
}

/**
 * The path of every leaf in the order of {@linkcode flattenTree}: `$` for a bare leaf, `$.image`,
 * `$[0]`, `$["odd key"]`.
 */
export function treePaths(tree: unknown): string[] {
  const paths: string[] = [];
  visit(tree, [], (_leaf, path) => paths.push(pathText(path)));
  return paths;
}

/**
 * Merges trees of one structure: `fn` gets the leaves at one path, in the order of the trees. Keys
 * come in the first tree's order.
 *
 * @throws {LeatError} `invalid_argument` naming the path where structures differ; otherwise like
 * {@linkcode mapTree}.
 */
export function zipTrees(trees: readonly unknown[], fn: (leaves: Leaf[]) => unknown): unknown {
  if (trees.length === 0) {
    throw new LeatError("invalid_argument", "zipTrees needs at least one tree");
  }
  return zip(trees, fn, []);
}

/**
 * A copy that shares nothing that can be changed with the tree. Other values than structure and
 * leaves stay what they are. A tree deeper than {@linkcode TREE_DEPTH_MAX}, as with a cycle, is
 * returned itself: no operator can use it.
 */
export function copyTree(tree: unknown): unknown {
  try {
    return copyOf(tree, 0);
  } catch (error) {
    if (error === TOO_DEEP) return tree;
    throw error;
  }
}

/** What walks throw to end at {@linkcode TREE_DEPTH_MAX}. Their callers catch it. */
export const TOO_DEEP: unique symbol = Symbol("too deep");

function copyOf(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (isTypedArray(value)) return copyOfArray(value);
  if (value instanceof Tensor) return copyOfTensor(value);
  if (value instanceof RaggedTensor) {
    return new RaggedTensor(copyOfTensor(value.values), value.rowSplits.slice());
  }
  const isArray = Array.isArray(value);
  if (!isArray && !isPlainObject(value)) return value;
  if (depth === TREE_DEPTH_MAX) throw TOO_DEEP;
  if (isArray) return value.map((item) => copyOf(item, depth + 1));
  const copy = { ...value };
  for (const key of Object.keys(copy)) {
    if (typeof copy[key] === "object") copy[key] = copyOf(copy[key], depth + 1);
  }
  return copy;
}

/** Whether a change of one tree in place may change the other: both have an object or a buffer. */
export function sharesMemory(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || one === null) return false;
  return !mutableParts(one).isDisjointFrom(mutableParts(other));
}

/** Objects, arrays and buffers. Each is visited once: a state may have cycles, and be deep. */
function mutableParts(tree: unknown): Set<unknown> {
  const parts = new Set<unknown>();
  const found = [tree];
  for (const value of found) {
    if (typeof value !== "object" || value === null || parts.has(value)) continue;
    parts.add(value);
    if (ArrayBuffer.isView(value)) parts.add(value.buffer);
    else for (const part of Object.values(value)) found.push(part);
  }
  return parts;
}

function copyOfTensor({ dtype, shape, data }: Tensor): Tensor {
  const copy = Array.isArray(data) ? data.map((item) => copyOf(item, 0)) : copyOfArray(data);
  return new Tensor(dtype, [...shape], copy as typeof data);
}

/**
 * Approximate size of an element in bytes: 8 per number, bigint and entry of structure, 1 per
 * boolean and null, 1 per character of a string, and the bytes of arrays and tensors. For budgets,
 * not for allocation.
 */
export function byteSize(tree: unknown): number {
  let bytes = 0;
  let places = 0;
  visit(tree, [], (leaf, path) => {
    bytes += leafSize(leaf);
    places += path.length;
  });
  return bytes + 8 * places;
}

/** A path into a tree as messages show it: `$` for the root, `$.image`, `$[0]`, `$["odd key"]`. */
export function pathText(path: readonly (string | number)[]): string {
  let text = "$";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else text += /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  }
  return text;
}

type Path = (string | number)[];

function visit(value: unknown, path: Path, fn: (leaf: Leaf, path: Path) => void): void {
  if (isLeaf(value)) {
    fn(value, path);
    return;
  }
  if (Array.isArray(value)) {
    enter(path);
    for (let i = 0; i < value.length; i++) {
      path.push(i);
      visit(value[i], path, fn);
      path.pop();
    }
    return;
  }
  if (!isPlainObject(value)) throw noPlace(value, path);
  enter(path);
  for (const key of Object.keys(value)) {
    path.push(key);
    refuseProto(key, path);
    visit(value[key], path, fn);
    path.pop();
  }
}

function zip(trees: readonly unknown[], fn: (leaves: Leaf[]) => unknown, path: Path): unknown {
  const first = trees[0];
  if (isLeaf(first)) {
    const stranger = trees.findIndex((tree) => !isLeaf(tree));
    if (stranger >= 0) throw differs(trees, stranger, path);
    return fn(trees as Leaf[]);
  }
  if (Array.isArray(first)) return zipArrays(trees, first, fn, path);
  if (isPlainObject(first)) return zipObjects(trees, first, fn, path);
  throw noPlace(first, path);
}

function zipArrays(
  trees: readonly unknown[],
  first: readonly unknown[],
  fn: (leaves: Leaf[]) => unknown,
  path: Path,
): unknown[] {
  enter(path);
  const stranger = trees.findIndex((tree) => !Array.isArray(tree) || tree.length !== first.length);
  if (stranger >= 0) throw differs(trees, stranger, path);
  const result: unknown[] = [];
  for (let i = 0; i < first.length; i++) {
    path.push(i);
    result.push(zip(trees.map((tree) => (tree as unknown[])[i]), fn, path));
    path.pop();
  }
  return result;
}

function zipObjects(
  trees: readonly unknown[],
  first: Record<string, unknown>,
  fn: (leaves: Leaf[]) => unknown,
  path: Path,
): Record<string, unknown> {
  enter(path);
  const keys = Object.keys(first);
  const stranger = trees.findIndex((tree) =>
    !isPlainObject(tree) || Object.keys(tree).length !== keys.length ||
    !keys.every((key) => Object.hasOwn(tree, key))
  );
  if (stranger >= 0) throw differs(trees, stranger, path);
  const result: Record<string, unknown> = {};
  for (const key of keys) {
    path.push(key);
    refuseProto(key, path);
    result[key] = zip(trees.map((tree) => (tree as Record<string, unknown>)[key]), fn, path);
    path.pop();
  }
  return result;
}

function leafSize(leaf: Leaf): number {
  switch (typeof leaf) {
    case "string":
      return leaf.length;
    case "boolean":
      return 1;
    case "object":
      return leaf === null ? 1 : leaf.byteLength;
    default:
      return 8;
  }
}

function enter(path: Path): void {
  if (path.length < TREE_DEPTH_MAX) return;
  throw new LeatError(
    "invalid_argument",
    `an element nests deeper than ${TREE_DEPTH_MAX} levels (TREE_DEPTH_MAX) at ${pathText(path)}`,
  );
}

/** Assigning to `__proto__` would change the copy's prototype instead of giving it a key. */
function refuseProto(key: string, path: Path): void {
  if (key !== "__proto__") return;
  throw new LeatError("invalid_argument", `an element has the key __proto__ at ${pathText(path)}`);
}

function noPlace(value: unknown, path: Path): LeatError {
  return new LeatError(
    "invalid_argument",
    `${kindOf(value)} at ${pathText(path)} has no place in an element; elements are plain ` +
      "objects and arrays of numbers, bigints, booleans, strings, null, typed arrays and tensors",
  );
}

function differs(trees: readonly unknown[], index: number, path: Path): LeatError {
  return new LeatError(
    "invalid_argument",
    `elements 0 and ${index} differ in structure at ${pathText(path)}: ${kindOf(trees[0])} and ` +
      `${kindOf(trees[index])}`,
  );
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (isPlainObject(value)) return `an object of {${Object.keys(value).join(", ")}}`;
  if (typeof value !== "object" || value === null) return String(value ?? typeof value);
  return shownClass(value);
}

/** The properties whose value is not `undefined`, as `exactOptionalPropertyTypes` wants them. */
export function definedFields<T extends object>(
  properties: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(properties).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
