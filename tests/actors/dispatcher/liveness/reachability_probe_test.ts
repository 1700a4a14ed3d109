/** Workers that say good-bye, and workers at whose address nobody answers. */
import { LeatError } from "../../../../core/error.ts";
import { assertEquals, assertStringIncludes } from "../../../assert.ts";
import { settle, TestCluster, workIn } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

/** Says good-bye as a worker does. */
async function leave(cluster: TestCluster, { name, ref, tasks }: TestWorker) {
  const held = [...tasks.values()];
  return workIn(
    await cluster.ask("workerHeartbeat", {
      name,
      worker: ref,
      tags: [],
      tasks: held,
      leaving: true,
    }),
  );
}

Deno.test("a worker that leaves counts for what it completed, and its other tasks end at once", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const other = cluster.worker("other");
  await worker.heartbeat();
  await other.heartbeat();
  const done = await cluster.open(await cluster.dataset("a"));
  await other.heartbeat();
  const [doneTask] = await worker.heartbeat();
  worker.complete(doneTask!);
  for (const taskId of await other.heartbeat()) other.complete(taskId);
  await other.heartbeat();
  const open = await cluster.open(await cluster.dataset("b"));
  await worker.heartbeat();
  const { newTasks, endedTasks } = await leave(cluster, worker);
  assertEquals([newTasks, endedTasks], [[], []]);
  const { workers } = await cluster.ask("describe", null);
  assertEquals(workers.map(({ name, alive, tasks }) => [name, alive, tasks]), [
    ["w", false, 0],
    ["other", true, 2],
  ]);
  const heartbeat = (clientId: number) => cluster.ask("clientHeartbeat", { clientId });
  assertEquals((await heartbeat(done.clientId)).finished, true);
  assertEquals((await heartbeat(open.clientId)).finished, false);
});

Deno.test("a good-bye of a worker's earlier life ends nothing of the later one's", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  await worker.heartbeat();
  const reborn = await worker.reborn();
  await cluster.open(await cluster.dataset());
  await reborn.heartbeat();
  await cluster.refused("workerHeartbeat", {
    name: "w",
    worker: worker.ref,
    tags: [],
    tasks: [],
    leaving: true,
  });
  const { workers } = await cluster.ask("describe", null);
  assertEquals(workers.map(({ alive, tasks }) => [alive, tasks]), [[true, 1]]);
});

Deno.test("a worker whose address nobody can dial is refused, unless it serves its own process", async () => {
  await using cluster = await TestCluster.start({
    isNodeAddress: (node) => node.startsWith("ws://"),
  });
  const worker = cluster.worker("w");
  const request = { name: "w", worker: worker.ref, tags: [], tasks: [] };
  const { code, message } = await cluster.refused("workerHeartbeat", request);
  assertEquals(code, "failed_precondition");
  for (const part of [`"${worker.ref.node}"`, "--advertise"]) assertStringIncludes(message, part);
  assertEquals((await cluster.ask("describe", null)).workers, []);
  await cluster.ask("workerHeartbeat", { ...request, isPrivate: true });
  assertEquals((await cluster.ask("describe", null)).workers.length, 1);
});

Deno.test("a worker whose name has a control character, or none, is refused", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w").ref;
  for (const name of ["node-1\0", "a\nb", ""]) {
    const error = await cluster.refused("workerHeartbeat", { name, worker, tags: [], tasks: [] });
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "without control characters");
  }
});

Deno.test("a worker whose address does not answer is shown as unreachable until it does", async () => {
  let answers = false;
  const dialled: string[] = [];
  await using cluster = await TestCluster.start({
    dialWorker: ({ path }) => {
      dialled.push(path);
      return answers
        ? Promise.resolve()
        : Promise.reject(new LeatError("unavailable", "nobody there"));
    },
  });
  const worker = cluster.worker("w");
  await worker.heartbeat();
  await settle();
  const unreachable = async () => (await cluster.ask("describe", null)).workers[0]!.unreachable;
  assertEquals(await unreachable(), "nobody there");
  await worker.heartbeat();
  assertEquals(dialled.length, 1, "one that was dialled a moment ago is left in peace");
  answers = true;
  await cluster.world.advance(10_000);
  await worker.heartbeat();
  await settle();
  assertEquals(await unreachable(), undefined);
  await cluster.world.advance(20_000);
  await worker.heartbeat();
  assertEquals(dialled, ["/w", "/w"], "one that has answered is not dialled again");
  await (await worker.reborn()).heartbeat();
  assertEquals(dialled.length, 3, "each life is");
});
