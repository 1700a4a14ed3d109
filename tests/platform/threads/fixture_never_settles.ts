/** A program that leaves loops while calls on other threads wait for promises that never settle. */
import { Dataset } from "../../../mod.ts";

const waiting = (x: number) => x < 3 ? x : new Promise<number>(() => {});
const datasets = {
  "prefetch with thread": Dataset.range(10).map(waiting).prefetch(2, { thread: true }),
  "map with threads": Dataset.range(10)
    .map(waiting, { numParallelCalls: 2 })
    .withOptions({ threads: true }),
};
for (const [name, dataset] of Object.entries(datasets)) {
  for await (const x of dataset) if (x === 2) break;
  console.log(`left ${name}`);
}
