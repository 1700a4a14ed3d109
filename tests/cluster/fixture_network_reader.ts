/**
 * A trainer in a network of its own: reads a job, stops before the batches that it is told to and
 * waits there for a line on standard input, and prints every number that it got.
 *
 * @module
 */
import { Dataset, type ShardingPolicy, type Tensor } from "../../mod.ts";

const [service = "", mode = "DYNAMIC", elements = "0", ...holds] = Deno.args;
const batches = Dataset.range(Number(elements)).map((x) => {
  let spins = 0;
  while (spins < 10_000) spins++;
  // Something to carry, so that queues on the way fill.
  return { x: spins > 0 ? x : -1, ballast: new Float64Array(100) };
}).batch(10).distribute({
  service,
  processingMode: mode as ShardingPolicy,
  maxOutstandingRequests: 4,
});

const lines = Deno.stdin.readable.getReader();
const numbers: number[] = [];
let count = 0;
for await (const batch of batches) {
  numbers.push(...(batch.x as unknown as Tensor).data as Float64Array);
  if (!holds.includes(String(++count))) continue;
  console.log(`at ${count}`);
  await lines.read();
}
console.log(`numbers ${numbers.join(" ")}`);
// A pending read of standard input cannot be taken back.
Deno.exit();
