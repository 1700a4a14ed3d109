/**
 * Reports about a worker or its tasks must come from that worker's node. Node and identity are
 * those of the connection, which no sender can forge.
 */
import { LeatError } from "../../../core/error.ts";
import { SAME_PROCESS } from "../../runtime/identity.ts";
import type { Delivery, RequestOf } from "../../runtime/protocol.ts";
import { type FencedRef, formatRef, sameActor } from "../../runtime/ref.ts";
import { type DispatcherProtocol, NAME_TAKEN } from "../protocol.ts";
import type { DispatcherState } from "../state/state.ts";

/** The sender of a report. */
export type Speaker = Pick<Delivery, "source" | "sender">;

/** Why a heartbeat is refused: it names another actor, or a live worker of another identity. */
export function forgeryOf(
  state: DispatcherState,
  request: RequestOf<DispatcherProtocol, "workerHeartbeat">,
  { source, sender }: Speaker,
): LeatError | undefined {
  if (sender === SAME_PROCESS) return undefined;
  const { name, worker, tasks } = request;
  if (!sameActor(worker, source)) {
    return denied(
      `"${sender.name}" at ${formatRef(source)} speaks for the worker ${formatRef(worker)}: ` +
        "a worker may speak only for itself",
    );
  }
  if (sender.role === "admin") return undefined;
  const known = state.workers.get(name);
  if (known?.alive && known.owner !== null && known.owner !== sender.name) {
    return new LeatError(
      "permission_denied",
      `The worker "${name}" belongs to "${known.owner}", and "${sender.name}" must wait until it ` +
        "ends: give each worker a name of its own (--name)",
      { details: { reason: NAME_TAKEN } },
    );
  }
  const elsewhere = tasks.find((task) =>
    task.source !== undefined && task.source.node !== worker.node
  );
  if (elsewhere === undefined) return undefined;
  return denied(
    `The worker "${name}" reports that clients can read its task ${elsewhere.taskId} at ` +
      `${formatRef(elsewhere.source!)}, which is not on the worker's own node, ${worker.node}`,
  );
}

/** Why a heartbeat is refused: clients cannot dial the address that its worker advertises. */
export function addressFaultOf(
  { name, worker: { node }, isPrivate }: RequestOf<DispatcherProtocol, "workerHeartbeat">,
  isNodeAddress: (node: string) => boolean = () => true,
): LeatError | undefined {
  if (isPrivate === true || isNodeAddress(node)) return undefined;
  return new LeatError(
    "failed_precondition",
    `The worker "${name}" has the address "${node}", but clients dial ws://host:port or ` +
      "wss://host:port only: start it with such an address (--advertise HOST[:PORT])",
  );
}

/** Why a task's request is refused: it comes from another node or identity than its worker's. */
export function taskForgeryOf(
  state: DispatcherState,
  taskId: number,
  { source, sender }: Speaker,
): LeatError | undefined {
  if (sender === SAME_PROCESS) return undefined;
  const task = state.tasks.get(taskId);
  // A report about a missing task changes nothing.
  if (task === undefined) return undefined;
  const worker = state.workers.get(task.worker);
  if (worker === undefined) return undefined;
  const { owner, ref } = worker;
  const isOwner = sender.role === "admin" || owner === null || owner === sender.name;
  const isItsNode = ref.node === source.node && nodeLifeOf(ref) === nodeLifeOf(source);
  if (isOwner && isItsNode) return undefined;
  return denied(
    `"${sender.name}" at ${formatRef(source)} speaks for task ${taskId}, which the worker ` +
      `"${task.worker}"${owner === null ? "" : ` of "${owner}"`} has at ${formatRef(ref)}`,
  );
}

/** The incarnation of an actor's node, which is a prefix of the actor's incarnation. */
function nodeLifeOf({ incarnation }: FencedRef): string {
  return incarnation.slice(0, incarnation.lastIndexOf("-"));
}

function denied(message: string): LeatError {
  return new LeatError("permission_denied", message);
}
