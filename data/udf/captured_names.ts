/**
 * Finds what functions take from their last argument. Rewrites a function, for error messages, so that
 * it gets outer variables as captures.
 */
import { hasSource, inSource, parseFunction } from "./free_names.ts";

/** Messages show whole functions of up to this many characters. */
const SHOWN_LENGTH_MAX = 200;
/** Limits of the cache of parsed functions: their number, and the length of each in characters. */
const CACHED_MAX = 256;
const CACHED_LENGTH_MAX = 4_096;

/**
 * A function's source with more names in its last parameter; `undefined` for a long function, or
 * one whose parameters cannot take more names.
 *
 * @param source as {@linkcode analyzeFunction} returns it.
 */
export function withCapturedNames(source: string, names: readonly string[]): string | undefined {
  if (source.length > SHOWN_LENGTH_MAX || /\n/.test(source)) return undefined;
  const { node } = parseFunction(source);
  if (node.type !== "ArrowFunctionExpression" && node.type !== "FunctionExpression") {
    return undefined;
  }
  const list = names.join(", ");
  const last = node.params.at(-1);
  const insert = (at: number, text: string) =>
    `${source.slice(0, inSource(at))}${text}${source.slice(inSource(at))}`;
  if (last === undefined) {
    const open = source.indexOf("(", inSource(node.start));
    return `${source.slice(0, open + 1)}_, { ${list} }${source.slice(open + 1)}`;
  }
  if (last.type === "RestElement") return undefined;
  if (last.type === "ObjectPattern" && node.params.length > 1) {
    return insert(last.start + 1, last.properties.length === 0 ? ` ${list} ` : ` ${list},`);
  }
  const bare = node.type === "ArrowFunctionExpression" &&
    !/[()]/.test(source.slice(0, inSource(last.end)));
  return bare
    ? `${source.slice(0, inSource(last.start))}(${last.type === "Identifier" ? last.name : ""}, ` +
      `{ ${list} })${source.slice(inSource(last.end))}`
    : insert(last.end, `, { ${list} }`);
}

/** Names in the last argument of every function, see `FunctionExtra`. Captures cannot use them. */
export const GIVEN_NAMES: readonly string[] = [
  ...["Dataset", "tensor", "random", "index", "image", "tensors", "audio", "example"],
];

/** Those of `GIVEN_NAMES` whose code is loaded only for functions that may use them. */
export const TOOLBOX_NAMES: readonly string[] = ["image", "tensors"];

/**
 * Whether a function may use one of `names` of its last argument: it destructures that name, keeps the
 * whole argument, or has no source. `arity`: the number of parameters before the last argument.
 */
export function mayUse(names: readonly string[], source: string, arity: number): boolean {
  const taken = namesTaken(source, arity);
  return taken === "any" || taken.some(({ name }) => names.includes(name));
}

/**
 * The names without a default that a function destructures from its last argument. None if the
 * function keeps the whole argument, or has no source. `arity`: as for {@linkcode mayUse}.
 */
export function requiredNames(source: string, arity: number): string[] {
  const taken = namesTaken(source, arity);
  if (taken === "any") return [];
  return taken.filter(({ hasDefault }) => !hasDefault).map(({ name }) => name);
}

/** A name that a function destructures from its last argument. */
interface TakenName {
  readonly name: string;
  readonly hasDefault: boolean;
}

/** The cache, by arity and source: every task of a job calls the same functions. */
const taken = new Map<string, readonly TakenName[] | "any">();

function namesTaken(source: string, arity: number): readonly TakenName[] | "any" {
  if (source.length > CACHED_LENGTH_MAX) return namesIn(source, arity);
  const key = `${arity} ${source}`;
  let names = taken.get(key);
  if (names === undefined) {
    if (taken.size >= CACHED_MAX) taken.clear();
    taken.set(key, names = namesIn(source, arity));
  }
  return names;
}

/** The names that a function destructures from its last argument; `any` if that cannot be told. */
function namesIn(source: string, arity: number): readonly TakenName[] | "any" {
  if (!hasSource(source) || /\barguments\b/.test(source)) return "any";
  let node;
  try {
    ({ node } = parseFunction(source));
  } catch {
    return "any";
  }
  if (node.type !== "ArrowFunctionExpression" && node.type !== "FunctionExpression") return "any";
  const isRest = node.params.slice(0, arity).some(({ type }) => type === "RestElement");
  const param = node.params[arity];
  // Every call has a last argument, so its default is never used.
  const last = param?.type === "AssignmentPattern" ? param.left : param;
  if (last === undefined) return isRest ? "any" : [];
  if (last.type !== "ObjectPattern") return "any";
  const names: TakenName[] = [];
  for (const property of last.properties) {
    if (property.type === "RestElement" || property.key.type !== "Identifier") return "any";
    if (property.computed) return "any";
    const hasDefault = property.value.type === "AssignmentPattern";
    names.push({ name: property.key.name, hasDefault });
  }
  return names;
}
