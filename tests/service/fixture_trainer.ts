/**
 * A small trainer: reads a job, leaves another in the middle, closes, and has two seconds to end.
 *
 * @module
 */
import { Dataset, LocalCluster } from "../../mod.ts";
import type { Carrier } from "../../world/fleet.ts";

const LIMIT_MS = 2_000;
const TICK_MS = 50;

const carrier = Deno.args[0] as Carrier;
const cluster = await LocalCluster.start({
  workers: 2,
  carrier,
  clientRefreshMs: 20,
  logLevel: "off",
});
const numbers = Dataset.range(400).batch(10);
let count = 0;
for await (
  const batch of numbers.distribute({ service: cluster, processingMode: "DYNAMIC" })
) count += batch.shape[0]!;
const left = numbers.repeat().distribute({ service: cluster }).iterator();
await left.next();
await left.return();
await cluster.close();
console.log(`read ${count} and closed`);
// Of its own time: what a machine takes that stands still is not counted.
let ticks = 0;
Deno.unrefTimer(setInterval(() => ++ticks > LIMIT_MS / TICK_MS && Deno.exit(3), TICK_MS));
