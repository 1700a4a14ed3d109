/** Tests of the assertion seam itself: what it accepts, what it refuses, what it returns. */

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertExists,
  assertGreater,
  assertInstanceOf,
  assertLess,
  assertMatch,
  assertNotEquals,
  assertNotMatch,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
  fail,
} from "../assert.ts";

const WRONG_USES: Record<string, () => void> = {
  assert: () => assert(0),
  assertAlmostEquals: () => assertAlmostEquals(1, 1.1),
  assertEquals: () => assertEquals({ a: [1] }, { a: [2] }),
  "assertEquals of typed arrays": () => assertEquals(Uint8Array.of(1), Uint8Array.of(2)),
  assertExists: () => assertExists(null),
  assertGreater: () => assertGreater(1, 1),
  assertInstanceOf: () => assertInstanceOf(1, Date),
  assertLess: () => assertLess(Number.NaN, 1),
  assertMatch: () => assertMatch("a", /b/),
  assertNotEquals: () => assertNotEquals([1], [1]),
  assertNotMatch: () => assertNotMatch("a", /a/),
  assertStrictEquals: () => assertStrictEquals({}, {}),
  assertStringIncludes: () => assertStringIncludes("abc", "x"),
  "assertThrows of one that returns": () => assertThrows(() => 1),
  "assertThrows of another class": () => assertThrows(() => fail(), TypeError),
  "assertThrows of another message": () => assertThrows(() => fail("a"), Error, "b"),
  "assertThrows of a promise": () => assertThrows(() => Promise.resolve()),
  fail: () => fail(),
};

for (const [name, use] of Object.entries(WRONG_USES)) {
  Deno.test(`the assertion seam refuses: ${name}`, () => {
    try {
      use();
    } catch (error) {
      if (error instanceof Error && error.name === "AssertionError") return;
      throw error;
    }
    throw new Error(`${name} passed what it had to refuse`);
  });
}

Deno.test("the assertion seam accepts what holds", () => {
  assert(1);
  assertAlmostEquals(1, 1 + 1e-9);
  assertAlmostEquals(1e-9, 0);
  assertAlmostEquals(Infinity, Infinity);
  assertEquals({ a: [Uint8Array.of(1), Number.NaN] }, { a: [Uint8Array.of(1), Number.NaN] });
  assertExists(0);
  assertGreater(2, 1);
  assertInstanceOf(new Date(0), Date);
  assertLess(1, 2);
  assertMatch("a", /a/);
  assertNotEquals<unknown>([1], [2]);
  assertNotMatch("a", /b/);
  assertStrictEquals(Number.NaN, Number.NaN);
  assertStringIncludes("abc", "b");
});

Deno.test("assertThrows and assertRejects return the error", async () => {
  const error = new TypeError("a wrong type");
  const thrown: TypeError = assertThrows(
    () => {
      throw error;
    },
    TypeError,
    "wrong",
  );
  assertStrictEquals(thrown, error);
  const reason: TypeError = await assertRejects(() => Promise.reject(error), TypeError, "wrong");
  assertStrictEquals(reason, error);
});

Deno.test("assertRejects refuses a fulfilled promise, another class and a plain throw", async () => {
  await assertRejects(() => assertRejects(() => Promise.resolve(1)), Error, "fulfilled with 1");
  await assertRejects(
    () => assertRejects(() => Promise.reject(new Error("a")), TypeError),
    Error,
    "class TypeError",
  );
  const early = await assertRejects(() =>
    assertRejects(() => {
      throw new RangeError("before any promise");
    })
  );
  assertInstanceOf(early, RangeError);
});

Deno.test("an assertion narrows the type of what it asserts", () => {
  const value: string | undefined = ["text"][0];
  assertExists(value);
  assertEquals(value.length, 4);
  const error: unknown = new TypeError("x");
  assertInstanceOf(error, TypeError);
  assertEquals(error.message, "x");
});
