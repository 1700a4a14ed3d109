/** Interprets figures: the bottleneck, how many workers would suffice, and why a worker is idle. */
import type {
  Bottleneck,
  ClientDescription,
  RoundsDescription,
  TaskDescription,
  WorkerActivity,
} from "../protocol_figures.ts";
import { countText, percentText } from "../../../data/amounts.ts";

/** Trainers wait too much if they wait for more than this share of their time. */
const WAITING_SHARE = 0.1;
/**
 * A pipeline that works for more than this share of the time is busy: it cannot serve more clients.
 */
const BUSY_SHARE = 0.7;
/** A pipeline that works for at most this share of the time is idle. */
const IDLE_SHARE = 0.05;

/** Shared, because creating a formatter costs more than the rest of the description. */
const COUNT_FORMAT = new Intl.NumberFormat("en");

export interface IterationFigures {
  readonly tasks: readonly TaskDescription[];
  readonly readers: readonly ClientDescription[];
  readonly finished: boolean;
  /** A sentence about the progress of one that continues without readers; null for others. */
  readonly progress: string | null;
  /** Why it cannot continue; null if it can. */
  readonly failure: string | null;
  /** A sentence about the worker that its readers need, if no live worker may serve them. */
  readonly starvation: string | null;
  /** A sentence about the missing consumers that its readers wait for. */
  readonly waiting: string | null;
  /** Whether its clients share one stream. */
  readonly sharing: boolean;
  /** Coordinated reads. */
  readonly rounds?: RoundsDescription;
  /** Whether all splits of the current repetition are assigned. Default false. */
  readonly isHandedOut?: boolean;
  /** Names of workers whose address does not answer. */
  readonly unreachable: ReadonlySet<string>;
  /** How long members have not reported, in ms, by what a sentence about them begins with. */
  readonly silentMs: ReadonlyMap<string, number>;
  /** Whether the dispatcher waits for disk space. */
  readonly journalWaits: boolean;
}

/**
 * What the clients would take if they never waited, and what one worker would produce if it always
 * worked, in elements per second. With sharing, the fastest client's rate is the demand; in rounds,
 * all clients are as fast as the slowest. Unreachable workers do not count. Null until both rates
 * are known.
 */
export function ratesOf(
  { tasks, readers, sharing, rounds, unreachable }: IterationFigures,
): { readonly demand: number; readonly madeByOne: number } | null {
  const wanted = readers.flatMap(({ figures }) => rateOf(figures?.targetProcessingMs));
  const made = tasks.filter(({ worker }) => !unreachable.has(worker))
    .flatMap(({ figures }) => rateOf(figures?.processingMs));
  if (wanted.length === 0 || made.length === 0) return null;
  const inStep = rounds === undefined ? sum(wanted) : wanted.length * Math.min(...wanted);
  return {
    demand: sharing ? Math.max(...wanted) : inStep,
    madeByOne: sum(made) / made.length,
  };
}

/** How many workers the clients could use, computed as by the AutoScaler of tf.data service. */
export function optimalWorkers(iteration: IterationFigures): number | null {
  const rates = ratesOf(iteration);
  return rates === null ? null : rates.demand / rates.madeByOne;
}

export function bottleneckOf(iteration: IterationFigures): Bottleneck {
  const { tasks, readers, finished, progress, failure, waiting } = iteration;
  if (failure !== null) return { kind: "stuck", text: `It has failed: ${failure}` };
  if (readers.length === 0 && finished) {
    return { kind: "balanced", text: "It has finished." };
  }
  if (readers.length === 0 && progress === null) {
    return { kind: "workers_wait", text: "No trainer reads: the workers have nothing to do." };
  }
  if (finished) return PRODUCED;
  if (tasks.length === 0) {
    return {
      kind: "stuck",
      text: iteration.starvation ?? waiting ?? "It waits for workers: none has a task of it yet.",
    };
  }
  const hasEnded = !tasks.some(hasWork);
  const failed = tasks.find(({ state }) => state === "failed");
  if (hasEnded && failed !== undefined) {
    const text = `Trainers get the error that it cannot continue: ${failed.figures?.failure}`;
    return { kind: "stuck", text };
  }
  if (waiting !== null) return { kind: "stuck", text: waiting };
  if (hasEnded) return PRODUCED;
  if (progress !== null) return { kind: "balanced", text: progress };
  const { kind, text } = bottleneckOfServing(iteration);
  const refusal = kind === "trainers_wait" ? unreadOf(iteration) : "";
  return { kind, text: text + silenceOf(iteration) + refusal };
}

