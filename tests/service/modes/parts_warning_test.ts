/** The warning of operators that each worker runs on its own part of the data. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { type DistributeNode, partsWarning } from "../../../data/operators/distribute.ts";
import type { ShardingPolicy } from "../../../data/sharding/sharding_policy.ts";
import { Dataset } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals } from "../../assert.ts";
import { testInline } from "../lib/carriers.ts";

const lines = Dataset.textLines(["a.txt", "b.txt"]);
const range = Dataset.range(9);

/** What is warned of, between "each worker runs" and "on its own part". */
function warnedOf(dataset: Dataset<unknown>, processingMode: ShardingPolicy): string | undefined {
  const { node } = dataset.distribute({ service: "ws://127.0.0.1:1", processingMode });
  return /each worker runs (.*) on its own part/.exec(partsWarning(node as DistributeNode) ?? "")
    ?.[1];
}

Deno.test("partsWarning names operators that need the whole dataset, where workers divide its sources", () => {
  const counted = lines.take(4).enumerate();
  for (const mode of ["DYNAMIC", "FILE", "FILE_OR_DATA"] as const) {
    assertEquals(warnedOf(counted, mode), "take, enumerate", mode);
    const chosen = Dataset.chooseFromDatasets([lines, lines], Dataset.range(4).map(() => 0));
    assertEquals(warnedOf(chosen, mode), "chooseFromDatasets", mode);
  }
  for (const mode of ["OFF", "DATA", "HINT", "DETERMINISTIC"] as const) {
    assertEquals(warnedOf(counted, mode), undefined, mode);
  }
  assertEquals(warnedOf(range.take(4), "FILE_OR_DATA"), undefined);
  assertEquals(warnedOf(lines.snapshot("stored").take(4), "FILE_OR_DATA"), undefined);
  assertEquals(warnedOf(lines.zip(lines), "FILE"), "zip");
  for (const budget of [{ maxErrors: 3 }, { maxFraction: 0.5 }]) {
    assertEquals(warnedOf(range.ignoreErrors(budget), "DYNAMIC"), "ignoreErrors");
  }
});

Deno.test("partsWarning leaves out operators that give the same on parts, and under FILE what selects files", () => {
  for (
    const dataset of [
      range.shuffle(4).repeat(2).batch(2).cache().prefetch(1),
      range.take(-1).skip(0),
      range.ignoreErrors(),
      range.zip(Dataset.counter()),
      range.filter(() => true).zip(Dataset.random()),
    ]
  ) assertEquals(warnedOf(dataset, "DYNAMIC"), undefined);
  const some = Dataset.textLines(Dataset.listFiles("*.txt").take(4));
  assertEquals(warnedOf(some, "FILE"), undefined);
  assertEquals(warnedOf(some, "DYNAMIC"), "take");
});

testInline(
  "a client warns once of operators that each worker runs on its own part",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const warnings: string[] = [];
    class Host extends DenoHost {
      override warn(message: string): void {
        warnings.push(message);
      }
    }
    const dataset = range.unique().distribute({ service: cluster, processingMode: "DYNAMIC" });
    await using iterator = openIterator(dataset.repeat(2).node, { host: new Host() });
    let elements = 0;
    for await (const _ of iterator) elements++;
    assertEquals([elements, warnings.length], [18, 1]);
    assert(warnings[0]!.includes("each worker runs unique on its own part"), warnings[0]);
  },
);
