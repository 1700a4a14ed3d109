/**
 * Keeps the figures that workers and clients report, which are soft state, and computes rates and
 * each job's usage from them.
 */
import { costOf } from "../../../core/cost.ts";
import { definedFields } from "../../../core/tree.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { TaskStats } from "../../worker/protocol.ts";
import type { DispatcherProtocol, TaskStatus } from "../protocol.ts";
import type {
  ClientFigures,
  ClientRates,
  JobUsage,
  ProcessUsage,
  ReadFigures,
  TaskRates,
  WorkerRates,
} from "../protocol_figures.ts";
import { ReadRates } from "../scaling/read_rates.ts";
import { isComputable, isCount, RateWindow } from "../scaling/rate_window.ts";
import { seriesOf } from "../jobs/series.ts";
import type { DispatcherState } from "../state/state.ts";
import { countersOf, described, knownFigures } from "./described.ts";

const MS_PER_HOUR = 3_600_000;
const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_GB = 1e9;
/** A worker that is asked for a report sends it within this time, in ms. */
const ANSWER_MS = 5_000;
/** A member that has not reported for less than this is not called silent, in ms. */
const SILENT_MIN_MS = 15_000;

interface TaskFigures {
  readonly taskId: number;
  /** See {@linkcode seriesOf}. */
  readonly series: string;
  readonly window: RateWindow;
  readonly figures: TaskStats;
  readonly sharing: TaskStatus["sharing"];
}

interface WorkerEntry {
  readonly incarnation: string;
  readonly window: RateWindow;
  readonly tasks: Map<number, TaskFigures>;
  /** The newest task of each series: the rates of the next epoch's task continue those of it. */
  readonly newest: Map<string, TaskFigures>;
  /**
   * Completed tasks whose figures the last report left out, and which are not known here. When they
   * come, they are of work before that report.
   */
  readonly lacking: Set<number>;
  draining: boolean;
  process: ProcessUsage | undefined;
  /** The report's time on the sender's clock. */
  atMs: number;
  heardMs: number;
}

interface ClientEntry {
  /** See {@linkcode seriesOf}. */
  readonly series: string;
  /** Whether its rates continue those of a client before it. */
  readonly isContinued: boolean;
  window: RateWindow;
  readonly reads: ReadRates;
  figures: Omit<ClientFigures, "reads">;
  /** The report's time on the dispatcher's clock. */
  heardMs: number;
}

/** The usage of one job; `metered` is set once a worker with its own process has worked for it. */
interface UsageSums {
  cpuHours: number;
  memoryGBHours: number;
  busyHours: number;
  clientHours: number;
  metered: boolean;
}

type WorkerReport = RequestOf<DispatcherProtocol, "workerHeartbeat">;

export class Figures {
  readonly #workers = new Map<string, WorkerEntry>();
  readonly #clients = new Map<number, ClientEntry>();
  /** The last client of each series that left: the next epoch's client continues its rates. */
  readonly #left = new Map<string, ClientEntry>();
  readonly #usage = new Map<number, UsageSums>();
  /** Since when a worker was asked for a report that has not come, in monotonic ms. */
  readonly #askedMs = new Map<string, number>();
  readonly #windowMs: number;

