/** Calls of user functions: errors of functions that cannot be loaded. */
import { RandomStream } from "../../../core/philox.ts";
import { OperatorMeter } from "../../../data/iterators/stats.ts";
import { Call } from "../../../data/udf/call.ts";
import { LeatError, python, udf } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";

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
