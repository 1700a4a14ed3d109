/** Stable SHA-256 digests of bytes and of plain data. */
import { nodeCrypto } from "./builtins.ts";
import { dtypeOf, type TypedArray } from "./dtype.ts";
import { LeatError } from "./error.ts";
import { shownClass } from "./shown_text.ts";

/** The SHA-256 of `bytes` (text as UTF-8), as 64 hexadecimal digits. */
export function hashBytes(bytes: Uint8Array | string): string {
  return nodeCrypto().hash("sha256", bytes);
}

/**
 * The SHA-256 of a value's {@linkcode canonicalJson}: equal for equal data, whatever the order of
 * its keys.
 */
export function hashJson(value: unknown): string {
  return hashBytes(canonicalJson(value));
}

/**
 * JSON with keys in code-unit order and no spaces. Values that JSON lacks become objects with one
 * `$` key: `{"$number":"NaN"}` (also the infinities and -0), `{"$bigint":"1"}`, `{"$float32":"<hex
 * of the bytes>"}` for typed arrays. Keys that begin with `$` get a second `$`, so that different
 * values have different JSON. Keys whose value is `undefined` are left out.
 *
 * @throws {LeatError} `invalid_argument` for anything else (functions, class instances, `undefined`
 * in an array), naming the path.
 */
export function canonicalJson(value: unknown): string {
  return spell(value, "$");
}

function spell(value: unknown, path: string): string {
  switch (typeof value) {
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? JSON.stringify(value)
        : `{"$number":"${Object.is(value, -0) ? "-0" : value}"}`;
    case "bigint":
      return `{"$bigint":"${value}"}`;
    case "object":
      return value === null ? "null" : spellObject(value, path);
    default:
      throw refused(path, typeof value);
  }
}

function spellObject(value: object, path: string): string {
  if (Array.isArray(value)) {
    return `[${value.map((item, i) => spell(item, `${path}[${i}]`)).join(",")}]`;
  }
  const dtype = dtypeOf(value);
  if (dtype !== undefined) {
    const { buffer, byteOffset, byteLength } = value as TypedArray;
    return `{"$${dtype}":"${new Uint8Array(buffer, byteOffset, byteLength).toHex()}"}`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw refused(path, shownClass(value));
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  entries.sort(([a], [b]) => a < b ? -1 : 1);
  const spelled = entries.map(([key, item]) => {
    const name = JSON.stringify(key.startsWith("$") ? `$${key}` : key);
    return `${name}:${spell(item, `${path}.${key}`)}`;
  });
  return `{${spelled.join(",")}}`;
}

function refused(path: string, found: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `cannot fingerprint ${found} at ${path}; only plain data has a fingerprint`,
  );
}
