/**
 * A trainer's program without unstable features: it reads from a cluster of its own, and from a
 * worker that it serves. With an argument it requests a sandbox anyway.
 */
import { Dataset, LocalCluster, serveDispatcher, serveWorker } from "../../mod.ts";

async function sumOf(service: LocalCluster | string): Promise<number> {
  const numbers = Dataset.range(10).map((x) => x * 2);
  let sum = 0;
  for await (const x of numbers.distribute({ service, processingMode: "DYNAMIC" })) sum += x;
  return sum;
}

const sandbox = Deno.args.length > 0;
if (!sandbox) {
  await using cluster = await LocalCluster.start({ workers: 1, carrier: "thread" });
  console.log(`local ${await sumOf(cluster)}`);
}
await using dispatcher = await serveDispatcher({ logLevel: "off" });
const { address } = dispatcher;
await using _worker = await serveWorker({ dispatcher: address, sandbox, logLevel: "off" });
console.log(`served ${await sumOf(address)}`);
