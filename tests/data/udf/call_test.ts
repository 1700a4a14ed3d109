/** Calls of user functions: how functions and their captures are loaded. */
import { RandomStream } from "../../../core/philox.ts";
import { OperatorMeter } from "../../../data/iterators/stats.ts";
import { Call } from "../../../data/udf/call.ts";
import { Dataset, LeatError, python, udf } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";

const FIXTURE = import.meta.resolve("./fixture_functions.ts");

const UNLOADABLE = {
  "at once": { fn: () => 1, captures: { f: python("/code/augment.py", "augment") } },
  later: { fn: udf("data:text/javascript,export const g = 1", "f") },
};

for (const [when, fn] of Object.entries(UNLOADABLE)) {
  Deno.test(`Call names and counts each element whose function ${when} fails to load`, async () => {
    const stats = new OperatorMeter("map", 3);
    const context = { host: new DenoHost(), stats, callStream: () => new RandomStream(1n, []) };
    const call = new Call(fn, context);
    const calls = [() => call.one(5), () => call.one(6), () => call.again(0, 5)];
    for (const [made, index] of [0, 1, 0].entries()) {
      const { message } = await assertRejects(async () => await calls[made]!(), LeatError);
      assertStringIncludes(message, `map (operator 3): the function failed at element ${index}: `);
      assertEquals(message.match(/failed at element/g)?.length, 1);
      assertEquals(stats.read(0).errors, made + 1);
    }
  });
}

/** Ways to throw a value that throws when it is asked what it is. */
const HOSTILE: Record<string, (x: number) => number> = {
  "a proxy": (x) => {
    const ask = () => {
      throw 2;
    };
    if (x === 1) throw new Proxy({}, { get: ask, getPrototypeOf: ask });
    return x;
  },
  "a revoked proxy": (x) => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    if (x === 1) throw proxy;
    return x;
  },
};

for (const [what, fn] of Object.entries(HOSTILE)) {
  for (const numParallelCalls of [1, 2]) {
    const calls = `${numParallelCalls} calls at once`;
    Deno.test(`Call names operator and element where a function throws ${what}, with ${calls}`, async () => {
      await using iterator = Dataset.range(3).map(fn, { numParallelCalls }).iterator();
      assertEquals(await iterator.next(), { done: false, value: 0 });
      const { code, message } = await assertRejects(() => iterator.next(), LeatError);
      assertEquals(code, "unknown");
      assertStringIncludes(message, "map (operator 0): the function failed at element 1: ");
      assertEquals(await iterator.next(), { done: false, value: 2 });
    });
  }
}

Deno.test("an iterator walks captures once, for its nested datasets too, and the next one again", async () => {
  let walks = 0;
  const scores: Record<string, unknown> = { a: 1 };
  const words = new Proxy(scores, { ownKeys: (target) => (walks++, Reflect.ownKeys(target)) });
  const dataset = Dataset.range(5).flatMap(
    (x, { Dataset, words }) =>
      Dataset.from([x]).map((x, { words: { a } }) => typeof a === "function" ? a(x) : x, {
        captures: { words },
      }),
    { captures: { words } },
  );
  assertEquals(await Array.fromAsync(dataset), [0, 1, 2, 3, 4]);
  assertEquals(walks, 1);
  scores.a = udf(FIXTURE, "double");
  assertEquals(await Array.fromAsync(dataset), [0, 2, 4, 6, 8]);
});
