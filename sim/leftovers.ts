/**
 * Checks that nothing is left of what is over: all training processes are gone without a word, and some
 * time later no node has an actor, a message or an open ask that is there for them.
 *
 * @module
 */
import type { SimCluster } from "./cluster.ts";
import { journalOf } from "./service.ts";

/** What a node has of its own. */
const OWN_ACTORS: readonly string[] = ["/node", "/dispatcher", "/worker"];

/** What is left in a cluster of training processes that are gone: a list of it, or nothing. */
export function leftovers({ nodes, network }: SimCluster): string[] {
  const left: string[] = [];
  for (const node of nodes) {
    if (!node.isUp) continue;
    const { name, system } = node;
    for (const { ref: { path } } of system.actors()) {
      if (!OWN_ACTORS.includes(path)) left.push(`${path} on ${name}`);
    }
    const { waiting, openAsks } = system.held;
    if (waiting > 0) left.push(`${waiting} messages in mailboxes of ${name}`);
    if (openAsks > 0) left.push(`${openAsks} open asks of ${name}`);
    const state = journalOf(node)?.state;
    for (const what of ["jobs", "iterations", "tasks", "clients"] as const) {
      const count = state?.[what].size ?? 0;
      if (count > 0) left.push(`${count} ${what} at ${name}`);
    }
  }
  if (network.bufferedBytes > 0) left.push(`${network.bufferedBytes} bytes on links`);
  return left;
}