/** What a client says about workers that it cannot read from, after another sentence. */
function unreadOf({ readers }: IterationFigures): string {
  const reader = readers.find(({ figures }) => figures?.unread !== undefined);
  return reader === undefined ? "" : ` Client ${reader.clientId}: ${reader.figures!.unread}`;
}

/** A sentence about members that do not report, after another one; empty if all report. */
function silenceOf({ silentMs }: IterationFigures): string {
  const [first] = silentMs;
  if (first === undefined) return "";
  const more = silentMs.size === 1 ? "" : ` (and ${silentMs.size - 1} more)`;
  return ` ${first[0]}${more} ${silence(first[1])}`;
}

function silence(ms: number): string {
  return `has not reported for ${
    Math.floor(ms / 1_000)
  } s: its process hangs or is suspended, or ` +
    "the network to it is cut.";
}

const PRODUCED: Bottleneck = {
  kind: "balanced",
  text: "Everything is produced: trainers fetch what is left.",
};

/** The bottleneck of an iteration whose tasks have work, from the figures of tasks and readers. */
function bottleneckOfServing(iteration: IterationFigures): Bottleneck {
  const { tasks, readers, unreachable } = iteration;
  const serving = tasks.filter(({ state }) => state === "running");
  if (serving.length === 0) return { kind: "unknown", text: "The workers' tasks are starting." };
  if (serving.every(({ worker }) => unreachable.has(worker))) {
    return {
      kind: "stuck",
      text:
        "Trainers wait for workers that cannot be reached: each worker's reason says what to do.",
    };
  }
  const waitingShares = readers.flatMap(({ figures }) => figures?.waitingShare ?? []);
  const busyShares = serving.flatMap(({ figures }) => figures?.busyShare ?? []);
  if (waitingShares.length === 0 || busyShares.length === 0) {
    const text = iteration.silentMs.size > 0
      ? "No current figures."
      : "No figures yet: they come with the next heartbeats.";
    return { kind: "unknown", text };
  }
  const waitingShare = sum(waitingShares) / waitingShares.length;
  return waitingShare > WAITING_SHARE
    ? trainersWait(iteration, busyShares, waitingShare)
    : workersWait(busyShares, waitingShare);
}

function trainersWait(
  iteration: IterationFigures,
  busyShares: readonly number[],
  waitingShare: number,
): Bottleneck {
  const measured = busyShares.length;
  const busy = busyShares.filter((share) => share > BUSY_SHARE).length;
  const waited = `${percentText(waitingShare)} of their time`;
  const workers = countText(measured, "worker");
  const { readers, rounds, journalWaits } = iteration;
  if (journalWaits) {
    const text = `Trainers wait ${waited}: the dispatcher waits for disk space.`;
    return { kind: "trainers_wait", text };
  }
  const waitsForOthers = readers.some(({ position }) =>
    position?.waitsFor === "consumers" || position?.waitsFor === "schedule"
  );
  if (rounds !== undefined && 2 * busy < measured && waitsForOthers) {
    return {
      kind: "trainers_wait",
      text: `Trainers wait ${waited}, in their rounds for one another: ${rounds.text}`,
    };
  }
  if (2 * busy < measured) {
    const idle = `${measured - busy} of ${workers} ${
      measured - busy === 1 ? "is" : "are"
    } not busy`;
    return { kind: "trainers_wait", text: `Trainers wait ${waited}${whyInVain(iteration, idle)}` };
  }
  const wanted = optimalWorkers(iteration);
  // A worker that completed its task found no splits, not even of a later repetition.
  const isLast = iteration.isHandedOut === true &&
    iteration.tasks.some(({ state }) => state === "completed");
  const advice = isLast
    ? "All splits are assigned, so more workers would get none in this epoch: more and smaller " +
      "files, or a cheaper pipeline, help."
    : wanted === null || wanted <= measured
    ? "More workers help, or a cheaper pipeline."
    : `About ${COUNT_FORMAT.format(Math.ceil(wanted))} would do.`;
  return {
    kind: "trainers_wait",
    text: `Trainers wait for workers ${waited}: ${busy} of ${workers} busy. ${advice}`,
  };
}

