/** `mapConcurrent`. */

import { mapConcurrent } from "../../core/map_concurrent.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

Deno.test("mapConcurrent keeps the order of items, and limits the concurrent calls", async () => {
  let open = 0, most = 0;
  const answers = await mapConcurrent([5, 1, 4, 2, 3], 2, async (turns) => {
    most = Math.max(most, ++open);
    for (let i = 0; i < turns; i++) await turn();
    open--;
    return turns * 10;
  });
  assertEquals(answers, [50, 10, 40, 20, 30]);
  assertEquals(most, 2);
  assertEquals(await mapConcurrent([], 2, () => Promise.resolve(1)), []);
});

Deno.test("mapConcurrent starts no call after a failure", async () => {
  const begun: number[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const work = mapConcurrent([0, 1, 2, 3, 4], 2, async (item) => {
    begun.push(item);
    if (item === 1) throw new Error("no");
    await held;
  });
  await assertRejects(() => work, Error, "no");
  release();
  await turn();
  assertEquals(begun, [0, 1]);
});
