/**
 * Joining an iteration of a job: what is asked for is checked, and what is not there yet is made.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Identity } from "../runtime/identity.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import type { Client, Iteration, Job } from "./entities.ts";
import { createTask, forgetIteration } from "./iterations.ts";
import { checkRequest } from "./opening_checks.ts";
import { hashJson } from "../../core/hash.ts";
import { ShardingPolicy } from "../../data/sharding_policy.ts";
import { modeFor } from "./modes/modes.ts";
import { checkJobOwner, checkSecret, digestOf } from "./owners.ts";
import { type DispatcherProtocol, type JobParameters, READ_BY_ANOTHER } from "./protocol.ts";
import { differenceOf } from "./graph_difference.ts";
import { isSaveOver } from "./saving.ts";
import { mayRead, serveNewClient } from "./targets.ts";
import type { ConsumerPlace } from "./protocol_figures.ts";
import type { DispatcherState } from "./state.ts";
import { checkFollows, ofOtherRuns, type StreamRole, streamRole } from "./stream_readers.ts";
import type { Turn } from "./turn.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
type OpenAnswer = AnswerOf<DispatcherProtocol, "openIteration">;

type PlaceOf = (clientId: number) => ConsumerPlace | undefined;

/** What workers and clients have said of themselves. */
interface Said {
  /** Where a consumer of a coordinated read is, if it has said so. */
  readonly placeOf: PlaceOf;
  /** Whether a task of the iteration cannot read on. */
  readonly isUnreadable: (iterationId: number) => boolean;
}

/** See `DispatcherProtocol.openIteration`. */
export function openIteration(
  turn: Turn,
  request: OpenRequest,
  sender: Identity,
  said: Said,
): OpenAnswer {
  const { state } = turn;
  const { secret } = request;
  const known = state.clientOfRequest(request.requestId);
  if (known !== undefined) {
    checkSecret(known, secret, known.clientId);
    return answerOf(turn, known);
  }
  checkRequest(turn, request, sender);
  const { jobName, parameters, repetition, consumerIndex = null } = request;
  const named = jobName === undefined ? undefined : state.jobNamed(jobName);
  if (named !== undefined) checkJobOwner(named, sender);
  if (jobName !== undefined) {
    forgetSave(turn, jobName);
    forgetFailed(turn, jobName);
  }
  const existing = jobName === undefined ? undefined : state.jobNamed(jobName);
  if (existing !== undefined) checkAgreement(state, existing, parameters);
  const role = streamRole(state, request, existing?.owner ?? sender.name);
  const found = existing === undefined ? undefined : state.iterationOf(existing.jobId, repetition);
  const replaced = existing === undefined ? [] : replacedBy(turn, existing, request, said);
  checkFollows(state, replaced, request, role);
  for (const iteration of replaced) forgetIteration(turn, iteration);
  const running = found !== undefined && replaced.includes(found) ? undefined : found;
  if (running !== undefined) checkReaders(turn, running, request, said.placeOf);

  const job = existing === undefined ? undefined : state.jobs.get(existing.jobId);
  const jobId = job?.jobId ?? createJob(turn, jobName ?? null, sender.name, parameters);
  const iterationId = running?.iterationId ?? createIteration(turn, jobId, request, role);
  const clientId = state.nextClientId;
  const { requestId, process } = request;
  turn.commit({
    type: "client_opened",
    clientId,
    iterationId,
    requestId,
    consumerIndex,
    ...(secret === undefined ? {} : { secret: digestOf(secret) }),
    ...(process === undefined ? {} : { process }),
    ...role,
    ...beginningOf(request),
  });
  serveNewClient(turn, state.clients.get(clientId)!);
  return { jobId, iterationId, clientId, clusterId: state.clusterId };
}

/** A save that is over is no matter of those who come next: they look at the folder again. */
function forgetSave(turn: Turn, jobName: string): void {
  const job = turn.state.jobNamed(jobName);
  if (job?.parameters.save === undefined) return;
  const iterations = turn.state.iterationsOfJob(job.jobId);
  if (iterations.every(isSaveOver)) { for (const it of iterations) forgetIteration(turn, it); }
}

