/**
 * Static policies (FILE, DATA, FILE_OR_DATA, HINT, CUSTOM): each worker of the job's list has a
 * share of every iteration. Only that worker produces it, so an iteration waits for all of them.
 */
import { LeatError } from "../../../core/error.ts";
import { shellWord } from "../../../core/shown_text.ts";
import type { Shard } from "../../../data/sharding/sharding_policy.ts";
import { isServedBy } from "../jobs/targets.ts";
import type { Iteration, Task } from "../state/entities.ts";
import { workersText } from "./listed_workers.ts";
import type { TaskDescription } from "../protocol_figures.ts";
import {
  invalid,
  type IterationDescription,
  type JoinFacts,
  Mode,
  type OpenRequest,
  type Subject,
} from "./mode.ts";

export class StaticMode extends Mode {
  override readonly hasFixedWorkers = true;

  override check(request: OpenRequest, facts: JoinFacts): void {
    super.check(request, facts);
    const { processingMode, targetTags = [] } = request.parameters;
    if (facts.listedWorkers.length === 0) {
      throw new LeatError(
        "failed_precondition",
        `"${processingMode}" shares a dataset among a fixed list of workers, and this dispatcher has none: ` +
          `start it with --workers NAME,NAME,… (serveDispatcher({ workers }))`,
      );
    }
    if (targetTags.length > 0) {
      throw invalid(
        `"${processingMode}" shares a dataset among the dispatcher's list of workers, so targetTags ` +
          "cannot choose others; leave them out",
      );
    }
  }

  override hasWorkFor(subject: Subject, worker: string): boolean {
    const shard = this.shardOf(subject, worker);
    return shard !== undefined && !subject.iteration.shardsDone.includes(shard.index);
  }

  override shardOf(subject: Subject, worker: string): Shard | undefined {
    const workers = workersOf(subject);
    const index = workers.indexOf(worker);
    return index < 0 ? undefined : { index, count: workers.length };
  }

  override isDone(subject: Subject): boolean {
    return super.isDone(subject) && workersMissing(subject).length === 0;
  }

  override whyNothingFor({ state, iteration }: Subject, worker: string): string | undefined {
    const workers = workersOf({ state, iteration });
    if (workers.includes(worker)) return undefined;
    const { name, parameters } = state.jobs.get(iteration.jobId)!;
    return `${parameters.processingMode} job ${name ?? iteration.jobId} is shared by the workers ` +
      `${workersText(workers)}, and this one is not among them`;
  }

  /** The missing workers, once those that serve it have done their shares. */
  override whyWaiting({ state, iteration }: Subject): string | null {
    const missing = iteration.finished ? [] : workersMissing({ state, iteration });
    const isAtWork = (name: string) => state.taskAt(iteration.iterationId, name) !== undefined;
    if (missing.length === 0 || missing.some(isAtWork)) return null;
    const names = { absent: [] as string[], unread: [] as string[], stopping: [] as string[] };
    for (const name of missing) {
      const worker = state.workers.get(name);
      if (!worker?.alive) names.absent.push(name);
      else if (!isServedBy(state, iteration, worker)) names.unread.push(name);
      else names.stopping.push(name);
    }
    const { absent, unread, stopping } = names;
    return [...whyAbsent(absent), ...whyUnread(unread), ...whyStopping(stopping)].join(" ");
  }

  override namePiece(piece: number | null): string {
    return piece === null ? "Job" : `Share ${piece} of job`;
  }

  override taskCompleted(
    { shardsDone }: Iteration,
    { worker }: Task,
    workers: readonly string[] | null,
  ): void {
    const index = workers?.indexOf(worker) ?? -1;
    if (index >= 0 && !shardsDone.includes(index)) shardsDone.push(index);
  }

  override describe(
    subject: Subject,
    tasks: readonly TaskDescription[],
  ): Partial<IterationDescription> {
    const at = new Set(tasks.map(({ worker }) => worker));
    const missing = workersMissing(subject).filter((worker) => !at.has(worker));
    return subject.iteration.finished || missing.length === 0 ? {} : { workersMissing: missing };
  }
}

/** What to start, if listed workers are not there. */
function whyAbsent(absent: readonly string[]): string[] {
  const [first] = absent;
  if (first === undefined) return [];
  const start = `leat worker --name ${shellWord(first)}`;
  return [
    `It waits for ${workersText(absent)}, which the dispatcher's list of workers names. ` +
    (absent.length === 1 ? `Start it (${start}).` : `Start them (${start}, and so on).`),
  ];
}

/** What to change, if listed workers are there for clients of other processes only. */
function whyUnread(unread: readonly string[]): string[] {
  if (unread.length === 0) return [];
  return [
    `It waits for ${workersText(unread)}, which its trainers may not read: COLOCATED and local ` +
    `workers serve the trainers of their own processes, and with targetWorkers "local" all ` +
    `workers do. Use targetWorkers "any", or a list of other workers (--workers).`,
  ];
}

/** Only a worker that drains has no task although it is there. Its share waits for its next life. */
function whyStopping(stopping: readonly string[]): string[] {
  if (stopping.length === 0) return [];
  return [`It waits for ${workersText(stopping)} to stop, and to be started again.`];
}

/** CUSTOM: the user's own policy assigns the shares. */
export class CustomMode extends StaticMode {
  override readonly takesPolicy = true;
}

/** The workers that have not produced their whole share. */
function workersMissing(subject: Subject): string[] {
  const done = new Set(subject.iteration.shardsDone);
  return workersOf(subject).filter((_, index) => !done.has(index));
}

function workersOf({ state, iteration: { jobId } }: Subject): readonly string[] {
  return state.jobs.get(jobId)?.workers ?? [];
}
