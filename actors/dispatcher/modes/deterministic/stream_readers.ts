/**
 * DETERMINISTIC: which readers may read a stream when some are restored while earlier ones live.
 */
import { LeatError } from "../../../../core/error.ts";
import { definedFields } from "../../../../core/tree.ts";
import type { RequestOf } from "../../../runtime/protocol.ts";
import type { Iteration, StreamRun } from "../../state/entities.ts";
import { type DispatcherProtocol, READ_BY_ANOTHER, TO_FOLLOW } from "../../protocol.ts";
import type { PassStart } from "../mode_state.ts";
import type { DispatcherState } from "../../state/state.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** A client's role in a stream; empty if its job is private. */
interface StreamRole {
  readonly stream?: string;
  /** The client was restored: earlier clients of this reader are refused. */
  readonly restoration?: string;
  /** Names the readers that were started together. */
  readonly runId?: string;
}

/**
 * The role of a request's sender.
 * @param owner The job's owner. It is part of the stream's name, so that no reader can name the
 *   stream of another owner.
 * @throws {LeatError} `failed_precondition` for a reader that a restored one has replaced, even if
 *   that happened between two repetitions, or for a reader of a replaced run.
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
  if (runId !== undefined) checkRunIsCurrent(state.runOf(stream), jobName, runId);
  const first = state.readersOf(stream, consumerIndex)?.restored?.first ?? 0;
  const last = lastReader?.clusterId === state.clusterId ? lastReader.clientId : Infinity;
  if (last < first) {
    throw new LeatError(
      "failed_precondition",
      `This reader last read job "${jobName}" as client ${last}; since then the job was restored by ` +
        `another reader, as client ${first}. To read it here instead, restore this reader from what ` +
        "it saved, or make its dataset anew",
      { details: { reason: READ_BY_ANOTHER } },
    );
  }
  return {
    stream,
    ...(startAt === undefined ? {} : { restoration }),
    ...(runId === undefined ? {} : { runId }),
  };
}

/**
 * The pass that a consumer's new iteration is. Without a run, a consumer that has read the stream
 * before continues that reading; any other one begins a new one.
 */
export function passOf(
  state: DispatcherState,
  { consumerIndex, iterator = 0, runId, lastReader }: OpenRequest,
  stream: string,
): PassStart {
  const continued = lastReader?.clusterId === state.clusterId
    ? state.readersOf(stream, consumerIndex ?? null)?.begun
    : undefined;
  return { stream, iterator, ...definedFields({ begun: runId ?? continued }) };
}

/** @throws {LeatError} `failed_precondition` for a run that a newer one has replaced. */
function checkRunIsCurrent(run: StreamRun | undefined, jobName: string, runId: string): void {
  if (run === undefined || !run.past.includes(runId)) return;
  throw new LeatError(
    "failed_precondition",
    `Job "${jobName}" is read by the run "${run.runId}", which has replaced the run "${runId}". ` +
      "Choose a new runId each time that all consumers are started",
    { details: { reason: READ_BY_ANOTHER } },
  );
}

/**
 * The iterations of other runs, which are dropped when this run starts.
 * @throws {LeatError} `failed_precondition` for a reader without a run if others have one.
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
    }", and this reader has no runId: give ` +
      "all consumers that are started together the same runId",
    { details: { reason: READ_BY_ANOTHER } },
  );
}

/**
 * A restored reader, or the first of a run, must name in `follows` the newest client that it
 * replaces: of its own earlier clients, of the previous run, or of the `replaced` iterations. This
 * fences late requests of senders that have died.
 * @throws {LeatError} `failed_precondition` with the client that it must name.
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
    `A client that takes job "${jobName}" over must have "follows": ${newest}`,
    { details: { reason: TO_FOLLOW, follows: newest } },
  );
}
