/** Quotas of identities. The defaults are large: thousands of users may share one token. */
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import type { Identity } from "../../runtime/identity.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import { bytesOfOpening } from "../held_bytes.ts";
import type { DispatcherProtocol } from "../protocol.ts";
import type { Client, Iteration, Job } from "../state/entities.ts";
import type { DispatcherState } from "../state/state.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** The limits of each identity, and some limits of all identities together. */
export interface Quotas {
  /** Bytes of one registered pipeline. Default 32 MiB. */
  readonly datasetBytesMax: number;
  /** Bytes of one identity's pipelines together; each counts 4 KiB more. Default 256 MiB. */
  readonly datasetsBytesMax: number;
  /** Bytes of all identities' pipelines together, which a snapshot contains. Default 512 MiB. */
  readonly allDatasetsBytesMax: number;
  /**
   * Bytes of the parameters of one identity's jobs and clients together; each repetition counts 512
   * more. Default 32 MiB.
   */
  readonly parametersBytesMax: number;
  /** Bytes of all identities' parameters together, which a snapshot contains. Default 128 MiB. */
  readonly allParametersBytesMax: number;
  /**
   * Bytes of the tables of splits of one identity's jobs together: 16 for each split, and 256 for
   * each source. Default 272 MiB, which the largest possible job needs.
   */
  readonly splitsBytesMax: number;
  /** Bytes of all identities' tables of splits together. Default 544 MiB. */
  readonly allSplitsBytesMax: number;
  /** Jobs of one identity. Default 16,384. */
  readonly jobsMax: number;
  /**
   * Iterations of one identity that have clients or unfinished tasks, at a time. Each has a task,
   * with a process, on every worker that may serve it. Completed tasks that nobody reads end where
   * more iterations would have tasks. Admins have no such limit, except for jobs that their
   * pipelines open on workers with other tokens. Default 256.
   */
  readonly tasksMax: number;
  /** Clients of one identity at a time. Default 65,536. */
  readonly clientsMax: number;
  /**
   * Requests per second of one identity, or of one node of an admin. Large requests and answers count
   * as several. Default 10,000.
   */
  readonly requestsPerSecondMax: number;
}

export const QUOTAS: Quotas = {
  datasetBytesMax: 32 * 2 ** 20,
  datasetsBytesMax: 256 * 2 ** 20,
  allDatasetsBytesMax: 512 * 2 ** 20,
  parametersBytesMax: 32 * 2 ** 20,
  allParametersBytesMax: 128 * 2 ** 20,
  splitsBytesMax: 272 * 2 ** 20,
  allSplitsBytesMax: 544 * 2 ** 20,
  jobsMax: 16_384,
  tasksMax: 256,
  clientsMax: 65_536,
  requestsPerSecondMax: 10_000,
};

/** @throws LeatError `invalid_argument` for an invalid quota. */
export function checkedQuotas(given: Partial<Quotas> = {}): Quotas {
  const quotas = { ...QUOTAS, ...definedFields(given) };
  for (const [name, value] of Object.entries(quotas)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new LeatError(
      "invalid_argument",
      `quotas.${name} must be an integer from 1, got ${value}`,
    );
  }
  return quotas;
}

/**
 * @throws LeatError `resource_exhausted` if the datasets of the owner, or of all, get too large.
 */
export function checkDatasetBytes(
  state: DispatcherState,
  owner: string,
  more: number,
  quotas: Quotas,
): void {
  checkBytes(state.datasetBytesOf(owner), more, quotas, {
    own: [
      "datasetsBytesMax",
      `The pipelines registered by "${owner}"`,
      "read data from files instead of putting it into pipelines, end jobs to free their pipelines",
    ],
    all: [
      "allDatasetsBytesMax",
      "All registered pipelines",
      "wait until other jobs have ended, read data from files instead of putting it into pipelines",
    ],
  });
}

/**
 * Checks a request to open an iteration against the quotas.
 * @throws LeatError `resource_exhausted` for an identity with too many jobs, tasks or clients, or
 *   whose parameters would be too large.
 */
export function checkQuotas(
  state: DispatcherState,
  request: OpenRequest,
  { name: owner, role }: Identity,
  quotas: Quotas,
): void {
  const { requestId, jobName, repetition } = request;
  const { jobsMax, tasksMax, clientsMax } = quotas;
  if (state.clientOfRequest(requestId) !== undefined) return;
  const isOwn = ({ jobId }: Pick<Job, "jobId">) => state.jobs.get(jobId)!.owner === owner;
  const job = jobName === undefined ? undefined : state.jobNamed(jobName);
  if (job === undefined && hasReached(jobsMax, state.jobs, isOwn)) {
    throw exhausted(
      `"${owner}" has ${jobsMax} jobs (jobsMax)`,
      "end some, or give clients that may share a job one jobName",
    );
  }
  const hasTasks = job !== undefined && isUnderWay(state, state.iterationOf(job.jobId, repetition));
  const isOwnTask = (iteration: Iteration) => isOwn(iteration) && isUnderWay(state, iteration);
  if (role !== "admin" && !hasTasks && hasReached(tasksMax, state.iterations, isOwnTask)) {
    throw exhausted(
      `"${owner}" has ${tasksMax} tasks on each worker (tasksMax), one for each iteration`,
      "end some iterators, or give clients that may share a job one jobName; if nobody reads a named " +
        "job any more, its tasks end after jobGcTimeoutMs",
    );
  }
  const isOwnClient = ({ iterationId }: Client) => isOwn(state.iterations.get(iterationId)!);
  if (hasReached(clientsMax, state.clients, isOwnClient)) {
    throw exhausted(`"${owner}" has ${clientsMax} clients (clientsMax)`, "end some iterators");
  }
  checkParameterBytes(state, owner, bytesOfOpening(request), quotas);
}

