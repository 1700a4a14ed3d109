/** The workers of this thread, which clients of the same thread read without a socket. */
import type { Connector } from "../../actors/runtime/link.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import { DenoWorld } from "../deno_world.ts";
import { InlineHub } from "./inline_hub.ts";

/** Identifies this process to the dispatcher. Send it to other threads: each thread draws another. */
export const PROCESS_ID = new DenoWorld().random.hex64();

const hub = new InlineHub();
/** The dispatchers of this thread's workers, each with the number of its workers. */
const dispatchers = new Map<string, number>();

/** Connects to workers of this thread without a socket, and to all other nodes through `far`. */
export function nearOr(far: Connector): Connector {
  return {
    connect: (node, local, signal) =>
      (hub.has(node) ? hub.connector : far).connect(node, local, signal),
  };
}

/** Whether a node is a worker of this thread, which is reached without a socket. */
export function isNear(node: string): boolean {
  return hub.has(node);
}

/** Lets a client's node reach the workers of this thread; the returned function undoes it. */
export function admitClient(system: ActorSystem): () => void {
  hub.add(system);
  return () => hub.cut(system);
}

/** Lets clients of this thread reach a worker's node directly; the returned function undoes it. */
export function admitWorker(system: ActorSystem, dispatcher: string): () => void {
  hub.add(system);
  dispatchers.set(dispatcher, (dispatchers.get(dispatcher) ?? 0) + 1);
  return () => {
    hub.cut(system);
    const remaining = dispatchers.get(dispatcher)! - 1;
    if (remaining === 0) dispatchers.delete(dispatcher);
    else dispatchers.set(dispatcher, remaining);
  };
}

/** Whether a worker of this thread works for the dispatcher at that address. */
export function hasLocalWorker(dispatcher: string): boolean {
  return dispatchers.has(dispatcher);
}
