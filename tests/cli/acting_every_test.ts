/** The samples of a soak run, with actions of the test in their place. */
import { actingEvery } from "../../cli/soak/acting_every.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const PERIOD_MS = 1;
const never = () => new Promise<never>(() => {});

Deno.test("actingEvery rejects at once when an action fails", async () => {
  const act = () => Promise.reject(new Error("cannot act"));
  await assertRejects(() => actingEvery(PERIOD_MS, act, never), Error, "cannot act");
});

/** Repeats an action that fails after what runs beside it has ended. */
function failingLast<T>(result: () => T): Promise<T> {
  const begun = Promise.withResolvers<void>();
  const action = Promise.withResolvers<void>();
  const act = () => {
    begun.resolve();
    return action.promise;
  };
  return actingEvery(PERIOD_MS, act, async () => {
    await begun.promise;
    setTimeout(() => action.reject(new Error("cannot act")));
    return result();
  });
}

Deno.test("actingEvery waits for the last action, and rejects when that fails", async () => {
  await assertRejects(() => failingLast(() => "done"), Error, "cannot act");
});

Deno.test("actingEvery rejects with the error of what it runs, even when the last action fails too", async () => {
  const result = () => {
    throw new Error("cannot run");
  };
  await assertRejects(() => failingLast(result), Error, "cannot run");
});

Deno.test("actingEvery skips a repetition while an action runs", async () => {
  let [running, runningMax, count] = [0, 0, 0];
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  const act = async () => {
    runningMax = Math.max(runningMax, ++running);
    await new Promise((ends) => setTimeout(ends, 3 * PERIOD_MS));
    running--;
    if (++count === 3) resolve();
  };
  await actingEvery(PERIOD_MS, act, () => enough);
  assertEquals([runningMax, running], [1, 0]);
});