/**
 * Whether the splits that readers of an owner's jobs report may be kept. What is not kept must not
 * fail the reader: the parameters of others may have used up the limit of all.
 */
export function mayKeepReport(
  state: DispatcherState,
  owner: string,
  more: number,
  { parametersBytesMax, allParametersBytesMax }: Quotas,
): boolean {
  const held = state.parameterBytesOf(owner);
  return held.own + more <= parametersBytesMax && held.all + more <= allParametersBytesMax;
}

/**
 * @throws LeatError `resource_exhausted` if the jobs and clients of the owner, or of all, would keep
 *   too much: parameters, and the splits that readers report.
 */
function checkParameterBytes(
  state: DispatcherState,
  owner: string,
  more: number,
  quotas: Quotas,
): void {
  checkBytes(state.parameterBytesOf(owner), more, quotas, {
    own: [
      "parametersBytesMax",
      `The parameters of the jobs, repetitions and clients of "${owner}", and their reports,`,
      "end some, wait until repetitions without clients are removed (jobGcTimeoutMs), or shorten " +
      "parameters (jobName, targetTags, the captures of a sharding policy)",
    ],
    all: [
      "allParametersBytesMax",
      "The parameters of all jobs, repetitions and clients, and their reports,",
      "wait until other jobs have ended",
    ],
  });
}

/**
 * The iterations whose completed tasks must end, so that at most `tasksMax` iterations of the
 * identity have tasks: the oldest that nobody reads. Their workers may hold elements that no client
 * has fetched or acknowledged.
 */
export function unreadSurplus(
  state: DispatcherState,
  { name: owner, role }: Identity,
  { tasksMax }: Quotas,
): Iteration[] {
  if (role === "admin" || state.iterations.size <= tasksMax) return [];
  const isUnread = (iteration: Iteration) => !isUnderWay(state, iteration);
  const own = [...state.iterations.values()].filter((iteration) =>
    state.jobs.get(iteration.jobId)!.owner === owner &&
    (!isUnread(iteration) || state.tasksOfIteration(iteration.iterationId).size > 0)
  );
  return own.filter(isUnread).slice(0, Math.max(0, own.length - tasksMax));
}

/**
 * @throws LeatError `resource_exhausted` if the tables of splits of the owner, or of all, get too
 *   large.
 */
export function checkSplitBytes(
  state: DispatcherState,
  owner: string,
  more: number,
  quotas: Quotas,
): void {
  checkBytes(state.splitBytesOf(owner), more, quotas, {
    own: [
      "splitsBytesMax",
      `The splits of the jobs of "${owner}"`,
      "end some jobs, or read fewer and larger files",
    ],
    all: ["allSplitsBytesMax", "The splits of all jobs", "wait until other jobs have ended"],
  });
}

/** A quota in bytes, what it limits, and the remedy. */
type ByteQuota = readonly [name: keyof Quotas, what: string, remedy: string];

/** Refuses `more` bytes if they exceed the quota of one identity or of all. */
function checkBytes(
  held: Readonly<Record<"own" | "all", number>>,
  more: number,
  quotas: Quotas,
  limits: Readonly<Record<"own" | "all", ByteQuota>>,
): void {
  for (const holder of ["all", "own"] as const) {
    const [name, what, remedy] = limits[holder];
    const bytes = held[holder] + more;
    if (bytes <= quotas[name]) continue;
    throw exhausted(
      `${what} would take ${bytes} bytes together, over ${quotas[name]} (${name})`,
      remedy,
    );
  }
}

/** Whether at least `max` entities satisfy `counts`. Scans them only if there are that many. */
function hasReached<T>(
  max: number,
  all: ReadonlyMap<number, T>,
  counts: (one: T) => boolean,
): boolean {
  if (all.size < max) return false;
  return all.values().reduce((sum, one) => counts(one) ? sum + 1 : sum, 0) >= max;
}

/** Whether an iteration has clients or unfinished tasks. */
function isUnderWay(state: DispatcherState, iteration: Iteration | undefined): boolean {
  if (iteration === undefined) return false;
  const { iterationId } = iteration;
  return state.clientsOfIteration(iterationId).size > 0 || state.tasksToComplete(iterationId) > 0;
}

function exhausted(what: string, remedy: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `${what}; ${remedy}, or raise the dispatcher's quotas`,
  );
}
