/**
 * Compares batches that are requested from an actor on another thread over a WebSocket with bare
 * messages.
 */

import { ActorSystem } from "../../actors/runtime/system.ts";
import { nameOf, type Ref } from "../../actors/runtime/ref.ts";
import type { Tensor } from "../../core/tensor.ts";
import { decodeMessage } from "../../transport/codec.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { type Load, pipelinedLoad } from "../bare/load.ts";
import { LARGE, open as openBare, SMALL, type Traffic } from "../bare/websocket.ts";
import type { Bench } from "../lib/bench.ts";
import type { SourceProtocol } from "./websocket_node.ts";

const ASK = { timeoutMs: 30_000 };

/** Opens the load, whose unit is a message. */
async function open({ messageBytes, inFlight }: Traffic): Promise<Load> {
  const worker = new Worker(new URL("./websocket_node.ts", import.meta.url), { type: "module" });
  const node = await new Promise<string>((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
  });
  const world = new DenoWorld({ logLevel: "warn" });
  const system = new ActorSystem({
    node: "trainer",
    world,
    connector: webSocketConnector({ world }),
  });
  const source: Ref<SourceProtocol> = nameOf({ node, path: "/source" });
  const request = { byteLength: messageBytes };
  const pull = async (): Promise<number> => {
    const { batch } = await system.ask(source, "batch", request, ASK);
    const { image } = decodeMessage(batch.bytes) as { image: Tensor };
    if (image.data.length !== messageBytes) throw new Error(`${image.data.length} bytes arrived`);
    return 1;
  };
  return pipelinedLoad(inFlight, pull, async () => {
    await system.stop();
    worker.terminate();
  });
}

export const benches: Bench[] = [
  {
    name: "websocket, 1 MB batches, 8 in flight",
    unit: "MB/s",
    floor: 0.6,
    scale: LARGE.messageBytes / 1e6,
    bare: () => openBare(LARGE, "thread"),
    leat: () => open(LARGE),
  },
  {
    name: "websocket, 1 KB batches, 64 in flight",
    unit: "messages/s",
    floor: 0.25,
    bare: () => openBare(SMALL, "thread"),
    leat: () => open(SMALL),
  },
];
