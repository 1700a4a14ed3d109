/** `ignoreErrors`: which errors it drops and counts, and its limits. */

import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn, turn } from "../lib/collect.ts";

const odd = (count: number, failing: number[]) => Dataset.range(count).map(failingOn(...failing));

Deno.test("ignoreErrors drops and counts failed elements, synchronous or not", async () => {
  for (
    const input of [
      odd(6, [0, 3, 5]),
      odd(6, []).map(async (x) => {
        await turn();
        return failingOn(0, 3, 5)(x);
      }),
    ]
  ) {
    await using iterator = input.ignoreErrors().iterator();
    assertEquals(await Array.fromAsync(iterator), [1, 2, 4]);
    assertEquals(iterator.stats().map(({ errors }) => errors).slice(0, 2), [3, 3]);
  }
  assertEquals(await collect(odd(3, [0, 1, 2]).ignoreErrors()), []);
  const batches = odd(40, [7]).ignoreErrors().batch(20).map((x) => x.size);
  assertEquals(await collect(batches), [20, 19]);
});

Deno.test("ignoreErrors does not affect errors of later operators", async () => {
  const after = Dataset.range(3).ignoreErrors().map(failingOn(1));
  assertEquals(await collectWithErrors(after), [0, "error data_loss", 2]);
});

Deno.test("ignoreErrors ends with an error once more fail than maxErrors", async () => {
  const make = () => odd(9, [1, 2, 5]).ignoreErrors({ maxErrors: 2 });
  assertEquals(await collectWithErrors(make()), [0, 3, 4, "error resource_exhausted"]);
  const error = await assertRejects(() => collect(make()), LeatError);
  assertEquals(error.details, { errors: 3, elements: 3 });
  assertEquals((error.cause as LeatError).code, "data_loss");
  assert(error.message.startsWith(
    "ignoreErrors: 3 of 6 elements failed, but maxErrors allows 2. The last of them: map",
  ));
  assertEquals(await collect(odd(9, [1, 2, 5]).ignoreErrors({ maxErrors: 3 })), [0, 3, 4, 6, 7, 8]);
});

Deno.test("ignoreErrors counts each repetition apart, but all of a repeat before it together", async () => {
  const limits = { maxErrors: 2 };
  assertEquals(await collect(odd(3, [1]).ignoreErrors(limits).repeat(3)), [0, 2, 0, 2, 0, 2]);
  const together = await collectWithErrors(odd(3, [1]).repeat(3).ignoreErrors(limits));
  assertEquals(together, [0, 2, 0, 2, 0, "error resource_exhausted"]);
});

Deno.test("ignoreErrors enforces maxFraction from the hundredth element on and at the end", async () => {
  const each = (every: number) => (x: number) => {
    if (x % every === 0) throw new LeatError("data_loss", `no ${x}`);
    return x;
  };
  const count = async (every: number, of: number, maxFraction: number) => {
    const input = Dataset.range(1, of + 1).map(each(every));
    const answers = await collectWithErrors(input.ignoreErrors({ maxFraction }));
    return [answers.length, typeof answers.at(-1) === "string"];
  };
  assertEquals(await count(10, 1000, 0.1), [900, false]);
  assertEquals(await count(10, 1000, 0.05), [91, true]); // 90 elements, and the error
  assertEquals(await count(10, 50, 0.1), [45, false]);
  assertEquals(await count(10, 50, 0.05), [46, true]);
  assertEquals(await count(1, 1, 0), [1, true]);
  assertEquals(await count(1, 0, 0), [0, false]);
});

Deno.test("ignoreErrors writes to the host's log if configured", async () => {
  const lines: string[] = [];
  class Listening extends DenoHost {
    override warn(message: string): void {
      lines.push(message);
    }
  }
  const host = new Listening();
  for (const logWarning of [false, true]) {
    const { node } = odd(3, [1]).ignoreErrors({ logWarning });
    assertEquals(await Array.fromAsync(openIterator(node, { host })), [0, 2]);
    assertEquals(lines.length, Number(logWarning));
  }
  assert(lines[0]!.startsWith("ignoreErrors: left out an element that failed: data_loss: map"));
});

Deno.test("ignoreErrors refuses invalid limits", () => {
  const range = Dataset.range(1);
  assertThrows(() => range.ignoreErrors({ maxErrors: -1 }), LeatError, "maxErrors");
  assertThrows(() => range.ignoreErrors({ maxFraction: 1.5 }), LeatError, "maxFraction");
  assertThrows(() => range.ignoreErrors({ maxFraction: NaN }), LeatError, "maxFraction");
});

Deno.test("ignoreErrors continues from every checkpoint with its counts", async () => {
  for (const maxErrors of [1, 9]) {
    await assertCheckpointLaw(() =>
      odd(9, [1, 4, 5]).shuffle(3).ignoreErrors({ maxErrors, maxFraction: 0.3 }).shuffle(2)
    );
  }
});
