/**
 * The owners of clients and jobs. Ids are easy to guess, so a request about a client must present
 * the client's secret; the journal has its digest. A named job belongs to the identity that created
 * it, and all users of that identity share it.
 */
import { LeatError } from "../../../core/error.ts";
import { hashBytes } from "../../../core/hash.ts";
import type { Identity } from "../../runtime/identity.ts";
import type { ReadingTask } from "../../../data/service/reading_task.ts";
import type { Job } from "../state/entities.ts";
import type { DispatcherState } from "../state/state.ts";

/** Secrets already verified, by entity, so that each is hashed once. */
const known = new WeakMap<object, string>();

interface Owned {
  /** The digest of the owner's secret. Null: none was given. */
  readonly secret: string | null;
}

export function digestOf(secret: string): string {
  return hashBytes(secret);
}

/** @throws LeatError `permission_denied` for a request without the client's secret. */
export function checkSecret(owned: Owned, secret: string | undefined, clientId: number): void {
  if (knowsSecret(owned, secret)) return;
  throw new LeatError(
    "permission_denied",
    `Client ${clientId} belongs to the program that opened it: a request about it must present ` +
      `the same secret, and this request has ${secret === undefined ? "none" : "another"}`,
  );
}

function knowsSecret(owned: Owned, secret: string | undefined): boolean {
  if (owned.secret === null) return true;
  if (secret === undefined) return false;
  if (known.get(owned) === secret) return true;
  if (digestOf(secret) !== owned.secret) return false;
  known.set(owned, secret);
  return true;
}

/**
 * The identity that a request about a dataset, or to join a job, counts for. If the pipeline of a task
 * reads this service, its worker sends the request, and it counts for the owner of the task's job, also
 * if the worker is an admin. Programs of the worker's own identity keep its role. Others lose it even if
 * the task has ended, and its owner is no longer known.
 */
export function readerOf(
  { clusterId, tasks, iterations, jobs, workers }: DispatcherState,
  forTask: ReadingTask,
  sender: Identity,
): Identity {
  if (forTask.clusterId !== clusterId || sender.role === "client") return sender;
  const task = tasks.get(forTask.taskId);
  const job = jobs.get(iterations.get(task?.iterationId ?? -1)?.jobId ?? -1);
  const isOwn = task !== undefined && workers.get(task.worker)?.owner === sender.name;
  const owner = isOwn ? job?.owner : undefined;
  return owner === sender.name ? sender : { name: owner ?? sender.name, role: "client" };
}

/**
 * The rights of such a request, from the identity that it counts for. A task's pipeline never has an
 * admin's rights, not even on an admin's own worker and in an admin's own job: its author may be
 * somebody else, who must not read what only the admin may.
 */
export function rightsOf(
  { clusterId }: DispatcherState,
  { forTask }: { readonly forTask?: ReadingTask },
  reader: Identity,
): Identity {
  return forTask?.clusterId === clusterId ? { name: reader.name, role: "client" } : reader;
}

/** The identity that a request about a client counts for: a task's client counts as in `readerOf`. */
export function readerOfClient(
  { clients, iterations, jobs }: DispatcherState,
  { clientId, secret }: { readonly clientId: number; readonly secret?: string },
  sender: Identity,
): Identity {
  const client = clients.get(clientId);
  if (sender.role === "client" || client === undefined || client.readBy === null) return sender;
  const owner = jobs.get(iterations.get(client.readBy)?.jobId ?? -1)?.owner ?? sender.name;
  if (owner === sender.name || !knowsSecret(client, secret)) return sender;
  return { name: owner, role: "client" };
}

/** @throws LeatError `permission_denied` for an identity that may not join the job. */
export function checkJobOwner({ name, owner }: Job, { name: asker, role }: Identity): void {
  if (role === "admin" || owner === asker) return;
  throw new LeatError(
    "permission_denied",
    `The job "${name}" belongs to "${owner}", which created it, and this request is from "${asker}": ` +
      `choose another jobName, or ask an admin`,
  );
}
