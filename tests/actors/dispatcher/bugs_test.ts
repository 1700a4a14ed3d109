/**
 * What a bug in a decision of the dispatcher costs: its asker where nothing has changed, this life
 * where something has, and never the journal.
 */
import type { DispatcherConfig } from "../../../actors/dispatcher/config.ts";
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";
import type { DispatcherState } from "../../../actors/dispatcher/state/state.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { settle, tableOf, TestCluster } from "./lib.ts";

const WORKER_TIMEOUT_MS = 4_000;

/** Breaks when it comes to a record of that type, before it is appended or while it is applied. */
class PlantedBug {
  type: JournalRecord["type"] | undefined;
  readonly #where: "append" | "apply";
  readonly #error: Error;

  constructor(where: "append" | "apply", error: Error = new TypeError("a planted bug")) {
    this.#where = where;
    this.#error = error;
  }

  readonly wrapJournal: NonNullable<DispatcherConfig["wrapJournal"]> = (journal, state) => {
    const apply = state.apply.bind(state);
    state.apply = (record) => {
      if (this.#where === "apply") this.#look(record);
      apply(record);
    };
    return {
      append: (record) => {
        if (this.#where === "append") this.#look(record);
        journal.append(record);
      },
      committed: () => journal.committed(),
      close: () => journal.close(),
    };
  };

  #look({ type }: JournalRecord): void {
    if (type === this.type) throw this.#error;
  }
}

Deno.test("a bug that has changed nothing is answered with internal, and the dispatcher lives on", async () => {
  const bug = new PlantedBug("append");
  await using cluster = await TestCluster.start({ wrapJournal: bug.wrapJournal });
  const datasetId = await cluster.dataset();
  bug.type = "job_created";
  const error = await cluster.refused("openIteration", cluster.openRequest(datasetId));
  assertEquals(error.code, "internal");
  assertStringIncludes(error.message, "a planted bug");
  bug.type = undefined;
  await cluster.open(datasetId);
  await cluster.world.advance(1_000);
  assertEquals((await cluster.ask("hello", null)).life, 1);
});

Deno.test("a bug in the look at whether a task has to wait is answered with internal, too", async () => {
  const states: DispatcherState[] = [];
  await using cluster = await TestCluster.start({
    wrapJournal: (journal, state) => {
      states.push(state);
      return journal;
    },
  });
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await cluster.worker("w", tableOf(3)).heartbeat();
  const request = { taskId, number: 1, source: 0, repetition: 0 };
  const [state] = states;
  const broken = {
    get: () => {
      throw new TypeError("a planted bug");
    },
    configurable: true,
  };
  Object.defineProperty(state, "tasks", broken);
  const error = await cluster.refused("getSplit", request);
  assertEquals(error.code, "internal");
  assertStringIncludes(error.message, "a planted bug");
  Reflect.deleteProperty(state!, "tasks");
  assertEquals((await cluster.ask("getSplit", request)).split?.index, 0);
  assertEquals((await cluster.ask("hello", null)).life, 1);
});

for (const where of ["append", "apply"] as const) {
  Deno.test(`a bug amid changes (${where}) ends the dispatcher, and nothing of them is in the journal`, async () => {
    const bug = new PlantedBug(where);
    await using cluster = await TestCluster.start({ wrapJournal: bug.wrapJournal });
    const datasetId = await cluster.dataset();
    bug.type = "client_opened";
    // What was decided beside it rests on the same commit.
    const beside = assertRejects(() => cluster.dataset("beside"), LeatError);
    const error = await cluster.refused("openIteration", cluster.openRequest(datasetId));
    assertEquals([error.code, (await beside).code], ["internal", "unavailable"]);
    bug.type = undefined;
    await cluster.world.advance(1_000);
    const { jobs } = await cluster.ask("describe", null);
    assertEquals(jobs, [], "no half of a job is left");
    assertEquals((await cluster.ask("hello", null)).life, 2);
    await cluster.ask("getDataset", { datasetId });
    await cluster.restart();
    await cluster.open(datasetId);
  });
}

for (
  const error of [new TypeError("a planted bug"), new LeatError("not_found", "it is not there")]
) {
  for (const isWriting of [false, true]) {
    const journal = isWriting ? "while the journal is written" : "with a written journal";
    Deno.test(`a sweep that fails (${error.name}) ${journal}, and has changed nothing, is logged and made again`, async () => {
      const bug = new PlantedBug("append", error);
      await using cluster = await TestCluster.start({
        workerTimeoutMs: WORKER_TIMEOUT_MS,
        wrapJournal: bug.wrapJournal,
      });
      const { world } = cluster;
      await cluster.worker("w").heartbeat();
      await world.advance(WORKER_TIMEOUT_MS - 1);
      bug.type = "worker_lost";
      if (isWriting) cluster.holdJournal();
      const waiting = isWriting ? cluster.dataset() : undefined;
      await settle();
      await world.advance(1);
      cluster.releaseJournal();
      await waiting;
      assertEquals(world.errors, [`The dispatcher has failed: ${error.message}`]);
      bug.type = undefined;
      assertEquals((await cluster.ask("describe", null)).workers[0]?.alive, true);
      await world.advance(WORKER_TIMEOUT_MS);
      assertEquals((await cluster.ask("describe", null)).workers[0]?.alive, false);
      assertEquals((await cluster.ask("hello", null)).life, 1);
    });
  }
}

Deno.test("a sweep that fails amid changes ends the dispatcher, and nothing of them is in the journal", async () => {
  const bug = new PlantedBug("append");
  await using cluster = await TestCluster.start({
    workerTimeoutMs: WORKER_TIMEOUT_MS,
    wrapJournal: bug.wrapJournal,
  });
  const { clientId } = await cluster.open(await cluster.dataset());
  const tasks = await cluster.worker("w").heartbeat();
  bug.type = "worker_lost";
  await cluster.world.advance(WORKER_TIMEOUT_MS);
  bug.type = undefined;
  await cluster.world.advance(WORKER_TIMEOUT_MS / 2);
  assertEquals((await cluster.ask("hello", null)).life, 2);
  const news = await cluster.ask("clientHeartbeat", { clientId });
  assertEquals(news.tasks?.map(({ taskId }) => taskId), tasks, "the worker has its task still");
});

Deno.test("a listing that a bug keeps from being journaled is made again when it is asked for", async () => {
  const bug = new PlantedBug("append");
  await using cluster = await TestCluster.start({ wrapJournal: bug.wrapJournal });
  const worker = cluster.worker("w", tableOf(3));
  bug.type = "splits_listed";
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const take = (number: number) =>
    cluster.ask("getSplit", { taskId, number, source: 0, repetition: 0 });
  const first = take(1);
  await settle();
  assertEquals(cluster.world.errors.length, worker.listings);
  bug.type = undefined;
  assertEquals((await take(2)).split?.index, 1);
  assertEquals((await first).split?.index, 0);
  assertEquals((await cluster.ask("hello", null)).life, 1);
});
