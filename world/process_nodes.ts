/**
 * What of a service is in this process beside its clients: workers that are read by direct call.
 *
 * @module
 */
import type { Connector } from "../actors/runtime/link.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import { DenoWorld } from "./deno_world.ts";
import { InlineHub } from "./inline_hub.ts";

/**
 * Tells this process from others, to the dispatcher. Threads are told it: a module of theirs would
 * draw another.
 */
export const PROCESS_ID = new DenoWorld().random.hex64();

const hub = new InlineHub();
/** The dispatchers that workers of this process work for, with how many. */
const dispatchers = new Map<string, number>();

/** Leads to workers of this thread without a socket, and to all other nodes as `far` does. */
export function nearOr(far: Connector): Connector {
  return {
    connect: (node, local) => (hub.has(node) ? hub.connector : far).connect(node, local),
  };
}

/** Whether a node is a worker of this thread, which is reached without a socket. */
export function isNear(node: string): boolean {
  return hub.has(node);
}

/** Makes a client's node one that workers of this thread are read from; the answer undoes it. */
export function admitClient(system: ActorSystem): () => void {
  hub.add(system);
  return () => hub.cut(system);
}

/** Makes a worker's node one that clients of this thread read directly; the answer undoes it. */
export function admitWorker(system: ActorSystem, dispatcher: string): () => void {
  hub.add(system);
  dispatchers.set(dispatcher, (dispatchers.get(dispatcher) ?? 0) + 1);
  return () => {
    hub.cut(system);
    const left = dispatchers.get(dispatcher)! - 1;
    if (left === 0) dispatchers.delete(dispatcher);
    else dispatchers.set(dispatcher, left);
  };
}

/** Whether a worker of this thread works for the dispatcher at that address. */
export function hasLocalWorker(dispatcher: string): boolean {
  return dispatchers.has(dispatcher);
}
