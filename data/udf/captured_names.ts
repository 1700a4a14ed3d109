/**
 * Finds what functions take from their last argument. Rewrites a function, for error messages, so that
 * it gets outer variables as captures.
 */
import { hasSource, inSource, parseFunction } from "./free_names.ts";

/** Messages show whole functions of up to this many characters. */
const SHOWN_LENGTH_MAX = 200;
/** Names of the parameters that a rewritten function does not use, by position. */
const UNUSED: readonly string[] = ["_", "_2"];
/** Limits of the cache of parsed functions: their number, and the length of each in characters. */
const CACHED_MAX = 256;
const CACHED_LENGTH_MAX = 4_096;

/**
 * A function's source with more names in its last argument; `undefined` for a long function, or
 * one whose parameters cannot take more names. `arity`: as for {@linkcode mayUse}.
 *
 * @param source as {@linkcode analyzeFunction} returns it.
 */
export function withCapturedNames(
  source: string,
  names: readonly string[],
  arity: number,
): string | undefined {
  if (source.length > SHOWN_LENGTH_MAX || /\n/.test(source)) return undefined;
  const { node } = parseFunction(source);
  if (node.type !== "ArrowFunctionExpression" && node.type !== "FunctionExpression") {
    return undefined;
  }
  const { params } = node;
  if (params.some(({ type }) => type === "RestElement")) return undefined;
  const list = names.join(", ");
  const extra = params[arity];
  const insert = (at: number, text: string) =>
    `${source.slice(0, inSource(at))}${text}${source.slice(inSource(at))}`;
  if (extra !== undefined) {
    if (extra.type !== "ObjectPattern") return undefined;
    return insert(extra.start + 1, extra.properties.length === 0 ? ` ${list} ` : ` ${list},`);
  }
  const unused = UNUSED.slice(params.length, arity);
  const added = [...unused, `{ ${list} }`].join(", ");
  const last = params.at(-1);
  if (last === undefined) {
    const open = source.indexOf("(", inSource(node.start));
    return `${source.slice(0, open + 1)}${added}${source.slice(open + 1)}`;
  }
  const bare = node.type === "ArrowFunctionExpression" &&
    !/[()]/.test(source.slice(0, inSource(last.end)));
  return bare
    ? `${source.slice(0, inSource(last.start))}(${last.type === "Identifier" ? last.name : ""}, ` +
      `${added})${source.slice(inSource(last.end))}`
    : insert(last.end, `, ${added}`);
}

/** Names in the last argument of every operator's function, see `FunctionExtra`. No captures use them. */
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
