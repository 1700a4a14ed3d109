/**
 * What a thread of a local cluster loads: a node with a role of the service.
 *
 * @module
 */
import type { NodeContext, NodeParts } from "../transport/thread_control.ts";
import { webSocketConnector } from "../transport/web_socket.ts";
import { type Playing, type Role, takeUp } from "./roles.ts";
import { FRONT_KINDS } from "./service_kinds.ts";

/** Sets up the node; `config` is its {@linkcode Role}. */
export function setup({ world, config }: NodeContext): NodeParts {
  const connector = webSocketConnector({ world });
  let playing: Playing | undefined;
  return {
    kinds: FRONT_KINDS,
    connectors: { ws: connector, wss: connector },
    started(system) {
      playing = takeUp(system, config as Role);
    },
    async stopped() {
      await playing?.close();
    },
  };
}
