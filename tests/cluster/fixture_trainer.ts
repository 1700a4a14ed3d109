/**
 * A trainer that reads a job of a service and leaves another in the middle, after which nothing ends
 * it but itself; or one that reads for ever.
 *
 * @module
 */
import { Dataset } from "../../mod.ts";

const [service = "", mode = "once"] = Deno.args;
const numbers = Dataset.range(1_000).batch(10);
const job = mode === "once"
  ? numbers.distribute({ service, processingMode: "DYNAMIC" })
  : numbers.repeat().distribute({ service });
let count = 0;
for await (const batch of job) {
  count += batch.shape[0]!;
  if (mode !== "once" && count % 10_000 === 0) console.log(`read ${count}`);
}
for await (const _ of numbers.repeat().distribute({ service })) break;
console.log(`read ${count}`);
