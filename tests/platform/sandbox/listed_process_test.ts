/** The process that has listed the splits of a graph runs that graph, and no other. */
import { Dataset } from "../../../mod.ts";
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
