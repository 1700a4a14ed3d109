/** A trainer that is interrupted in the middle of reading, as by Ctrl-C, or killed. */
import type { DispatcherDescription } from "../../actors/dispatcher/protocol_figures.ts";
import { assertEquals } from "../assert.ts";
import { type Child, startChild } from "../lib/child.ts";
import { type Part, soon, startDispatcher, startWorkers } from "./lib.ts";

const SHARED = "shared";

async function stateOf({ address }: Part): Promise<DispatcherDescription> {
  const response = await fetch(`${address.replace("ws:", "http:")}/state`);
  return await response.json();
}

/** Resolves when so many clients read the job with a name, and jobs have so many tasks together. */
async function untilRead(dispatcher: Part, clients: number, tasks: number): Promise<void> {
  for (;;) {
    const { workers, jobs } = await stateOf(dispatcher);
    const shared = jobs.find(({ name }) => name === SHARED)?.iterations[0]?.clients ?? 0;
    const held = workers.reduce((sum, worker) => sum + worker.tasks, 0);
    if (shared === clients && held === tasks) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A process that reads the job with a name, and a private one. */
function startTrainer({ address }: Part): Child {
  return startChild("tests/cluster/fixture_trainer.ts", { args: [address, "for ever", SHARED] });
}

/** Waits until a trainer reads. */
async function untilItReads({ stdout }: Child): Promise<void> {
  const before = stdout.text.length;
  while (stdout.text.length === before) await new Promise((resolve) => setTimeout(resolve, 50));
}

Deno.test("a trainer that gets SIGINT or SIGKILL ends without noise, and its tasks with it, long before it would time out", async () => {
  // A wait for clientTimeoutMs, two minutes, would exceed the test's time limit.
  await using dispatcher = await startDispatcher("--client-grace-ms", "300");
  const [worker] = await startWorkers(dispatcher, 1);
  await using _worker = worker!;
  await using other = startTrainer(dispatcher);
  await soon("the other's tasks", untilRead(dispatcher, 1, 2));
  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    await using trainer = startTrainer(dispatcher);
    await soon("elements", trainer.line(/read \d+00/));
    await soon("its tasks", untilRead(dispatcher, 2, 3));
    trainer.kill(signal);
    const status = await soon("its end", trainer.status);
    assertEquals(status.signal, signal);
    assertEquals(trainer.stderr.text, "");
    await soon("the end of its tasks", untilRead(dispatcher, 1, 2));
    await soon("elements for the other", untilItReads(other));
  }
  assertEquals(other.stderr.text, "");
  assertEquals((await stateOf(dispatcher)).workers.map(({ alive }) => alive), [true]);
});
