/** Compares the thread carrier with bare transfer and bare comlink. */
import type { Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { ThreadHub } from "../../transport/thread_hub.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import * as calls from "../bare/comlink_calls.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import * as transfer from "../bare/thread_transfer.ts";
import type { Bench } from "../lib/bench.ts";
import type { Source } from "./thread_node.ts";

const ENTRY = new URL("../../platform/threads/thread_entry.ts", import.meta.url);
const SOURCE: Ref<Source> = { node: "thread", path: "/source" };
const TIMEOUT = { timeoutMs: 10_000 };

export const benches: Bench[] = [
  {
    name: "thread: 1 MB payloads, 8 in flight",
    unit: "MB/s",
    floor: 0.7,
    bare: () => transfer.open("transfer"),
    leat: () => openThread(transfer.IN_FLIGHT, askBlock),
  },
  {
    name: "thread: small asks, 8 in flight",
    unit: "asks/s",
    floor: 0.5,
    bare: () => calls.open(),
    leat: () => openThread(calls.IN_FLIGHT, askIncrement),
  },
];

async function openThread(
  inFlight: number,
  step: (system: ActorSystem) => Promise<number>,
): Promise<Load> {
  const world = new DenoWorld({ logLevel: "warn" });
  const hub = new ThreadHub({ world, entry: ENTRY });
  const system = new ActorSystem({ node: "main", world, connector: hub.connector });
  hub.add(system);
  await hub.startNode({ name: "thread", module: import.meta.resolve("./thread_node.ts") });
  return pipelinedLoad(inFlight, () => step(system), async () => {
    await system.stop();
    await hub.close();
  });
}

let received = 0;

async function askBlock(system: ActorSystem): Promise<number> {
  const { bytes } = await system.ask(SOURCE, "block", transfer.BUFFER_BYTES, TIMEOUT);
  if (bytes.length !== transfer.BUFFER_BYTES || bytes[0] !== (received++ & 0xff)) {
    throw new Error(`block ${received} arrived damaged`);
  }
  return bytes.length / 1e6;
}

let asked = 0;

async function askIncrement(system: ActorSystem): Promise<number> {
  const value = asked++;
  const answer = await system.ask(SOURCE, "increment", value, TIMEOUT);
  if (answer !== value + 1) throw new Error(`${value} was answered with ${answer}`);
  return 1;
}