  /** @param windowMs Length of the window of rates. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Handles a worker's heartbeat, after it was applied to the state. */
  workerHeard(state: DispatcherState, request: WorkerReport, nowMs: number): void {
    const { name, worker: { incarnation }, figures, tasks } = request;
    this.#askedMs.delete(name);
    if (figures === undefined || !isComputable(figures.atMs)) return;
    let entry = this.#workers.get(name);
    if (entry === undefined || entry.incarnation !== incarnation) {
      const { atMs, process, draining = false } = figures;
      entry = {
        incarnation,
        draining,
        window: new RateWindow(this.#windowMs),
        tasks: new Map(),
        newest: new Map(),
        lacking: new Set(),
        process,
        atMs,
        heardMs: nowMs,
      };
      this.#workers.set(name, entry);
    } else if (figures.atMs <= entry.atMs) return;
    // A first report is the start: what it counts may be from before this dispatcher started.
    else this.#charge(state, entry, request);
    const { atMs, process, draining = false } = figures;
    entry.atMs = atMs;
    entry.draining = draining;
    entry.process = process;
    entry.heardMs = nowMs;
    if (process !== undefined) entry.window.add(atMs, countersOf("process", process));
    this.#noteTasks(state, entry, tasks);
  }

  /** Whether a heartbeat leaves figures out that are not known here. */
  lacksFiguresOf({ name, tasks }: WorkerReport): boolean {
    const known = this.#workers.get(name)?.tasks;
    return tasks.some(({ taskId, completed, stats }) =>
      completed && stats === undefined && known?.has(taskId) !== true
    );
  }

  workerAsked(name: string, nowMs: number): void {
    this.#askedMs.getOrInsert(name, nowMs);
  }

  workerLost(name: string): void {
    this.#workers.delete(name);
    this.#askedMs.delete(name);
  }

  clientHeard(
    state: DispatcherState,
    clientId: number,
    reported: ClientFigures | undefined,
    nowMs: number,
  ): void {
    // A report with an invalid time would block all later ones.
    if (reported === undefined || !isComputable(reported.atMs)) return;
    const { reads = [], atMs, unread } = reported;
    const order = knownFigures("order", reported);
    const figures = {
      ...{ atMs, ...knownFigures("client", reported), ...order },
      ...definedFields({ unread }),
    };
    const { iterationId } = state.clients.get(clientId)!;
    const { jobId } = state.iterations.get(iterationId)!;
    let entry = this.#clients.get(clientId);
    if (entry === undefined) {
      const series = seriesOf(state, jobId);
      const left = this.#left.get(series);
      const window = left === undefined
        ? this.#freshWindow()
        : left.window.continued(atMs, atMs - left.figures.atMs - (nowMs - left.heardMs));
      const reads = new ReadRates(this.#windowMs);
      const isContinued = window.newest !== undefined;
      entry = { series, isContinued, window, reads, figures, heardMs: nowMs };
      this.#clients.set(clientId, entry);
    } else if (figures.atMs <= entry.figures.atMs) return;
    this.#sums(state, jobId).clientHours += (figures.atMs - entry.figures.atMs) / MS_PER_HOUR;
    // A client may report tasks that do not exist: these must not be kept.
    const { reads: known } = entry;
    const isOwn = ({ taskId, worker }: ReadFigures) => {
      const task = state.tasks.get(taskId);
      if (task === undefined) return known.has(taskId, worker);
      return task.iterationId === iterationId && task.worker === worker;
    };
    known.add(atMs, reads.filter(isOwn));
    // A job's start-up time says nothing about its later rate.
    const isStarting = entry.figures.elements === 0 && entry.window.growth("elements") === 0 &&
      (!entry.isContinued || entry.window.spanMs >= this.#windowMs);
    if (isStarting && figures.elements > 0) entry.window = this.#freshWindow();
    entry.window.add(atMs, countersOf("client", figures));
    entry.figures = figures;
    entry.heardMs = nowMs;
  }

  clientGone(clientId: number): void {
    const entry = this.#clients.get(clientId);
    if (entry === undefined) return;
    this.#clients.delete(clientId);
    this.#left.delete(entry.series);
    this.#left.set(entry.series, entry);
    for (const [series, { heardMs }] of this.#left) {
      if (entry.heardMs - heardMs <= 2 * this.#windowMs) return;
      this.#left.delete(series);
    }
  }

  /** Time since a worker's last report, in ms; very large if there was none. */
  ageMs(worker: string, nowMs: number): number {
    const entry = this.#workers.get(worker);
    return entry === undefined ? Number.MAX_VALUE : nowMs - entry.heardMs;
  }

  /** Time since a client's last report, in ms; very large if there was none. */
  clientAgeMs(clientId: number, nowMs: number): number {
    const entry = this.#clients.get(clientId);
    return entry === undefined ? Number.MAX_VALUE : nowMs - entry.heardMs;
  }

  /**
   * How long a worker has not reported although it was asked, in ms; undefined while it reports. Its
   * figures may be older than `staleMs` only because nobody asked.
   */
  silentMs(worker: string, nowMs: number, staleMs: number): number | undefined {
    const entry = this.#workers.get(worker);
    const askedMs = this.#askedMs.get(worker);
    if (entry === undefined || askedMs === undefined || nowMs - askedMs <= ANSWER_MS) {
      return undefined;
    }
    return silence(nowMs - entry.heardMs, staleMs);
  }

  /** How long a client has not reported, in ms; undefined while it reports. */
  clientSilentMs(clientId: number, nowMs: number, staleMs: number): number | undefined {
    const entry = this.#clients.get(clientId);
    return entry && silence(nowMs - entry.heardMs, staleMs);
  }

  isDraining(worker: string): boolean {
    return this.#workers.get(worker)?.draining === true;
  }

  ofWorker(name: string, nowMs: number): WorkerRates | null {
    const entry = this.#workers.get(name);
    if (entry === undefined) return null;
    const { process, draining } = entry;
    return {
      ageMs: nowMs - entry.heardMs,
      process: process === undefined ? null : {
        shared: process.shared,
        ...described("process", [{ figures: process, window: entry.window }]),
      },
      ...described("task", [...entry.tasks.values()]),
      ...(draining ? { draining } : {}),
    };
  }

  ofTask(worker: string, taskId: number): TaskRates | null {
    const task = this.#workers.get(worker)?.tasks.get(taskId);
    if (task === undefined) return null;
    const { figures: { compression = null, failure = null }, sharing, window } = task;
    return {
      ...described("task", [task]),
      compression,
      sharing: sharing === undefined ? null : described("sharing", [{ figures: sharing, window }]),
      failure,
    };
  }

  /** Why a task cannot continue, if its worker has reported that. */
  failureOf(worker: string, taskId: number): string | undefined {
    return this.#workers.get(worker)?.tasks.get(taskId)?.figures.failure;
  }

  ofClient(clientId: number): ClientRates | null {
    const entry = this.#clients.get(clientId);
    if (entry === undefined) return null;
    const { figures, reads } = entry;
    return {
      ...described("client", [entry]),
      ...knownFigures("order", figures),
      ...definedFields({ unread: figures.unread }),
      reads: reads.describe(),
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
      if (entry.lacking.has(taskId)) return [];
      const jobId = jobOfTask(state, taskId);
      const before = entry.tasks.get(taskId)?.figures.busyMs ?? 0;
      const busyMs = growthOf(before, stats?.busyMs ?? before);
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
      sums.cpuHours += part * growthOf(before.cpuSeconds, now.cpuSeconds) / SECONDS_PER_HOUR;
      const bytes = usable(before.memoryBytes) + usable(now.memoryBytes);
      const memoryGB = bytes / 2 / BYTES_PER_GB;
      sums.memoryGBHours += memoryGB * hours / held.length;
    }
  }

  #noteTasks(state: DispatcherState, entry: WorkerEntry, tasks: readonly TaskStatus[]): void {
    const named = new Set(tasks.map(({ taskId }) => taskId));
    for (const taskId of entry.tasks.keys()) if (!named.has(taskId)) entry.tasks.delete(taskId);
    for (const [series, { window }] of entry.newest) {
      if (window.isOld(entry.atMs)) entry.newest.delete(series);
    }
    const running = new Set(
      tasks.flatMap(({ taskId, completed }) => completed || !state.tasks.has(taskId) ? [] : taskId),
    );
    entry.lacking.clear();
    for (const { taskId, completed, stats, sharing } of tasks) {
      const known = entry.tasks.get(taskId);
      if (completed && stats === undefined && known === undefined) entry.lacking.add(taskId);
      // Missing figures are as before. The window needs them: the rates of a task that rests fall.
      const figures = stats ?? known?.figures;
      const jobId = jobOfTask(state, taskId);
      // What an ended task has done since its last report counts for the next epoch's task.
      const series = known?.series ?? (jobId === undefined ? undefined : seriesOf(state, jobId));
      if (figures === undefined || series === undefined) continue;
      const newest = entry.newest.get(series);
      const hasEnded = newest !== undefined && !running.has(newest.taskId);
      const window = known === undefined
        ? (hasEnded ? newest.window.continued(entry.atMs) : this.#freshWindow())
        : this.#windowOf(known, figures);
      const task = {
        taskId,
        series,
        window,
        figures,
        sharing: stats === undefined ? known?.sharing : sharing,
      };
      entry.tasks.set(taskId, task);
      if (taskId >= (newest?.taskId ?? 0)) entry.newest.set(series, task);
      window.add(entry.atMs, countersOf("task", figures));
    }
  }

  #windowOf({ figures: before, window }: TaskFigures, { produced }: TaskStats): RateWindow {
    // A time without elements, as to fill a buffer, says nothing about the time of later ones.
    const isStarting = before.produced === 0 && produced > 0 && window.spanMs > 0 &&
      window.growth("produced") === 0;
    return isStarting ? this.#freshWindow() : window;
  }

  #freshWindow(): RateWindow {
    return new RateWindow(this.#windowMs);
  }

  #sums(state: DispatcherState, jobId: number): UsageSums {
    let sums = this.#usage.get(jobId);
    if (sums === undefined) {
      if (this.#usage.size >= 2 * state.jobs.size) this.#forgetUsage(state);
      this.#usage.set(jobId, sums = noUsage());
    }
    return sums;
  }

  /** Forgets the usage of ended jobs in batches: a scan for each new job would take too long. */
  #forgetUsage(state: DispatcherState): void {
    for (const known of this.#usage.keys()) if (!state.jobs.has(known)) this.#usage.delete(known);
  }
}

function jobOfTask(state: DispatcherState, taskId: number): number | undefined {
  const task = state.tasks.get(taskId);
  return task === undefined ? undefined : state.iterations.get(task.iterationId)?.jobId;
}

function silence(ageMs: number, staleMs: number): number | undefined {
  return ageMs > Math.max(staleMs, SILENT_MIN_MS) ? ageMs : undefined;
}

/** The growth of a reported counter. Never negative, whatever is reported: usage only grows. */
function growthOf(before: number, now: number): number {
  return isCount(before) && isCount(now) ? Math.max(0, now - before) : 0;
}

function usable(value: number): number {
  return isCount(value) ? value : 0;
}

function noUsage(): UsageSums {
  return { cpuHours: 0, memoryGBHours: 0, busyHours: 0, clientHours: 0, metered: false };
}

/** The workers' part of equation 1 of the paper, which depends only on total hours. */
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
