/**
 * The remote side of `websocket_bench.ts`, a Web Worker: a node that listens and answers with
 * batches. Its first message is its address.
 */

/// <reference lib="deno.worker" />

import { ActorSystem } from "../../actors/runtime/system.ts";
import { tensor } from "../../core/tensor.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { serveWebSocket } from "../../transport/web_socket/server.ts";
import { DenoWorld } from "../../platform/deno_world.ts";

/** The protocol of the node's `/source`. */
export interface SourceProtocol {
  /** Returns a batch of this many bytes, encoded as a worker encodes an element. */
  batch(request: { readonly byteLength: number }): { readonly batch: Payload };
}

const world = new DenoWorld({ logLevel: "warn" });
const server = serveWebSocket({
  world,
  hostname: "127.0.0.1",
  port: 0,
  local: () => system.id,
  onLink: (link) => system.attach(link),
});
const system = new ActorSystem({ node: server.address, world });
let image = tensor(new Uint8Array(0));
system.spawn<SourceProtocol>({
  name: "source",
  create: () => ({
    handlers: {
      batch({ byteLength }) {
        if (image.data.length !== byteLength) image = tensor(new Uint8Array(byteLength));
        const frame = encodeMessage({ image }, { roomForEnvelope: true });
        return { batch: new Payload(frame, { isAlone: true }) };
      },
    },
  }),
});

self.postMessage(server.address);
