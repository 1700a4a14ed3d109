/**
 * DETERMINISTIC: who may read a stream, from one epoch to the next, where readers are restored that others
 * live beside.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { RequestOf } from "../runtime/protocol.ts";
import type { Iteration } from "./entities.ts";
import { type DispatcherProtocol, READ_BY_ANOTHER, TO_FOLLOW } from "./protocol.ts";
import type { DispatcherState } from "./state.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** As what a client comes to a stream; nothing where it reads none that others can. */
export interface StreamRole {
  readonly stream?: string;
  /** It was restored: who was this reader before reads no more. */
  readonly restoration?: string;
}

/**
 * As what the sender of the request comes.
 *
 * @throws {LeatError} `failed_precondition` for who was this reader before another one was restored. It
 * may have been between two repetitions, where nobody could tell it.
 */
export function streamRole(state: DispatcherState, request: OpenRequest): StreamRole {
  const { jobName, parameters, consumerIndex = null, startAt, lastReader } = request;
  if (parameters.ordered === undefined || parameters.save !== undefined) return {};
  if (jobName === undefined) return {};
  const { stream = jobName, restoration = request.requestId } = request;
  const first = state.readersOf(stream, consumerIndex)?.restored?.first ?? 0;
  const last = lastReader?.clusterId === state.clusterId ? lastReader.clientId : Infinity;
  if (last < first) {
    throw new LeatError(
      "failed_precondition",
      `Job "${jobName}" was read by this reader as client ${last}, and was restored by another one ` +
        `since, as client ${first}. Restore this one from what it saved, or make its dataset anew, to ` +
        "read the job instead",
      { details: { reason: READ_BY_ANOTHER } },
    );
  }
  return { stream, ...(startAt === undefined ? {} : { restoration }) };
}

/**
 * Who is restored has to have heard of the newest of those that it was itself, and of those that it takes
 * over from: a request may be so late that its sender has died, and the next life reads the stream.
 *
 * @param replaced The iterations that it takes over.
 * @throws {LeatError} `failed_precondition` with the one that it has to name.
 */
export function checkFollows(
  state: DispatcherState,
  replaced: readonly Iteration[],
  { jobName, consumerIndex, startAt, follows }: OpenRequest,
  { stream }: StreamRole,
): void {
  if (startAt === undefined || stream === undefined) return;
  let newest = state.readersOf(stream, consumerIndex ?? null)?.newest ?? 0;
  for (const { iterationId } of replaced) {
    for (const { clientId } of state.clientsOfIteration(iterationId)) {
      newest = Math.max(newest, clientId);
    }
  }
  if (newest === 0 || follows === newest) return;
  throw new LeatError(
    "failed_precondition",
    `Who takes job "${jobName}" over from a place in it has to say that it follows client ${newest}`,
    { details: { reason: TO_FOLLOW, follows: newest } },
  );
}
