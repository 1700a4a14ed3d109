/** A small trainer: reads a job, leaves another in the middle, closes, and has a minute to end. */
import { Dataset, LocalCluster } from "../../../mod.ts";
import type { Carrier } from "../../../server/cluster/fleet.ts";

/** Far more than any machine takes: a leak then keeps the program alive. */
const LIMIT_MS = 60_000;

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
Deno.unrefTimer(setTimeout(() => Deno.exit(3), LIMIT_MS));