/** Why trainers wait although workers are not busy. */
function whyInVain(iteration: IterationFigures, idle: string): string {
  // A sentence about them follows.
  if (iteration.silentMs.size > 0 || unreadOf(iteration) !== "") return ".";
  return ` although ${idle}: the path between them is slow (network, or the trainers' own ` +
    "processes), or epochs are so short that trainers mostly wait for their first elements. If the " +
    "network is full, compression or smaller elements help; if not, more requests in flight " +
    "(maxOutstandingRequests) or larger batches may help.";
}

function workersWait(busyShares: readonly number[], waitingShare: number): Bottleneck {
  const busyShare = sum(busyShares) / busyShares.length;
  if (busyShare > BUSY_SHARE) {
    return {
      kind: "balanced",
      text:
        `Trainers hardly wait (${percentText(waitingShare)} of their time), and the workers are ` +
        "busy.",
    };
  }
  return {
    kind: "workers_wait",
    text:
      `Workers wait for trainers: they work ${percentText(busyShare)} of the time, and elements ` +
      "are ready when trainers ask. Fewer workers would do.",
  };
}

export interface WorkerSigns {
  readonly alive: boolean;
  /** How long it has not reported although it was asked, in ms; undefined while it reports. */
  readonly silentMs: number | undefined;
  readonly address: string;
  readonly unreachable: string | undefined;
  /** The worker's tasks, and whether their iterations have readers, or continue without. */
  readonly tasks: readonly (TaskDescription & {
    readonly hasReaders: boolean;
    readonly continues: boolean;
  })[];
  /** Whether an iteration is running, or its remaining elements are being read. */
  readonly hasJobs: boolean;
}

/** Whether a task still has work: it has neither produced everything nor failed. */
export function hasWork({ state }: Pick<TaskDescription, "state">): boolean {
  return state !== "completed" && state !== "failed";
}

const STARTING: WorkerActivity = { state: "starting", reason: "It is starting its tasks." };

/** A worker's activity, and why it is idle. */
export function activityOf(signs: WorkerSigns): WorkerActivity {
  if (!signs.alive) {
    return { state: "gone", reason: "It has left, or its heartbeats have stopped." };
  }
  if (signs.silentMs !== undefined) {
    return { state: "silent", reason: `It ${silence(signs.silentMs)}` };
  }
  const working = signs.tasks.filter(hasWork);
  const shares = working.flatMap(({ figures }) => figures?.busyShare ?? []);
  if (shares.some((share) => share > IDLE_SHARE)) return { state: "working", reason: null };
  const reason = idleReason(signs, working);
  if (reason !== undefined) return { state: "idle", reason };
  if (shares.length === 0) return STARTING;
  if (working.some(({ continues }) => continues)) {
    return {
      state: "idle",
      reason: "Its save waits for the data that it reads, for its folder, or for other workers.",
    };
  }
  if (!working.some(({ figures }) => figures !== null && figures.produced > 0)) return STARTING;
  return {
    state: "idle",
    reason: "Elements are ready when its clients ask: they, or the network to them, are slower " +
      "than this worker.",
  };
}

function idleReason(
  { address, unreachable, tasks, hasJobs }: WorkerSigns,
  working: WorkerSigns["tasks"],
): string | undefined {
  if (unreachable !== undefined) {
    return `Clients probably cannot reach it at ${address} (${unreachable}): start it with an ` +
      "address that others can reach (--advertise HOST[:PORT]), and open its port in the firewall.";
  }
  if (!hasJobs) return "There is no unfinished job.";
  if (tasks.length === 0) return "No unfinished job has a task for it.";
  if (working.length === 0) {
    const failure = tasks.find(({ state }) => state === "failed")?.figures?.failure;
    if (failure != null) return `It cannot continue: ${failure}`;
    return "It has produced all elements of its tasks.";
  }
  if (!working.some(({ hasReaders, continues }) => hasReaders || continues)) {
    return "Nobody reads its jobs now.";
  }
  return undefined;
}

/** The rate in elements per second, from the time per element; empty if unknown. */
function rateOf(elementMs: number | null | undefined): number[] {
  return elementMs === null || elementMs === undefined || elementMs <= 0 ? [] : [1_000 / elementMs];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
