/** Joins an iteration of a job: checks the request, and creates job and iteration if missing. */
import { LeatError } from "../../../core/error.ts";
import type { Identity } from "../../runtime/identity.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Client, Iteration, Job } from "../state/entities.ts";
import { existingTask, forgetIteration } from "./iterations.ts";
import { checkRequest } from "./join_checks.ts";
import { hashJson } from "../../../core/hash.ts";
import type { JoinDecision } from "../modes/mode.ts";
import { modeFor } from "../modes/modes.ts";
import { checkJobOwner, checkSecret, digestOf } from "./owners.ts";
import { type DispatcherProtocol, type JobParameters, READ_BY_ANOTHER } from "../protocol.ts";
import { differenceOf } from "./graph_difference.ts";
import { serveAllClients, serveNewClient } from "./targets.ts";
import type { ConsumerPosition } from "../protocol_figures.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
type OpenAnswer = AnswerOf<DispatcherProtocol, "openIteration">;

type PositionOf = (clientId: number) => ConsumerPosition | undefined;

/** What workers and clients have reported. */
interface Reported {
  /** The position of a consumer of a coordinated read, if it has reported one. */
  readonly positionOf: PositionOf;
  /** Whether a worker has reported that its task of the iteration cannot continue. */
  readonly isUnreadable: (iterationId: number) => boolean;
  /** Whether the connection of a client is closed, so that the client will soon be released. */
  readonly isClosed: (clientId: number) => boolean;
}

/** Handles `DispatcherProtocol.openIteration`, for `reader`. */
export function openIteration(
  tx: Transaction,
  request: OpenRequest,
  reader: Identity,
  reported: Reported,
): OpenAnswer {
  const { state } = tx;
  const { secret } = request;
  const known = state.clientOfRequest(request.requestId);
  if (known !== undefined) {
    checkSecret(known, secret, known.clientId);
    return answerOf(tx, known);
  }
  checkRequest(tx, request, reader);
  const readBy = readingIteration(state, request);
  const { jobName, parameters, repetition, consumerIndex = null } = request;
  const named = jobName === undefined ? undefined : state.jobNamed(jobName);
  if (named !== undefined) checkJobOwner(named, reader);
  // Also if the job is made again below: an admin who restores a client's job does not take it over.
  const owner = named?.owner ?? reader.name;
  if (jobName !== undefined) forgetEnded(tx, jobName);
  // `forgetEnded` may have removed the job.
  const existing = jobName === undefined ? undefined : state.jobNamed(jobName);
  if (existing !== undefined) checkAgreement(state, existing, parameters);
  const mode = modeFor(parameters);
  const found = existing === undefined ? undefined : state.iterationOf(existing.jobId, repetition);
  const { isUnreadable } = reported;
  const { replaced, client } = mode.admit(state, request, { job: existing, owner, isUnreadable });
  for (const iteration of replaced) forgetIteration(tx, iteration);
  const running = found !== undefined && replaced.includes(found) ? undefined : found;
  if (running !== undefined) {
    mode.checkReaders({ state, iteration: running }, request);
    checkConsumers(tx, running, request, reported.positionOf);
  }

  // `forgetIteration` may have removed the job.
  const job = existing === undefined ? undefined : state.jobs.get(existing.jobId);
  const jobId = job?.jobId ?? createJob(tx, jobName ?? null, owner, parameters);
  const isContinued = running !== undefined &&
    state.clientsOfIteration(running.iterationId).values()
      .every(({ clientId }) => reported.isClosed(clientId));
  const iterationId = running?.iterationId ?? createIteration(tx, jobId, request, client);
  const clientId = state.nextId("client");
  const { requestId, process } = request;
  tx.append({
    type: "client_opened",
    clientId,
    iterationId,
    requestId,
    consumerIndex,
    ...(secret === undefined ? {} : { secret: digestOf(secret) }),
    ...(process === undefined ? {} : { process }),
    ...(readBy === undefined ? {} : { readBy }),
    ...client,
  });
  const joined = state.clients.get(clientId)!;
  serveNewClient(tx, joined);
  return { ...answerOf(tx, joined), ...(isContinued ? { isContinued } : {}) };
}

/** The iteration whose task reads, if it is one of this cluster. */
function readingIteration(
  state: DispatcherState,
  { forTask }: OpenRequest,
): number | undefined {
  if (forTask?.clusterId !== state.clusterId) return undefined;
  const [{ iterationId }] = existingTask(state, forTask.taskId, "its pipeline reads nothing more");
  return iterationId;
}

