/**
 * DETERMINISTIC: who may read a stream, from one epoch to the next, where readers are restored that others
 * live beside.
 *
 * @module
 */
import { LeatError } from "../../../../core/error.ts";
import type { RequestOf } from "../../../runtime/protocol.ts";
import type { Iteration, StreamRun } from "../../state/entities.ts";
import { type DispatcherProtocol, READ_BY_ANOTHER, TO_FOLLOW } from "../../protocol.ts";
import type { DispatcherState } from "../../state/state.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** As what a client comes to a stream; nothing where it reads none that others can. */
export interface StreamRole {
  readonly stream?: string;
  /** It was restored: who was this reader before reads no more. */
  readonly restoration?: string;
  /** With which others it was started. */
  readonly runId?: string;
}

/**
 * As what the sender of the request comes.
 *
 * @param owner Whose the job is: readers name their stream themselves, and could name another's.
 * @throws {LeatError} `failed_precondition` for who was this reader before another one was restored. It
 * may have been between two repetitions, where nobody could tell it.
 */
export function streamRole(
  state: DispatcherState,
  request: OpenRequest,
  owner: string,
): StreamRole {
  const { jobName, consumerIndex = null, startAt, lastReader } = request;
  if (jobName === undefined) return {};
  const { restoration = request.requestId, runId } = request;
  const stream = JSON.stringify([owner, request.stream ?? jobName]);
  if (runId !== undefined) checkRunGoesOn(state.runOf(stream), jobName, runId);
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
  return {
    stream,
    ...(startAt === undefined ? {} : { restoration }),
    ...(runId === undefined ? {} : { runId }),
  };
}

/** @throws {LeatError} `failed_precondition` for a run that was followed by another one. */
function checkRunGoesOn(run: StreamRun | undefined, jobName: string, runId: string): void {
  if (run === undefined || !run.past.includes(runId)) return;
  throw new LeatError(
    "failed_precondition",
    `Job "${jobName}" is read by the run "${run.runId}", which has followed the run "${runId}". Give ` +
      "each start of all consumers a runId of its own",
    { details: { reason: READ_BY_ANOTHER } },
  );
}

/**
 * The iterations of other runs, which end where this one begins.
 *
 * @throws {LeatError} `failed_precondition` for who names no run where others do.
 */
export function ofOtherRuns(
  iterations: readonly Iteration[],
  { jobName, runId }: Pick<OpenRequest, "jobName" | "runId">,
): readonly Iteration[] {
  if (runId !== undefined) return iterations.filter(({ run }) => run?.runId !== runId);
  const named = iterations.find(({ run }) => run !== null);
  if (named === undefined) return [];
  throw new LeatError(
    "failed_precondition",
    `Job "${jobName}" is read by the run "${
      named.run!.runId
    }", and this reader names none: give all ` +
      "consumers that are started together one runId",
    { details: { reason: READ_BY_ANOTHER } },
  );
}

/**
 * Who is restored, or begins a run, has to have heard of the newest of those that it was itself, and of those that it takes
 * over from: a request may be so late that its sender has died, and the next life reads the stream.
 *
 * @param replaced The iterations that it takes over.
 * @throws {LeatError} `failed_precondition` with the one that it has to name.
 */
export function checkFollows(
  state: DispatcherState,
  replaced: readonly Iteration[],
  { jobName, consumerIndex, startAt, follows }: OpenRequest,
  { stream, runId }: StreamRole,
): void {
  if (stream === undefined) return;
  const run = runId === undefined ? undefined : state.runOf(stream);
  const followsRun = runId !== undefined && (run?.runId !== runId || replaced.length > 0);
  if (startAt === undefined && !followsRun) return;
  let newest = startAt === undefined
    ? 0
    : state.readersOf(stream, consumerIndex ?? null)?.newest ?? 0;
  if (followsRun) newest = Math.max(newest, run?.newest ?? 0);
  for (const { iterationId } of replaced) {
    for (const { clientId } of state.clientsOfIteration(iterationId)) {
      newest = Math.max(newest, clientId);
    }
  }
  if (newest === 0 || follows === newest) return;
  throw new LeatError(
    "failed_precondition",
    `Who takes job "${jobName}" over has to say that it follows client ${newest}`,
    { details: { reason: TO_FOLLOW, follows: newest } },
  );
}