/** Whoever comes after all have left that were told so may have mended the pipeline. */
function forgetFailed(turn: Turn, jobName: string): void {
  const { state } = turn;
  const job = state.jobNamed(jobName);
  const iterations = job === undefined ? [] : state.iterationsOfJob(job.jobId);
  const isOver = ({ iterationId, error }: Iteration) =>
    error !== null && state.clientsOfIteration(iterationId).size === 0;
  for (const iteration of iterations.filter(isOver)) forgetIteration(turn, iteration);
}

/** DETERMINISTIC: where a consumer begins, which may be elsewhere than the others. */
function beginningOf({ parameters, startAt, behind = [] }: OpenRequest) {
  const isConsumer = parameters.ordered !== undefined && parameters.numConsumers !== undefined;
  if (!isConsumer || startAt === undefined) return {};
  return { startAt, ...(behind.length === 0 ? {} : { behind }) };
}

function answerOf({ state }: Turn, { clientId, iterationId }: Client): OpenAnswer {
  const { jobId } = state.iterations.get(iterationId)!;
  return { jobId, iterationId, clientId, clusterId: state.clusterId };
}

function createJob(
  turn: Turn,
  name: string | null,
  owner: string,
  parameters: JobParameters,
): number {
  const jobId = turn.state.nextJobId;
  const workers = modeFor(parameters).hasFixedWorkers ? { workers: turn.listedWorkers } : {};
  turn.commit({ type: "job_created", jobId, name, owner, parameters, ...workers });
  return jobId;
}

/** The iterations that are forgotten before the request is served: the one it joins begins anew. */
function replacedBy(
  { state }: Turn,
  { jobId }: Job,
  request: OpenRequest,
  said: Said,
): readonly Iteration[] {
  if (request.parameters.save !== undefined) return [];
  const iterations = state.iterationsOfJob(jobId);
  const others = ofOtherRuns(iterations, request);
  if (others.length > 0) return others;
  const taken = takenOver(iterations, request);
  if (taken.length > 0) return taken;
  const found = state.iterationOf(jobId, request.repetition);
  return found !== undefined && isOver(state, found, request, said) ? [found] : [];
}

/**
 * A DETERMINISTIC reader that was restored takes the stream over from one that may be thought to be
 * alive still, in whichever repetition that is by now.
 *
 * Of several consumers the first that is restored begins it anew for all, and the others come to it:
 * they were in nothing of what there is then. Were lives of theirs left in a repetition before, each
 * that is restored there would put out who was restored in a later one.
 */
function takenOver(
  iterations: readonly Iteration[],
  { parameters, startAt, consumerIndex, runId }: OpenRequest,
): readonly Iteration[] {
  if (parameters.processingMode !== ShardingPolicy.DETERMINISTIC) return [];
  if (startAt === undefined) return [];
  if (consumerIndex === undefined) return iterations;
  // Those of a run come to one another.
  if (runId !== undefined) return [];
  const hasCome = ({ ordered }: Iteration) =>
    ordered?.consumers?.[consumerIndex]?.state !== "awaited";
  return iterations.some(hasCome) ? iterations : [];
}

/**
 * What a task could not read may be there now: who comes when all have left that were told so gets all
 * of it, and not what the other tasks have left.
 */
function isOver(
  state: DispatcherState,
  { iterationId }: Iteration,
  { parameters }: OpenRequest,
  { isUnreadable }: Said,
): boolean {
  if (state.clientsOfIteration(iterationId).size > 0) return false;
  return parameters.processingMode === ShardingPolicy.DETERMINISTIC ||
    isUnreadable(iterationId);
}

function createIteration(
  turn: Turn,
  jobId: number,
  { parameters, repetition, startAt = 0, behind = [] }: OpenRequest,
  { stream, runId }: StreamRole,
): number {
  const { state, random } = turn;
  const iterationId = state.nextIterationId;
  const { ordered, save } = parameters;
  const seed = ordered?.seed ?? random.hex64();
  turn.commit({
    type: "iteration_created",
    iterationId,
    jobId,
    repetition,
    seed,
    ...(ordered === undefined || save !== undefined ? {} : { startAt }),
    ...(ordered === undefined || behind.length === 0 ? {} : { behind }),
    ...(stream === undefined || runId === undefined ? {} : { run: { stream, runId } }),
  });
  const iteration = state.iterations.get(iterationId)!;
  for (const worker of state.workersFor(parameters)) {
    if (worker.alive && mayRead(parameters, null, worker)) createTask(turn, iteration, worker.name);
  }
  return iterationId;
}