/** Forgets iterations that are over, and failed ones without clients, as a retry may succeed. */
function forgetEnded(tx: Transaction, jobName: string): void {
  const { state } = tx;
  const job = state.jobNamed(jobName);
  if (job === undefined) return;
  const mode = modeFor(job.parameters);
  for (const iteration of state.iterationsOfJob(job.jobId)) {
    const { iterationId, error } = iteration;
    const isFailedUnread = error !== null && state.clientsOfIteration(iterationId).size === 0;
    if (isFailedUnread || mode.isOver(iteration)) forgetIteration(tx, iteration);
  }
}

function answerOf({ state }: Transaction, { clientId, iterationId }: Client): OpenAnswer {
  const { jobId } = state.iterations.get(iterationId)!;
  return { jobId, iterationId, clientId, clusterId: state.clusterId };
}

function createJob(
  tx: Transaction,
  name: string | null,
  owner: string,
  parameters: JobParameters,
): number {
  const jobId = tx.state.nextId("job");
  const workers = modeFor(parameters).hasFixedWorkers ? { workers: tx.listedWorkers } : {};
  tx.append({ type: "job_created", jobId, name, owner, parameters, ...workers });
  return jobId;
}

function createIteration(
  tx: Transaction,
  jobId: number,
  request: OpenRequest,
  client: JoinDecision["client"],
): number {
  const { state } = tx;
  const { parameters, repetition } = request;
  const iterationId = state.nextId("iteration");
  const initial = modeFor(parameters).initialFields(request, client, tx);
  tx.append({ type: "iteration_created", iterationId, jobId, repetition, ...initial });
  serveAllClients(tx, state.iterations.get(iterationId)!);
  return iterationId;
}

function checkAgreement(state: DispatcherState, job: Job, parameters: JobParameters): void {
  const existing = describeParameters(state, job.parameters);
  const requested = describeParameters(state, parameters);
  if (existing === requested) return;
  const difference = pipelineDiff(state, job.parameters, parameters);
  throw modeFor(job.parameters).disagreement(job, existing, requested, difference);
}

function pipelineDiff(state: DispatcherState, one: JobParameters, other: JobParameters): string {
  const [has, asks] = [one, other].map(({ datasetId }) => state.datasets.get(datasetId)?.graph);
  return has === undefined || asks === undefined ? "" : differenceOf(has, asks);
}

function describeParameters(state: DispatcherState, parameters: JobParameters): string {
  const { datasetId, processingMode, policy, numConsumers, sharing, ordered, save } = parameters;
  const { targetWorkers = "auto" } = parameters;
  const targetTags = [...new Set(parameters.targetTags)].sort();
  const mode = policy === undefined
    ? processingMode
    : `${policy.name} (${hashJson(policy.shard).slice(0, 12)})`;
  const { compression = "auto" } = state.datasets.get(datasetId) ?? {};
  return `{ datasetId: "${datasetId}", processingMode: "${mode}", numConsumers: ` +
    `${numConsumers ?? "none"}, sharing: ${sharing}, compression: "${compression}", ` +
    "targetWorkers: " +
    `"${targetWorkers}"${
      targetTags.length === 0 ? "" : `, targetTags: ${JSON.stringify(targetTags)}`
    }${ordered === undefined ? "" : `, seed: 0x${ordered.seed}, shuffled: ${ordered.shuffled}`}${
      save === undefined ? "" : `, save: ${JSON.stringify(save)}`
    } ` +
    "}";
}

/** @throws {LeatError} if another client has this consumer index. */
function checkConsumers(
  { state }: Transaction,
  iteration: Iteration,
  { consumerIndex }: OpenRequest,
  positionOf: PositionOf,
): void {
  if (consumerIndex === undefined) return;
  for (const client of state.clientsOfIteration(iteration.iterationId)) {
    if (client.consumerIndex !== consumerIndex) continue;
    const position = positionOf(client.clientId);
    throw new LeatError(
      "failed_precondition",
      `Consumer index ${consumerIndex} of job "${state.jobs.get(iteration.jobId)?.name}" is held ` +
        `by client ${client.clientId}, which is ` +
        `alive${position === undefined ? "" : ` and is at round ${position.round}`}. If this ` +
        "consumer has restarted and that was its former client, try again after that client has " +
        "timed out. Otherwise give each consumer its own index",
      { details: { reason: READ_BY_ANOTHER } },
    );
  }
}
