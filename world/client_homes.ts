/**
 * Where the clients of this process live: beside a cluster that runs in it, or on a node of their own
 * that dials out.
 *
 * @module
 */
import type { ClientHome, OpenHome } from "../actors/client/distributed_iterator.ts";
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../actors/runtime/system.ts";
import { LeatError } from "../core/error.ts";
import { webSocketConnector } from "../transport/web_socket.ts";
import { DenoWorld } from "./deno_world.ts";

const homes = new Map<string, () => ClientHome>();

/** Makes services known by an address that is no URL; the answer forgets it. */
export function registerHome(address: string, open: () => ClientHome): () => void {
  homes.set(address, open);
  return () => {
    if (homes.get(address) === open) homes.delete(address);
  };
}

/** Finds or makes the node from which a client reaches a service. */
export const openHome: OpenHome = (service, token) => {
  const address = typeof service === "string" ? service : service.address;
  const open = homes.get(address);
  if (open !== undefined) return open();
  const url = URL.parse(address);
  if (url === null || (url.protocol !== "ws:" && url.protocol !== "wss:")) {
    throw new LeatError(
      "invalid_argument",
      `service must be ws://host:port, wss://host:port or a running LocalCluster, got "${address}"`,
    );
  }
  return dial(`${url.protocol}//${url.host}`, token);
};

interface Dialled {
  readonly system: ActorSystem;
  uses: number;
}

/** One node per (service, token), shared by the iterators that use it and stopped with the last. */
const dialled = new Map<string, Dialled>();

function dial(address: string, token: string | undefined): ClientHome {
  const key = JSON.stringify([address, token]);
  let entry = dialled.get(key);
  if (entry === undefined) {
    const world = new DenoWorld({ logLevel: "warn" });
    const node = `client-${world.random.fork("node name").hex64()}`;
    const connector = webSocketConnector({ world, ...(token === undefined ? {} : { token }) });
    entry = { system: new ActorSystem({ node, world, connector }), uses: 0 };
    dialled.set(key, entry);
  }
  const { system } = entry;
  const held = entry;
  held.uses++;
  return {
    system,
    dispatcher: dispatcherAt(address),
    release() {
      if (--held.uses > 0) return;
      dialled.delete(key);
      system.stop();
    },
  };
}
