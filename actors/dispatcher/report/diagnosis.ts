/**
 * What figures mean: who waits for whom, how many workers would do, and why a worker is idle.
 *
 * @module
 */
import type {
  Bottleneck,
  ClientDescription,
  RoundsDescription,
  TaskDescription,
  WorkerActivity,
} from "../protocol_figures.ts";

/** Training loops that wait for more of their time than this wait too much. */
const WAITING_SHARE = 0.1;
/** A pipeline that works for more of the time than this is busy: more clients would not be served. */
const BUSY_SHARE = 0.7;
/** One that works for less of it than this is idle. */
const IDLE_SHARE = 0.05;

/** One for all: making it takes longer than all else that is said. */
const COUNT_FORMAT = new Intl.NumberFormat("en");

/** An iteration, as far as it tells who waits. */
export interface IterationFigures {
  readonly tasks: readonly TaskDescription[];
  readonly readers: readonly ClientDescription[];
  readonly finished: boolean;
  /** Why it cannot go on; null: it can. */
  readonly failure: string | null;
  /** What its readers wait for, where no worker there is may serve them. */
  readonly unserved: string | null;
  /** Which consumers its readers wait for, where some are missing. */
  readonly waiting: string | null;
  /** Whether its clients read one stream together. */
  readonly sharing: boolean;
  /** Coordinated reads. */
  readonly rounds?: RoundsDescription;
  /** Names of workers whose address does not answer. */
  readonly unreachable: ReadonlySet<string>;
}

/**
 * What its clients would take if they never waited, and what one worker makes if it never rests, in
 * elements a second. Clients that share a stream set its pace together: the fastest counts alone. Those
 * that read in rounds go as fast as the slowest of them.
 * Workers that cannot be reached make nothing for anybody. Null until there is a figure of both.
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

/** How many workers the clients could use, as tf.data service's AutoScaler reckons it. */
export function optimalWorkers(iteration: IterationFigures): number | null {
  const rates = ratesOf(iteration);
  return rates === null ? null : rates.demand / rates.madeByOne;
}

/** Who waits for whom in an iteration. */
export function bottleneckOf(iteration: IterationFigures): Bottleneck {
  const { tasks, readers, finished, failure, unreachable } = iteration;
  if (failure !== null) return { kind: "stuck", text: `It has failed: ${failure}` };
  if (readers.length === 0 && finished) {
    return { kind: "balanced", text: "It has finished." };
  }
  if (readers.length === 0) {
    return { kind: "workers_wait", text: "No trainer reads: the workers have nothing to do." };
  }
  const serving = tasks.filter(({ state }) => state === "running");
  if (finished || (tasks.length > 0 && tasks.every(({ state }) => state === "completed"))) {
    return { kind: "balanced", text: "All was produced: trainers take what is left." };
  }
  if (tasks.length === 0) {
    return {
      kind: "stuck",
      text: iteration.unserved ?? "Trainers wait for workers: none has a task of it yet.",
    };
  }
  if (!tasks.some(isGoing)) {
    const failure = tasks.find(({ state }) => state === "failed")?.figures?.failure;
    return { kind: "stuck", text: `Trainers are told that it cannot be read on: ${failure}` };
  }
  if (iteration.waiting !== null) return { kind: "stuck", text: iteration.waiting };
  if (serving.length === 0) return { kind: "unknown", text: "The workers' tasks are starting." };
  if (serving.every(({ worker }) => unreachable.has(worker))) {
    return {
      kind: "stuck",
      text: "Trainers wait for workers that cannot be reached: see at the workers what to do.",
    };
  }
  const heard = readers.flatMap(({ figures }) => figures === null ? [] : [figures]);
  const measured = serving.filter(({ figures }) => figures !== null);
  if (heard.length === 0 || measured.length === 0) {
    return { kind: "unknown", text: "No figures yet: they come with the next heartbeats." };
  }
  const waitingShare = sum(heard.map((client) => client.waitingShare)) / heard.length;
  return waitingShare > WAITING_SHARE
    ? trainersWait(iteration, measured, waitingShare)
    : workersWait(measured, waitingShare);
}

