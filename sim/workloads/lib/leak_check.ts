/**
 * Checks for leaks. Some time after all training processes vanished, no node may hold an actor, a message
 * or an open ask for them.
 */
import type { SimCluster } from "../../engine/cluster.ts";
import { journalOf } from "../../engine/service.ts";

/** The permanent actors of a node. */
const OWN_ACTORS: readonly string[] = ["/node", "/dispatcher", "/worker"];

/** Whether vanished training processes left anything in a cluster. See {@linkcode findLeaks}. */
export function hasLeaks(cluster: SimCluster): boolean {
  for (const _ of each(cluster)) return true;
  return false;
}

/** Lists what vanished training processes left in a cluster. */
export function findLeaks(cluster: SimCluster): string[] {
  return [...each(cluster)];
}

function* each({ nodes, network }: SimCluster): Iterable<string> {
  for (const node of nodes) {
    if (!node.isUp) continue;
    const { name, system } = node;
    for (const { ref: { path } } of system.actors()) {
      if (!OWN_ACTORS.includes(path)) yield `${path} on ${name}`;
    }
    const { waiting, openAsks } = system.held;
    if (waiting > 0) yield `${waiting} messages in mailboxes of ${name}`;
    if (openAsks > 0) yield `${openAsks} open asks of ${name}`;
    const state = journalOf(node)?.state;
    for (const what of ["jobs", "iterations", "tasks", "clients"] as const) {
      const count = state?.[what].size ?? 0;
      if (count > 0) yield `${count} ${what} at ${name}`;
    }
  }
  if (network.bufferedBytes > 0) yield `${network.bufferedBytes} bytes on links`;
}
