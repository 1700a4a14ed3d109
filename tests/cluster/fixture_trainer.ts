/**
 * A trainer that reads a job of a service and leaves another in the middle, after which nothing ends
 * it but itself; or one that reads jobs for ever, of the given names or, without one, its own.
 *
 * @module
 */
import { Dataset } from "../../mod.ts";

const [service = "", mode = "once", ...jobNames] = Deno.args;
const numbers = Dataset.range(1_000).batch(10);
/** Of those that read for ever, so that others have the processor too. */
const STEP_MS = 5;
let count = 0;

async function readForEver(jobName: string | undefined): Promise<void> {
  const job = jobName === undefined ? {} : { jobName };
  for await (const batch of numbers.repeat().distribute({ service, ...job })) {
    count += batch.shape[0]!;
    if (count % 100 === 0) console.log(`read ${count}`);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}

if (mode === "for ever") await Promise.all([undefined, ...jobNames].map(readForEver));
for await (const batch of numbers.distribute({ service, processingMode: "DYNAMIC" })) {
  count += batch.shape[0]!;
}
for await (const _ of numbers.repeat().distribute({ service })) break;
console.log(`read ${count}`);