/** Clients of one job must mean the same by it. */
function checkAgreement(state: DispatcherState, job: Job, parameters: JobParameters): void {
  const existing = describeParameters(state, job.parameters);
  const requested = describeParameters(state, parameters);
  if (existing === requested) return;
  if (job.parameters.save !== undefined) {
    throw new LeatError(
      "failed_precondition",
      `${job.parameters.save.folder} is being saved to with another dataset or other options: it is ` +
        `${existing}; asked for was ${requested}. Wait until that is done, or save to another folder`,
    );
  }
  throw invalid(
    `The job "${job.name}" exists with other parameters: it has ${existing}; this client asks for ` +
      `${requested}.${
        pipelinesOf(state, job.parameters, parameters)
      } Use the same parameters, or ` +
      `another jobName`,
  );
}

function pipelinesOf(state: DispatcherState, one: JobParameters, other: JobParameters): string {
  const [has, asks] = [one, other].map(({ datasetId }) => state.datasets.get(datasetId)?.graph);
  return has === undefined || asks === undefined ? "" : differenceOf(has, asks);
}

function describeParameters(state: DispatcherState, parameters: JobParameters): string {
  const { datasetId, processingMode, policy, numConsumers, sharing, ordered, save } = parameters;
  const { targetWorkers = "auto", targetTags = [] } = parameters;
  const mode = policy === undefined
    ? processingMode
    : `${policy.name} (${hashJson(policy.shard).slice(0, 12)})`;
  const { compression = "auto" } = state.datasets.get(datasetId) ?? {};
  return `{ datasetId: "${datasetId}", processingMode: "${mode}", ` +
    `numConsumers: ${
      numConsumers ?? "none"
    }, sharing: ${sharing}, compression: "${compression}", targetWorkers: "${targetWorkers}"` +
    `${targetTags.length === 0 ? "" : `, targetTags: ${JSON.stringify(targetTags)}`}` +
    `${ordered === undefined ? "" : `, seed: 0x${ordered.seed}, shuffled: ${ordered.shuffled}`}` +
    `${save === undefined ? "" : `, save: ${JSON.stringify(save)}`} }`;
}

/** Whether the iteration has place for one more reader. */
function checkReaders(
  { state }: Turn,
  iteration: Iteration,
  { parameters: { processingMode, save }, consumerIndex }: OpenRequest,
  placeOf: PlaceOf,
): void {
  if (save !== undefined) return;
  if (iteration.ordered?.consumers?.[consumerIndex ?? -1]?.state === "left") {
    throw new LeatError(
      "failed_precondition",
      `Consumer ${consumerIndex} of job "${state.jobs.get(iteration.jobId)?.name}" has left ` +
        `repetition ${iteration.repetition}, and others go on without it. Restore all consumers ` +
        "from what they saved at one step, or choose another jobName",
      { details: { reason: READ_BY_ANOTHER } },
    );
  }
  if (processingMode === ShardingPolicy.DETERMINISTIC && consumerIndex === undefined) {
    const [reader] = state.clientsOfIteration(iteration.iterationId);
    if (reader === undefined) return;
    throw new LeatError(
      "failed_precondition",
      `Repetition ${iteration.repetition} of the "${processingMode}" job ` +
        `"${
          state.jobs.get(iteration.jobId)?.name
        }" is read by client ${reader.clientId} already: one ` +
        `stream has one reader. Give each reader a jobName of its own`,
      { details: { reason: READ_BY_ANOTHER } },
    );
  }
  if (consumerIndex === undefined) return;
  for (const client of state.clientsOfIteration(iteration.iterationId)) {
    if (client.consumerIndex !== consumerIndex) continue;
    const place = placeOf(client.clientId);
    throw new LeatError(
      "failed_precondition",
      `Consumer index ${consumerIndex} of job "${
        state.jobs.get(iteration.jobId)?.name
      }" is held by ` +
        `client ${client.clientId}, which is alive` +
        `${
          place === undefined ? "" : ` and is at round ${place.round}`
        }. If that is this consumer before a restart, try ` +
        `again when it has timed out; otherwise give each consumer an index of its own`,
      { details: { reason: READ_BY_ANOTHER } },
    );
  }
}

function invalid(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}
