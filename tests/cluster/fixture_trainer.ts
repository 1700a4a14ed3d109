/**
 * A trainer that reads a job of a service and leaves another in the middle, after which only its
 * own code ends it; or one that reads jobs endlessly, with the given names or, without one, a
 * private one.
 */
import { Dataset } from "../../mod.ts";

const [service = "", mode = "once", ...jobNames] = Deno.args;
const numbers = Dataset.range(1_000).batch(10);
/** Step time of endless readers, so that others get the processor too. */
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
