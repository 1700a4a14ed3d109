/**
 * The assertions that every test imports: `@std/assert`, and where JSR cannot be reached the same
 * names over `node:assert`.
 *
 * The package is imported by a specifier that static analysis does not see, so neither
 * `deno check`, nor a first run, nor `--frozen` asks JSR for anything. An unreachable JSR is
 * refused within a tenth of a second, once per process. Where a firewall drops packets instead of
 * refusing them, `deno task test --no-remote` spares the wait.
 *
 * The two differ in corners (`-0` against `0`, objects without a prototype): tests depend on
 * neither.
 */

import {
  AssertionError,
  deepStrictEqual,
  doesNotMatch,
  match,
  notDeepStrictEqual,
  ok,
  strictEqual,
} from "node:assert";

/** A class whose instances an error is expected to be. */
// deno-lint-ignore no-explicit-any -- only `any` parameters admit every class
export type ClassOf<T> = abstract new (...args: any[]) => T;

interface Assertions {
  assert(condition: unknown, message?: string): void;
  assertEquals(actual: unknown, expected: unknown, message?: string): void;
  assertNotEquals(actual: unknown, expected: unknown, message?: string): void;
  assertStrictEquals(actual: unknown, expected: unknown, message?: string): void;
  assertMatch(actual: string, pattern: RegExp, message?: string): void;
  assertNotMatch(actual: string, pattern: RegExp, message?: string): void;
}

/** Constant, but not a literal type: the compiler and Deno's module graph must not resolve it. */
const STD_ASSERT: string = "@std/assert";

const assertions: Assertions = await loadAssertions();

async function loadAssertions(): Promise<Assertions> {
  try {
    return await import(STD_ASSERT);
  } catch {
    return {
      assert: ok,
      assertEquals: deepStrictEqual,
      assertNotEquals: notDeepStrictEqual,
      assertStrictEquals: strictEqual,
      assertMatch: match,
      assertNotMatch: doesNotMatch,
    };
  }
}

/** Left out, not undefined, if there is none: `node:assert` refuses an undefined message. */
type Message = [message?: string];

/** Asserts that `condition` is truthy, and narrows its type to that. */
export function assert(condition: unknown, ...message: Message): asserts condition {
  assertions.assert(condition, ...message);
}

/** Asserts that two values are structurally equal. */
export function assertEquals<T>(actual: T, expected: T, ...message: Message): void {
  assertions.assertEquals(actual, expected, ...message);
}

/** Asserts that two values are not structurally equal. */
export function assertNotEquals<T>(actual: T, expected: T, ...message: Message): void {
  assertions.assertNotEquals(actual, expected, ...message);
}

/** Asserts that two values are the same by `Object.is`. */
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  ...message: Message
): asserts actual is T {
  assertions.assertStrictEquals(actual, expected, ...message);
}

/** Asserts that `actual` matches `pattern`. */
export function assertMatch(actual: string, pattern: RegExp, ...message: Message): void {
  assertions.assertMatch(actual, pattern, ...message);
}

/** Asserts that `actual` does not match `pattern`. */
export function assertNotMatch(actual: string, pattern: RegExp, ...message: Message): void {
  assertions.assertNotMatch(actual, pattern, ...message);
}

/** Asserts that `actual` contains `part`. */
export function assertStringIncludes(actual: string, part: string, message?: string): void {
  if (!actual.includes(part)) {
    fail(`Expected a text with ${quote(part)}, got ${quote(actual)}${suffix(message)}`);
  }
}

/** Asserts that `value` is neither `null` nor `undefined`. */
export function assertExists<T>(value: T, message?: string): asserts value is NonNullable<T> {
  if (value === null || value === undefined) {
    fail(`Expected a value, got ${value}${suffix(message)}`);
  }
}

/** Asserts that `value` is an instance of `expected`. */
export function assertInstanceOf<T>(
  value: unknown,
  expected: ClassOf<T>,
  message?: string,
): asserts value is T {
  if (!(value instanceof expected)) {
    fail(`Expected an instance of ${expected.name}, got ${describe(value)}${suffix(message)}`);
  }
}

/** Asserts that `actual > bound`. */
export function assertGreater(actual: number, bound: number, message?: string): void {
  if (!(actual > bound)) fail(`Expected more than ${bound}, got ${actual}${suffix(message)}`);
}

/** Asserts that `actual < bound`. */
export function assertLess(actual: number, bound: number, message?: string): void {
  if (!(actual < bound)) fail(`Expected less than ${bound}, got ${actual}${suffix(message)}`);
}

/** Asserts that two numbers differ by no more than `tolerance`, by default `1e-7` of `expected`. */
export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance = expected === 0 || !Number.isFinite(expected) ? 1e-7 : Math.abs(expected) * 1e-7,
  message?: string,
): void {
  if (Object.is(actual, expected) || Math.abs(actual - expected) <= tolerance) return;
  fail(`Expected ${expected} within ${tolerance}, got ${actual}${suffix(message)}`);
}

/** Asserts that `fn` throws, and returns what it threw. */
export function assertThrows(fn: () => unknown): unknown;
/** Asserts that `fn` throws an `ErrorClass` whose message includes `part`, and returns it. */
export function assertThrows<E extends Error>(
  fn: () => unknown,
  ErrorClass: ClassOf<E>,
  part?: string,
): E;
export function assertThrows<E extends Error>(
  fn: () => unknown,
  ErrorClass?: ClassOf<E>,
  part?: string,
): unknown {
  let returned: unknown;
  try {
    returned = fn();
  } catch (error) {
    return checkError(error, ErrorClass, part);
  }
  if (isThenable(returned)) {
    fail("assertThrows was given a function that returns a promise: use assertRejects");
  }
  fail(`Expected the function to throw, it returned ${describe(returned)}`);
}

/** Asserts that the promise of `fn` is rejected, and returns the reason. */
export function assertRejects(fn: () => PromiseLike<unknown>): Promise<unknown>;
/** Asserts that the promise of `fn` is rejected with an `ErrorClass` whose message includes `part`. */
export function assertRejects<E extends Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: ClassOf<E>,
  part?: string,
): Promise<E>;
export async function assertRejects<E extends Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass?: ClassOf<E>,
  part?: string,
): Promise<unknown> {
  // Outside the `try`: a throw before there is a promise is not a rejection.
  const promise = fn();
  if (!isThenable(promise)) {
    fail(`Expected a promise that is rejected, got ${describe(promise)}`);
  }
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return checkError(error, ErrorClass, part);
  }
  fail(`Expected the promise to be rejected, it was fulfilled with ${describe(value)}`);
}

/** Fails the test. */
export function fail(message = "Failed"): never {
  throw new AssertionError({ message });
}

function checkError<E extends Error>(
  error: unknown,
  ErrorClass: ClassOf<E> | undefined,
  part: string | undefined,
): unknown {
  if (ErrorClass !== undefined) {
    if (!(error instanceof ErrorClass)) {
      throw new AssertionError({
        message: `Expected an error of class ${ErrorClass.name}, got ${describe(error)}`,
        actual: error,
      });
    }
    if (part !== undefined) assertStringIncludes(error.message, part);
  }
  return error;
}

function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value &&
    typeof value.then === "function";
}

function describe(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return Deno.inspect(value, { depth: 2, strAbbreviateSize: 200 });
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function suffix(message: string | undefined): string {
  return message === undefined ? "" : `: ${message}`;
}
