/**
 * The figures that workers and clients report: the dispatcher's soft state, from which it computes
 * rates and each job's usage.
 */
import { costOf } from "../../../core/cost.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { ElementSourceStats, TaskStats } from "../../worker/protocol.ts";
import type { DispatcherProtocol, TaskStatus } from "../protocol.ts";
import type {
  ClientFigures,
  ClientRates,
  JobUsage,
  ProcessUsage,
  SharingDescription,
  TaskRates,
  WorkerRates,
} from "../protocol_figures.ts";
import { CLIENT_FIGURES } from "../protocol_check.ts";
import { ReadRates } from "../scaling/read_rates.ts";
import { isReckonable, RateWindow } from "../scaling/rate_window.ts";
import type { DispatcherState } from "../state/state.ts";

const MS_PER_HOUR = 3_600_000;
const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_GB = 1e9;

type TaskCounts = "produced" | "servedBytes" | "bytesRead" | "busyMs";
type ClientCounts =
  | "elements"
  | "bytes"
  | "waitingMs"
  | "trainingMs"
  | "decodingMs"
  | "unpackingMs"
  | "wireBytes";

interface TaskFigures {
  readonly window: RateWindow<TaskCounts>;
  stats: TaskStats;
  frontStats: ElementSourceStats | undefined;
}

interface WorkerEntry {
  readonly incarnation: string;
  readonly window: RateWindow<"cpuSeconds">;
  readonly tasks: Map<number, TaskFigures>;
  draining: boolean;
  process: ProcessUsage | undefined;
  /** The report's time on the sender's clock. */
  atMs: number;
  heardMs: number;
}

interface ClientEntry {
  window: RateWindow<ClientCounts>;
  readonly reads: ReadRates;
  figures: Omit<ClientFigures, "reads">;
  /** The report's time on the dispatcher's clock. */
  heardMs: number;
}

/** Sums for one job; `metered` once a worker with its own process has worked for it. */
interface UsageSums {
  cpuHours: number;
  memoryGBHours: number;
  busyHours: number;
  clientHours: number;
  metered: boolean;
}

type WorkerReport = RequestOf<DispatcherProtocol, "workerHeartbeat">;

/** The reported figures, and the rates and usage derived from them. */
export class Figures {
  readonly #workers = new Map<string, WorkerEntry>();
  readonly #clients = new Map<number, ClientEntry>();
  readonly #usage = new Map<number, UsageSums>();
  readonly #windowMs: number;

