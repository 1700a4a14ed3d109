/**
 * Whether a function only returns the images that it decodes, so that they may be decoded to the memory
 * of a batch. A function that gets hold of an image may keep it, and change it later.
 */
import type { AnyNode } from "acorn";
import { hasSource, parseFunction } from "./free_names.ts";
import { isNode } from "./free_names.ts";

const IMAGE = "image";

/**
 * Whether a function with this source decodes images only as what it returns,
 * `(jpeg, { image }) => image.decode(jpeg)`, or as values of an object that it returns,
 * `async ({ jpeg, label }, { image }) => ({ image: await image.decode(jpeg), label })`. Such a function
 * holds neither an image nor its promise. False if that is not certain.
 *
 * @param arity How many arguments the function takes before the last.
 */
export function returnsImages(source: string, arity: number): boolean {
  // With either name a function can use its last argument without destructuring it.
  if (!hasSource(source) || /\b(arguments|eval)\b/.test(source)) return false;
  let node: AnyNode;
  try {
    ({ node } = parseFunction(source));
  } catch {
    return false;
  }
  if (node.type !== "ArrowFunctionExpression" && node.type !== "FunctionExpression") return false;
  const extra = node.params[arity];
  if (extra?.type !== "ObjectPattern") return false;
  const own = extra.properties.find(takesImage);
  const others = extra.properties.filter((property) => property !== own);
  return own !== undefined && isSafe(node.body, [node]) &&
    others.every((property) => isOther(property) && isSafe(property, [node]));
}

/** A property that cannot be `image` under another name. */
function isOther(property: AnyNode): boolean {
  return property.type === "Property" && !property.computed &&
    property.key.type === "Identifier" && property.key.name !== IMAGE;
}

/** `image` itself, under its own name. */
function takesImage(property: AnyNode): boolean {
  return property.type === "Property" && property.shorthand &&
    property.value.type === "Identifier" &&
    property.value.name === IMAGE;
}

/** Whether each use of `image` in `node` is safe. `path`: the nodes around `node`, the innermost last. */
function isSafe(node: AnyNode, path: readonly AnyNode[]): boolean {
  const parent = path.at(-1)!;
  if (node.type === "Identifier" && node.name === IMAGE) {
    return isKey(node, parent) || isOwnCall(node, path);
  }
  const inside = [...path, node];
  return childrenOf(node).every((child) => isSafe(child, inside));
}

/** Whether `node` is the name of a property, not a use of the variable. */
function isKey(node: AnyNode, parent: AnyNode): boolean {
  if (parent.type === "MemberExpression") return parent.property === node && !parent.computed;
  return parent.type === "Property" && parent.key === node && !parent.computed && !parent.shorthand;
}

/**
 * Whether `node` is in a call `image.decode(…)` that is returned, or of another method of `image`.
 */
function isOwnCall(node: AnyNode, path: readonly AnyNode[]): boolean {
  const [member, call, ...around] = path.toReversed();
  if (member?.type !== "MemberExpression" || member.object !== node || member.computed) {
    return false;
  }
  if (call?.type !== "CallExpression" || call.callee !== member) return false;
  if (member.property.type !== "Identifier") return false;
  if (member.property.name !== "decode") return true;
  const [outer, property, object, end] = around;
  if (outer?.type !== "AwaitExpression") return isReturned(call, outer, path);
  const isValue = property?.type === "Property" && property.value === outer &&
    object?.type === "ObjectExpression";
  return isValue ? isReturned(object, end, path) : isReturned(outer, property, path);
}

/** Whether the function returns the value of `node`, which `parent` contains. */
function isReturned(node: AnyNode, parent: AnyNode | undefined, path: readonly AnyNode[]): boolean {
  const [fn] = path;
  if (parent === fn) return (fn as { body?: unknown }).body === node;
  return parent?.type === "ReturnStatement" && !path.slice(1).some(isFunction);
}

function isFunction({ type }: AnyNode): boolean {
  return type === "ArrowFunctionExpression" || type === "FunctionExpression" ||
    type === "FunctionDeclaration";
}

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node as object).flat().filter(isNode);
}