function trainersWait(
  iteration: IterationFigures,
  measured: readonly TaskDescription[],
  waitingShare: number,
): Bottleneck {
  const busy = measured.filter(({ figures }) => figures!.busyShare > BUSY_SHARE).length;
  const waited = `${percent(waitingShare)} of their time`;
  const workers = counted(measured.length, "worker");
  const { readers, rounds } = iteration;
  const apart = readers.filter(({ place }) =>
    place?.waitsFor === "consumers" || place?.waitsFor === "schedule"
  );
  if (rounds !== undefined && 2 * busy < measured.length && apart.length > 0) {
    return {
      kind: "trainers_wait",
      text: `Trainers wait ${waited}, in their rounds for one another: ${rounds.text}`,
    };
  }
  if (2 * busy < measured.length) {
    return {
      kind: "trainers_wait",
      text: `Trainers wait ${waited} although ${measured.length - busy} of ${workers} ` +
        `have time: the way between them is slow (network, or the trainers' own processes). ` +
        `More requests in flight (maxOutstandingRequests), larger or fewer batches may help.`,
    };
  }
  const wanted = optimalWorkers(iteration);
  const advice = wanted === null || wanted <= measured.length
    ? "More workers help, or a cheaper pipeline."
    : `About ${COUNT_FORMAT.format(Math.ceil(wanted))} would do.`;
  return {
    kind: "trainers_wait",
    text: `Trainers wait for workers ${waited}: ${busy} of ${workers} busy. ${advice}`,
  };
}

function workersWait(measured: readonly TaskDescription[], waitingShare: number): Bottleneck {
  const busyShare = sum(measured.map(({ figures }) => figures!.busyShare)) / measured.length;
  if (busyShare > BUSY_SHARE) {
    return {
      kind: "balanced",
      text: `Trainers hardly wait (${
        percent(waitingShare)
      } of their time), and the workers are busy.`,
    };
  }
  return {
    kind: "workers_wait",
    text: `Workers wait for trainers: they work ${percent(busyShare)} of the time, and elements ` +
      "are ready when trainers ask. Fewer workers would do.",
  };
}

/** What is known of a worker, as far as it tells why it works or does not. */
export interface WorkerSigns {
  readonly alive: boolean;
  readonly address: string;
  readonly unreachable: string | undefined;
  /** Its tasks, and whether anybody reads their iterations. */
  readonly tasks: readonly (TaskDescription & { readonly hasReaders: boolean })[];
  /** Whether there is an iteration that goes on, or one of which is read what is left. */
  readonly hasJobs: boolean;
}

/** Whether a task has anything to do yet: it has neither produced everything nor failed. */
export function isGoing({ state }: Pick<TaskDescription, "state">): boolean {
  return state !== "completed" && state !== "failed";
}

/** What a worker is doing, and why it does nothing. */
export function activityOf(signs: WorkerSigns): WorkerActivity {
  if (!signs.alive) {
    return { state: "gone", reason: "It has said good-bye, or was silent for too long." };
  }
  const working = signs.tasks.filter(isGoing);
  const shares = working.flatMap(({ figures }) => figures === null ? [] : [figures.busyShare]);
  if (shares.some((share) => share > IDLE_SHARE)) return { state: "working", reason: null };
  const reason = idleReason(signs, working);
  if (reason !== undefined) return { state: "idle", reason };
  if (shares.length === 0) return { state: "starting", reason: "It is starting its tasks." };
  return {
    state: "idle",
    reason: "Elements are ready, and its clients ask for none: they are slower than it.",
  };
}

function idleReason(
  { address, unreachable, tasks, hasJobs }: WorkerSigns,
  working: WorkerSigns["tasks"],
): string | undefined {
  if (unreachable !== undefined) {
    return `Clients will hardly reach it at ${address} (${unreachable}): start it with an address ` +
      "that others reach (--advertise HOST[:PORT]), and let its port through.";
  }
  if (!hasJobs) return "There is no job.";
  if (tasks.length === 0) return "The jobs that go on have no task for it.";
  if (working.length === 0) {
    const failure = tasks.find(({ state }) => state === "failed")?.figures?.failure;
    if (failure != null) return `It cannot read on: ${failure}`;
    return "It has produced everything of its tasks.";
  }
  if (!working.some(({ hasReaders }) => hasReaders)) return "Nobody reads its jobs now.";
  return undefined;
}

/** Elements a second at so many ms each; empty where that is not known. */
function rateOf(elementMs: number | null | undefined): number[] {
  return elementMs === null || elementMs === undefined || elementMs <= 0 ? [] : [1_000 / elementMs];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
