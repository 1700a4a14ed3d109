/**
 * What a bug in a decision of the dispatcher costs: its asker where nothing has changed, this life
 * where something has, and never the journal.
 *
 * @module
 */
import type { DispatcherConfig } from "../../../actors/dispatcher/dispatcher.ts";
import type { JournalRecord } from "../../../actors/dispatcher/records.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { TestCluster } from "./lib.ts";

/** Breaks when it comes to a record of that type, before it is appended or while it is applied. */
class PlantedBug {
  type: JournalRecord["type"] | undefined;
  readonly #where: "append" | "apply";

  constructor(where: "append" | "apply") {
    this.#where = where;
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
    if (type === this.type) throw new TypeError("a planted bug");
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
