/** Clients are told the tasks of their iteration once, and then how they change. */
import { TaskLists } from "../../../../actors/dispatcher/jobs/task_lists.ts";
import type { TaskListNews } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import { assert, assertEquals } from "../../../assert.ts";
import { TestCluster } from "../lib.ts";

Deno.test("a client that names its list of tasks is told only how it has changed, and all where a new life does not know it", async () => {
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
  const NOTHING = { tasks: [], endedTasks: [] };
  const endedIn = (news: TaskListNews) => news.kind === "changes" ? news.endedTasks : undefined;
  const changesOf = (news: TaskListNews) => ({ tasks: news.tasks, endedTasks: endedIn(news) });
  assertEquals([changesOf(again), again.taskList], [NOTHING, first.taskList]);
  assertEquals(workersOf(await ask()), ["a"], "whoever names none is told all");

  await cluster.ask("releaseClient", { clientId: other.clientId });
  assertEquals(changesOf(await ask(first.taskList)), NOTHING, "of another job nothing is told");

  await b.heartbeat();
  await b.heartbeat();
  const more = await ask(first.taskList);
  assertEquals([endedIn(more), workersOf(more)], [[], ["b"]], "one has come");
  await a.reborn().then((reborn) => reborn.heartbeat());
  const less = await ask(more.taskList);
  const [{ taskId: lost } = { taskId: -1 }] = first.tasks;
  assertEquals(endedIn(less), [lost], "one has ended");
  const since = await ask(first.taskList);
  assertEquals([endedIn(since), workersOf(since).toSorted()], [[lost], ["a", "b"]]);
  assertEquals(workersOf(await ask()).toSorted(), ["a", "b"], "whoever names none is told all");

  await cluster.restart();
  const later = await ask((await ask()).taskList);
  assertEquals(changesOf(later), NOTHING);
  const anew = await ask(less.taskList);
  assertEquals([endedIn(anew), workersOf(anew).length], [undefined, 2], "a name of another life");
});

Deno.test("TaskLists remembers as many changes as there are tasks, and knows which names are older", () => {
  const lists = new TaskLists("life");
  const names: string[] = [lists.nameOf(1)];
  const TASKS = 100;
  for (let taskId = 1; taskId <= 10 * TASKS; taskId++) {
    lists.changed(1, taskId % 150, TASKS);
    names.push(lists.nameOf(1));
  }
  const missed = (changes: number) => lists.changedSince(1, names[names.length - 1 - changes]);
  assertEquals(missed(0), new Set());
  assertEquals(missed(3), new Set([(10 * TASKS - 2) % 150, (10 * TASKS - 1) % 150, 1000 % 150]));
  assertEquals(missed(TASKS)?.size, TASKS);
  assertEquals(missed(10 * TASKS), undefined, "what is long past is forgotten");
  assertEquals(lists.changedSince(1, undefined), undefined);
  assertEquals(lists.changedSince(1, "life 1 2000"), undefined, "a name that was never given");
  assertEquals(lists.changedSince(1, "other 1 1000"), undefined);
  assertEquals(lists.changedSince(2, names.at(-1)), undefined);
});

Deno.test("a client is told of each worker that joins once, however many are there", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const WORKERS = 40;
  let taskList: string | undefined;
  let told = 0;
  for (let i = 0; i < WORKERS; i++) {
    await cluster.worker(`w${i}`).heartbeat();
    const named: { taskList?: string } = taskList === undefined ? {} : { taskList };
    const news = await cluster.ask("clientHeartbeat", { clientId, ...named });
    taskList = news.taskList;
    told += news.tasks.length + (news.kind === "changes" ? news.endedTasks.length : 0);
  }
  assertEquals(told, WORKERS);
});