  /** @param windowMs Length of the window of rates. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Handles a worker's heartbeat; the state already includes it. */
  workerHeard(state: DispatcherState, request: WorkerReport, nowMs: number): void {
    const { name, worker: { incarnation }, figures, tasks } = request;
    if (figures === undefined || !isReckonable(figures.atMs)) return;
    let entry = this.#workers.get(name);
    if (entry === undefined || entry.incarnation !== incarnation) {
      const { atMs, process, draining = false } = figures;
      entry = {
        incarnation,
        draining,
        window: new RateWindow(this.#windowMs),
        tasks: new Map(),
        process,
        atMs,
        heardMs: nowMs,
      };
      this.#workers.set(name, entry);
    } else if (figures.atMs <= entry.atMs) return;
    this.#charge(state, entry, request);
    const { atMs, process, draining = false } = figures;
    entry.atMs = atMs;
    entry.draining = draining;
    entry.process = process;
    entry.heardMs = nowMs;
    if (process !== undefined) entry.window.add(atMs, { cpuSeconds: process.cpuSeconds });
    this.#noteTasks(state, entry, tasks);
  }

  workerLost(name: string): void {
    this.#workers.delete(name);
  }

  clientHeard(
    state: DispatcherState,
    clientId: number,
    told: ClientFigures | undefined,
    nowMs: number,
  ): void {
    // A report with an invalid time would block all later ones.
    if (told === undefined || !isReckonable(told.atMs)) return;
    const { reads = [], ...others } = told;
    const known = Object.entries(others).filter(([name]) => CLIENT_FIGURES.has(name));
    const figures = Object.fromEntries(known) as typeof others;
    let entry = this.#clients.get(clientId);
    if (entry === undefined) {
      const window = new RateWindow<ClientCounts>(this.#windowMs);
      this.#clients.set(
        clientId,
        entry = { window, reads: new ReadRates(this.#windowMs), figures, heardMs: nowMs },
      );
    } else if (figures.atMs <= entry.figures.atMs) return;
    const { iterationId } = state.clients.get(clientId)!;
    const { jobId } = state.iterations.get(iterationId)!;
    this.#sums(state, jobId).clientHours += (figures.atMs - entry.figures.atMs) / MS_PER_HOUR;
    const { atMs, elements, bytes, waitingMs, trainingMs } = figures;
    const { decodingMs = 0, unpackingMs = 0, wireBytes = bytes } = figures;
    // Unknown worker names would be kept for every client.
    entry.reads.add(atMs, reads.filter(({ worker }) => state.workers.has(worker)));
    // A job's start-up time says nothing about its later rate.
    const isStarting = entry.figures.elements === 0 && elements > 0;
    if (isStarting) entry.window = new RateWindow(this.#windowMs);
    entry.window.add(atMs, {
      elements,
      bytes,
      waitingMs,
      trainingMs,
      decodingMs,
      unpackingMs,
      wireBytes,
    });
    entry.figures = figures;
    entry.heardMs = nowMs;
  }

  clientGone(clientId: number): void {
    this.#clients.delete(clientId);
  }

  /** Time since a worker's last report, in ms; very large without one. */
  ageMs(worker: string, nowMs: number): number {
    const entry = this.#workers.get(worker);
    return entry === undefined ? Number.MAX_VALUE : nowMs - entry.heardMs;
  }

  /** The same of a client. */
  clientAgeMs(clientId: number, nowMs: number): number {
    const entry = this.#clients.get(clientId);
    return entry === undefined ? Number.MAX_VALUE : nowMs - entry.heardMs;
  }

  ofWorker(name: string, nowMs: number): WorkerRates | null {
    const entry = this.#workers.get(name);
    if (entry === undefined) return null;
    const windows = [...entry.tasks.values()].map(({ window }) => window);
    const perSecond = (count: TaskCounts) =>
      windows.reduce((total, window) => total + window.perSecond(count), 0);
    const { process, window, draining } = entry;
    return {
      ageMs: nowMs - entry.heardMs,
      process: process === undefined
        ? null
        : { ...process, cpuCores: window.perSecond("cpuSeconds") },
      elementsPerSecond: perSecond("produced"),
      bytesPerSecond: perSecond("servedBytes"),
      busyShare: Math.max(0, ...windows.map(busyShareOf)),
      ...(draining ? { draining } : {}),
    };
  }

  ofTask(worker: string, taskId: number): TaskRates | null {
    const figures = this.#workers.get(worker)?.tasks.get(taskId);
    if (figures === undefined) return null;
    const { window, stats, frontStats } = figures;
    const { produced, served, servedBytes, bytesRead, bufferedBytes, waiting } = stats;
    return {
      produced,
      served,
      servedBytes,
      bytesRead,
      bufferedBytes,
      waiting,
      runnerRestarts: stats.runnerRestarts,
      busyMs: stats.busyMs,
      elementsPerSecond: window.perSecond("produced"),
      bytesPerSecond: window.perSecond("servedBytes"),
      bytesReadPerSecond: window.perSecond("bytesRead"),
      busyShare: busyShareOf(window),
      processingMs: window.perUnit("busyMs", "produced"),
      compression: stats.compression ?? null,
      sharing: describeSharing(frontStats),
      failure: stats.failure ?? null,
    };
  }

  /** Why a task cannot read on; undefined if it can, as far as known. */
  failureOf(worker: string, taskId: number): string | undefined {
    return this.#workers.get(worker)?.tasks.get(taskId)?.stats.failure;
  }

  ofClient(clientId: number): ClientRates | null {
    const entry = this.#clients.get(clientId);
    if (entry === undefined) return null;
    const { window, reads, figures: { atMs: _, ...figures } } = entry;
    const waitedMs = window.growth("waitingMs");
    const decodedMs = window.growth("decodingMs");
    const spentMs = waitedMs + window.growth("trainingMs") + decodedMs;
    return {
      ...figures,
      reads: reads.describe(),
      wireBytesPerSecond: window.perSecond("wireBytes"),
      decodingShare: share(decodedMs, spentMs),
      unpackingShare: share(window.growth("unpackingMs"), spentMs),
      elementsPerSecond: window.perSecond("elements"),
      bytesPerSecond: window.perSecond("bytes"),
      waitingShare: share(waitedMs, spentMs),
      targetProcessingMs: window.perUnit("trainingMs", "elements"),
    };
  }

  ofJob(jobId: number): JobUsage {
    const sums = this.#usage.get(jobId) ?? noUsage();
    const { cpuHours, memoryGBHours, busyHours, clientHours, metered } = sums;
    return {
      workerCpuHours: metered ? cpuHours : null,
      workerMemoryGBHours: metered ? memoryGBHours : null,
      workerBusyHours: busyHours,
      clientHours,
      workersDollars: metered ? workersDollars(cpuHours, memoryGBHours) : null,
    };
  }

  /**
   * Divides a worker's usage since its last heartbeat among the jobs of its tasks: CPU time in
   * proportion to their pipelines' work, or evenly if none worked; memory evenly.
   */
  #charge(state: DispatcherState, entry: WorkerEntry, { tasks, figures }: WorkerReport): void {
    const held = tasks.flatMap(({ taskId, completed, stats }) => {
      const jobId = jobOfTask(state, taskId);
      const before = entry.tasks.get(taskId)?.stats.busyMs ?? 0;
      const busyMs = Math.max(0, (stats?.busyMs ?? before) - before);
      return jobId === undefined || (completed && busyMs === 0) ? [] : [{ jobId, busyMs }];
    });
    const { process: before, atMs } = entry;
    const { process: now } = figures!;
    const hours = (figures!.atMs - atMs) / MS_PER_HOUR;
    const busyMs = held.reduce((sum, task) => sum + task.busyMs, 0);
    for (const task of held) {
      const sums = this.#sums(state, task.jobId);
      sums.busyHours += task.busyMs / MS_PER_HOUR;
      if (before === undefined || now === undefined || now.shared) continue;
      sums.metered = true;
      const part = busyMs === 0 ? 1 / held.length : task.busyMs / busyMs;
      sums.cpuHours += part * (now.cpuSeconds - before.cpuSeconds) / SECONDS_PER_HOUR;
      const memoryGB = (before.memoryBytes + now.memoryBytes) / 2 / BYTES_PER_GB;
      sums.memoryGBHours += memoryGB * hours / held.length;
    }
  }

  #noteTasks(state: DispatcherState, entry: WorkerEntry, tasks: readonly TaskStatus[]): void {
    const named = new Set(tasks.map(({ taskId }) => taskId));
    for (const taskId of entry.tasks.keys()) if (!named.has(taskId)) entry.tasks.delete(taskId);
    for (const { taskId, stats, frontStats } of tasks) {
      if (stats === undefined || !state.tasks.has(taskId)) continue;
      let figures = entry.tasks.get(taskId);
      if (figures === undefined) {
        figures = { window: new RateWindow(this.#windowMs), stats, frontStats };
        entry.tasks.set(taskId, figures);
      }
      figures.stats = stats;
      figures.frontStats = frontStats;
      const { produced, servedBytes, bytesRead, busyMs } = stats;
      figures.window.add(entry.atMs, { produced, servedBytes, bytesRead, busyMs });
    }
  }

  #sums(state: DispatcherState, jobId: number): UsageSums {
    let sums = this.#usage.get(jobId);
    if (sums === undefined) {
      if (this.#usage.size >= 2 * state.jobs.size) this.#forgetUsage(state);
      this.#usage.set(jobId, sums = noUsage());
    }
    return sums;
  }

  /** Forgets the usage of ended jobs in batches, as a scan per new job would be quadratic. */
  #forgetUsage(state: DispatcherState): void {
    for (const known of this.#usage.keys()) if (!state.jobs.has(known)) this.#usage.delete(known);
  }
}

function jobOfTask(state: DispatcherState, taskId: number): number | undefined {
  const task = state.tasks.get(taskId);
  return task === undefined ? undefined : state.iterations.get(task.iterationId)?.jobId;
}

function noUsage(): UsageSums {
  return { cpuHours: 0, memoryGBHours: 0, busyHours: 0, clientHours: 0, metered: false };
}

/** The workers' part of equation 1; the cost depends only on the total hours. */
function workersDollars(cpuHours: number, memoryGBHours: number): number {
  return costOf({
    jobSeconds: SECONDS_PER_HOUR,
    workers: 1,
    workerCores: cpuHours,
    workerMemoryGB: memoryGBHours,
    trainers: 0,
    trainerCores: 0,
    trainerMemoryGB: 0,
    acceleratorsPerTrainer: 0,
  }).workers;
}

function describeSharing(stats: ElementSourceStats | undefined): SharingDescription | null {
  if (stats?.sharing === undefined) return null;
  const { bufferedBytes, produced, served, skipped, sharing } = stats;
  const hitRate = served === 0 ? null : sharing.hits / served;
  return { windowBytes: bufferedBytes, produced, served, skipped, ...sharing, hitRate };
}

function busyShareOf(window: RateWindow<TaskCounts>): number {
  return share(window.growth("busyMs"), window.spanMs);
}

function share(part: number, whole: number): number {
  return whole <= 0 ? 0 : Math.min(1, Math.max(0, part / whole));
}
