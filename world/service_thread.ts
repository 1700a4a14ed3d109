/**
 * What a thread of a local cluster loads: a node with a role of the service.
 *
 * @module
 */
import type { NodeContext, NodeParts } from "../transport/thread_control.ts";
import { webSocketConnector } from "../transport/web_socket.ts";
import { loadRole, type Playing, type Role } from "./roles.ts";
import { FRONT_KINDS } from "./service_kinds.ts";

/** Sets up the node; `config` is its {@linkcode Role}. */
export async function setup({ world, config, startThread }: NodeContext): Promise<NodeParts> {
  const takeUp = await loadRole(config as Role, { startThread });
  const connector = webSocketConnector({ world });
  let playing: Playing | undefined;
  return {
    kinds: FRONT_KINDS,
    connectors: { ws: connector, wss: connector },
    started(system) {
      playing = takeUp(system);
    },
    async stopped() {
      await playing?.close();
    },
  };
}
