/**
 * Mutates plain data: JSON, and the content of envelopes. The shape stays mostly valid, so that a mutant
 * passes the first check.
 */
import { isPlainObject } from "../../core/tree.ts";
import type { SimRandom } from "../../sim/engine/random.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { mutateBytes } from "./mutate_bytes.ts";

/** Stands for arrays that are nested too deeply to be copied. See `writeJson`. */
const DEEP = "leat fuzz: deep";
const DEEP_BRACKETS = 20_000;

/** Replacements for values. All of them are JSON. */
const OTHERS: readonly unknown[] = [
  ...[null, true, false, 0, -1, 0.5, 1e308, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53)],
  ...["", "x", "\u2028", "__proto__", "constructor", "9".repeat(40), [], {}, [null], [[]]],
  ...[{ length: 3 }, { then: 1 }, { $number: "NaN" }, { $number: "Infinity" }, { $bigint: "-1" }],
  ...[{ $undefined: true }, { $tensor: { dtype: "float32", shape: [-1], data: null } }],
  DEEP,
  ...[{ $float64: "AAAA" }, { $spec: { dtype: "uint8", shape: [null] } }],
];

/** Maximum depth of values that are changed. */
const VISITED_DEPTH_MAX = 100;

/** Serialises a tree as JSON. */
export function writeJson(tree: unknown): Uint8Array {
  const deep = "[".repeat(DEEP_BRACKETS) + "]".repeat(DEEP_BRACKETS);
  return new TextEncoder().encode(
    (JSON.stringify(tree) ?? "null").replaceAll(JSON.stringify(DEEP), deep),
  );
}

/** A position in a tree. */
interface Spot {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

/**
 * Returns a copy with one to three changes.
 *
 * @param others Further replacements for values.
 */
export function mutateTree<T>(tree: T, random: SimRandom, others: readonly unknown[] = []): T {
  const root = structuredClone({ tree });
  for (let changes = 1 + random.int(3); changes > 0; changes--) {
    const spots = spotsIn(root);
    if (spots.length === 0) break;
    change(spots[random.int(spots.length)]!, spots, random, [...OTHERS, ...others]);
  }
  return root.tree;
}

/** Returns an encoded message with changes in its tree, or in its bytes if the tree cannot be encoded. */
export function mutateMessage(
  input: Uint8Array,
  random: SimRandom,
  seeds: readonly Uint8Array[],
): Uint8Array {
  const others = decodeMessage(seeds[random.int(seeds.length)]!) as unknown[];
  try {
    return encodeMessage(mutateTree(decodeMessage(input), random, others));
  } catch {
    return mutateBytes(input, random, seeds);
  }
}

function spotsIn(root: unknown): Spot[] {
  const spots: Spot[] = [];
  const visit = (value: unknown, depth: number) => {
    if (depth > VISITED_DEPTH_MAX) return;
    if (Array.isArray(value)) {
      for (let key = 0; key < value.length; key++) {
        spots.push({ holder: value, key });
        visit(value[key], depth + 1);
      }
    } else if (isPlainObject(value)) {
      for (const key of Object.keys(value)) {
        spots.push({ holder: value, key });
        visit(value[key], depth + 1);
      }
    }
  };
  visit(root, 0);
  return spots;
}

function change(
  { holder, key }: Spot,
  spots: readonly Spot[],
  random: SimRandom,
  others: readonly unknown[],
): void {
  const values = holder as Record<string | number, unknown>;
  const value = values[key];
  switch (random.int(6)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(key as number, 1);
      else if (key !== "tree" || spots.length > 1) delete values[key];
      return;
    case 1: {
      const from = spots[random.int(spots.length)]!;
      values[key] = structuredClone((from.holder as Record<string | number, unknown>)[from.key]);
      return;
    }
    case 2:
      if (Array.isArray(holder)) holder.splice(key as number, 0, structuredClone(value));
      else define(values, `${key}x`, structuredClone(value));
      return;
    case 3:
      values[key] = near(value, random);
      return;
    case 4:
      values[key] = nested(value, random);
      return;
    default:
      values[key] = structuredClone(others[random.int(others.length)]);
  }
}

/** Returns another value of the same type. */
function near(value: unknown, random: SimRandom): unknown {
  if (typeof value === "number") {
    return random.pick([value + 1, value - 1, -value, value * 2 ** 32, value + 0.5, value * 1e9]);
  }
  if (typeof value === "bigint") return random.pick([value + 1n, -value, value << 32n]);
  if (typeof value === "boolean") return !value;
  if (typeof value === "string") {
    const bytes = new TextEncoder().encode(value);
    return new TextDecoder().decode(mutateBytes(bytes, random, [bytes]));
  }
  if (value instanceof Uint8Array) return mutateBytes(value, random, [value]).slice();
  if (Array.isArray(value)) return random.chance(0.5) ? value.toReversed() : [...value, ...value];
  return value;
}

/** Nests the value in one array, or in many. */
function nested(value: unknown, random: SimRandom): unknown {
  let outer = value;
  for (let depth = random.pick([1, 1, 1, 2, 300, 1_000]); depth > 0; depth--) outer = [outer];
  return outer;
}

function define(object: Record<string | number, unknown>, key: string, value: unknown): void {
  Object.defineProperty(object, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}
