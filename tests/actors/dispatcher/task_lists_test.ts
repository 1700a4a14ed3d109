/** Clients are told the tasks of their iteration once, and again when they change. */
import { assert, assertEquals } from "../../assert.ts";
import { TestCluster } from "./lib.ts";

Deno.test("a client that names its list of tasks is told it again only when it has changed, or a new life does not know it", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const other = await cluster.open(await cluster.dataset("others"), { jobName: "other" });
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  await a.heartbeat();
  await a.heartbeat();
  const ask = (taskList?: string) =>
    cluster.ask("clientHeartbeat", { clientId, ...(taskList === undefined ? {} : { taskList }) });
  const workersOf = ({ tasks }: Awaited<ReturnType<typeof ask>>) =>
    tasks.map(({ worker }) => worker);

  const first = await ask();
  assertEquals(workersOf(first), ["a"]);
  const others = await cluster.ask("clientHeartbeat", { clientId: other.clientId });
  assert(others.taskList !== first.taskList, "the list of one job is not that of another");

  const again = await ask(first.taskList);
  assertEquals([again.sameTasks, again.tasks.length, again.taskList], [true, 0, first.taskList]);
  assertEquals(workersOf(await ask()), ["a"], "whoever names none is told all");

  await cluster.ask("releaseClient", { clientId: other.clientId });
  assertEquals((await ask(first.taskList)).sameTasks, true, "of another job nothing is told");

  await b.heartbeat();
  await b.heartbeat();
  const more = await ask(first.taskList);
  assertEquals([more.sameTasks, workersOf(more)], [undefined, ["a", "b"]]);
  await a.reborn().then((reborn) => reborn.heartbeat());
  const less = await ask(more.taskList);
  assert(less.sameTasks === undefined, "a task has ended");

  await cluster.restart();
  const later = await ask((await ask()).taskList);
  assertEquals(later.sameTasks, true);
  assert((await ask(less.taskList)).sameTasks === undefined, "a name of the life before");
});
