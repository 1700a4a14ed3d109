/** Processes that list the splits of a graph: what they run then, and what is said if they die. */
import { LISTER_DIED } from "../../../actors/worker/protocol.ts";
import { Listings } from "../../../actors/worker/runner/listings.ts";
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assertEquals } from "../../assert.ts";
import { PATIENCE_MS, until } from "../../lib/until.ts";
import { NO_SPLITS, Sandbox, settingsOf } from "./sandbox_lib.ts";

const listed = Dataset.range(10).map((x) => x + 1);
const other = Dataset.range(10).map((x) => x + 2);

for (const [what, dataset, processes] of [["its", listed, 2], ["another", other, 3]] as const) {
  Deno.test(`ConfinedRunners runs ${what} graph where splits were listed, if it is the same`, async () => {
    // However long the next process takes to load.
    await using sandbox = await Sandbox.open({}, undefined, {}, { listedMsMax: PATIENCE_MS });
    const { runners } = sandbox;
    const [table] = await runners.listSplits(listed.serialize());
    assertEquals(table!.length, 2 * 10);
    // Besides the one that has listed there is a spare one.
    await until(() => runners.processes === 2, 10);
    const runner = runners.start(settingsOf(dataset), NO_SPLITS);
    const { kind } = await runner.next();
    assertEquals(kind, "element");
    await until(() => runners.processes === processes, 10);
    runner.dispose();
    // Once: the next task has a process of its own.
    const next = runners.start(settingsOf(listed), NO_SPLITS);
    assertEquals((await next.next()).kind, "element");
    next.dispose();
    await sandbox.processesEnded();
  });
}

Deno.test("Listings reports the death of a confined process that lists so that it is counted", async () => {
  await using sandbox = await Sandbox.open({}, () => ({ heapBytesMax: 64 * 2 ** 20 }));
  // The graph alone has more values than the process has memory for.
  const graph = Dataset.from(Array.from({ length: 600_000 }, () => [[], []])).serialize();
  const listings = new Listings(new DenoWorld(), sandbox.runners);
  const dataset = { datasetId: "1", fingerprint: "f", cardinality: 600_000, graph };
  const error = await listings.list(dataset, "owner", Infinity).then(
    () => undefined,
    LeatError.from,
  );
  assertEquals([error?.code, error?.details?.["reason"]], ["aborted", LISTER_DIED]);
});
