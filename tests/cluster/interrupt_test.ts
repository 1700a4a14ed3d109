/**
 * A trainer that is interrupted in the middle of reading, as by Ctrl-C.
 *
 * @module
 */
import type { DispatcherDescription } from "../../actors/dispatcher/protocol.ts";
import { assertEquals } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { all, type Part, soon, startDispatcher, startWorkers } from "./lib.ts";

async function stateOf({ address }: Part): Promise<DispatcherDescription> {
  const response = await fetch(`${address.replace("ws:", "http:")}/state`);
  return await response.json();
}

/** Resolves when the workers hold so many tasks together. */
async function untilTasks(dispatcher: Part, count: number): Promise<void> {
  for (;;) {
    const { workers } = await stateOf(dispatcher);
    if (workers.reduce((sum, { tasks }) => sum + tasks, 0) === count) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

Deno.test("a trainer that is interrupted ends without noise, and its tasks end on the workers", async () => {
  await using dispatcher = await startDispatcher("--client-timeout-ms", "1500");
  await using _workers = all(await startWorkers(dispatcher, 2));
  await using trainer = startChild("tests/cluster/fixture_trainer.ts", {
    args: [dispatcher.address, "for ever"],
  });
  await soon("elements", trainer.line(/read 10000/));
  await soon("its tasks", untilTasks(dispatcher, 2));
  trainer.kill("SIGINT");
  const { signal } = await soon("its end", trainer.status);
  assertEquals(signal, "SIGINT");
  assertEquals(trainer.stderr.text, "");
  await soon("the end of its tasks", untilTasks(dispatcher, 0));
  const { workers, jobs } = await stateOf(dispatcher);
  assertEquals(workers.map(({ alive }) => alive), [true, true]);
  assertEquals(jobs, []);
});
