/**
 * A trainer in a network of its own: reads a job, stops before given batches and waits there for a
 * line on standard input, and prints every number that it received.
 */
import { Dataset, type ShardingPolicy, type Tensor } from "../../mod.ts";

const [service = "", mode = "DYNAMIC", elements = "0", ...holds] = Deno.args;
const batches = Dataset.range(Number(elements)).map((x) => {
  // A batch is several times as large as the queues on the way, and does not compress: TCP sends
  // faster until a queue overflows.
  const ballast = new Uint32Array(1_000);
  for (let i = 0, word = x; i < ballast.length; i++) {
    ballast[i] = word = (Math.imul(word, 1_664_525) + 1_013_904_223) >>> 0;
  }
  return { x, ballast };
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
// A pending read of standard input cannot be cancelled.
Deno.exit();
