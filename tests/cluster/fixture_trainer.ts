/** A trainer that reads a job of a service and leaves another in the middle; nothing ends it but itself. */
import { Dataset } from "../../mod.ts";

const [service = ""] = Deno.args;
const numbers = Dataset.range(1_000).batch(10);
let count = 0;
for await (const batch of numbers.distribute({ service, processingMode: "DYNAMIC" })) {
  count += batch.shape[0]!;
}
for await (const _ of numbers.repeat().distribute({ service })) break;
console.log(`read ${count}`);
