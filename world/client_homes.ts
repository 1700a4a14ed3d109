/**
 * Where the clients of this process live: beside a cluster that runs in it, or on a node of their own
 * that dials out.
 *
 * @module
 */
import type { ClientHome, Credentials, OpenHome } from "../actors/client/starting.ts";
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../actors/runtime/system.ts";
import { webSocketConnector } from "../transport/web_socket.ts";
import { DenoWorld } from "./deno_world.ts";
import { admitClient, hasLocalWorker, nearOr, PROCESS_ID } from "./process_nodes.ts";
import { serviceAddress } from "./service_address.ts";

const homes = new Map<string, () => ClientHome>();

/** Makes services known by an address that is no URL; the answer forgets it. */
export function registerHome(address: string, open: () => ClientHome): () => void {
  homes.set(address, open);
  return () => {
    if (homes.get(address) === open) homes.delete(address);
  };
}

/** Finds or makes the node from which a client reaches a service. */
export const openHome: OpenHome = (service, credentials) => {
  const address = typeof service === "string" ? service : service.address;
  const open = homes.get(address);
  if (open !== undefined) return open();
  return dial(
    serviceAddress(address, "service (unless it is a running LocalCluster)"),
    credentials,
  );
};

interface Dialled {
  readonly system: ActorSystem;
  readonly leaveProcess: () => void;
  uses: number;
}

/** One node per service and credentials, shared by the iterators that use it and stopped with the last. */
const dialled = new Map<string, Dialled>();

function dial(address: string, { token, ca }: Credentials): ClientHome {
  const key = JSON.stringify([address, token, ca]);
  let entry = dialled.get(key);
  if (entry === undefined) {
    const world = new DenoWorld({ logLevel: "warn" });
    const node = `client-${world.random.fork("node name").hex64()}`;
    const connector = nearOr(webSocketConnector({
      world,
      ...(token === undefined ? {} : { token }),
      ...(ca === undefined ? {} : { ca }),
    }));
    const system = new ActorSystem({ node, world, connector });
    entry = { system, leaveProcess: admitClient(system), uses: 0 };
    dialled.set(key, entry);
  }
  const { system } = entry;
  const held = entry;
  held.uses++;
  return {
    system,
    dispatcher: dispatcherAt(address),
    process: PROCESS_ID,
    hasLocalWorker: () => hasLocalWorker(address),
    release() {
      if (--held.uses > 0) return;
      dialled.delete(key);
      system.stop().finally(held.leaveProcess);
    },
  };
}
