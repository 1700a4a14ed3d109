/** Explains why no worker produces what a job's clients wait for, and what to start. */
import { shellWord } from "../../../core/shown_text.ts";
import type { Client, Iteration, Worker } from "../state/entities.ts";
import { parametersOf } from "../jobs/iterations.ts";
import type { JobParameters } from "../protocol.ts";
import type { DispatcherState } from "../state/state.ts";
import { mayRead } from "../jobs/targets.ts";

/** A sentence names at most this many workers, and counts the others. */
const WORKERS_NAMED_MAX = 8;
/** A sentence names at most this many tags, each shortened to the length below. */
const TAGS_NAMED_MAX = 8;
const TAG_SHOWN_LENGTH = 60;

/** Whether a worker, given by its name, drains: it takes no new tasks. */
export type IsDraining = (worker: string) => boolean;

/**
 * A sentence about the missing workers; null if a live worker that does not drain may serve a
 * client, or no client waits.
 */
export function whyStarved(
  state: DispatcherState,
  iteration: Iteration,
  clients: Iterable<Client>,
  isDraining: IsDraining,
): string | null {
  const readers = [...clients];
  if (iteration.finished || readers.length === 0) return null;
  // Only listed workers help such a job. `whyWaiting` of its mode names those that are missing.
  if (state.modeOf(iteration).hasFixedWorkers) return null;
  const parameters = parametersOf(state, iteration);
  // Checked first, because it is cheap in a large cluster, and each client heartbeat needs it.
  if (hasTask(state, iteration, readers)) return null;
  if (hasWorker(state, parameters, readers, isDraining)) return null;
  if (state.workersAlive === 0) {
    return `It waits for ${wantedOf(parameters)}; there is no worker at all. ${remedy(parameters)}`;
  }
  const alive = aliveOf(state, isDraining);
  return `It waits for ${wantedOf(parameters)}; there are ${alive}. ${remedy(parameters)}`;
}

/** Whether one of the clients may read a live worker that takes new tasks. */
function hasWorker(
  state: DispatcherState,
  parameters: JobParameters,
  readers: readonly Client[],
  isDraining: IsDraining,
): boolean {
  const takesTasks = ({ alive, name }: Worker) => alive && !isDraining(name);
  for (const client of readers) {
    for (const worker of state.workersOfProcess(client.process)) {
      if (takesTasks(worker) && mayRead(parameters, client, worker)) return true;
    }
  }
  if (parameters.targetWorkers === "local") return false;
  for (const worker of state.workersFor(parameters)) {
    if (takesTasks(worker) && mayRead(parameters, null, worker)) return true;
  }
  return false;
}

/** Whether one of the clients has a task to read; tasks in its own process are found by index. */
function hasTask(
  state: DispatcherState,
  iteration: Iteration,
  readers: readonly Client[],
): boolean {
  const { iterationId } = iteration;
  const parameters = parametersOf(state, iteration);
  for (const client of readers) {
    for (const worker of state.workersOfProcess(client.process)) {
      const isItsOwn = state.taskAt(iterationId, worker.name) !== undefined;
      if (isItsOwn && mayRead(parameters, client, worker)) return true;
    }
  }
  if (parameters.targetWorkers === "local") return false;
  for (const task of state.tasksOfIteration(iterationId)) {
    const worker = state.workers.get(task.worker);
    if (worker === undefined) return true;
    if (readers.some((client) => mayRead(parameters, client, worker))) return true;
  }
  return false;
}

/** The worker that a job waits for, in words. */
export function wantedOf({ targetTags = [], targetWorkers }: JobParameters): string {
  const tags = shownTags(targetTags).map((tag) => `"${tag}"`).join(" and ") + moreOf(targetTags);
  const tagged = tags === "" ? "" : ` with the tag${targetTags.length === 1 ? "" : "s"} ${tags}`;
  return targetWorkers === "local"
    ? `a worker${tagged} in the trainer's own process (targetWorkers: "local")`
    : `a worker${tagged} that its trainers may read`;
}

function remedy({ targetTags = [], targetWorkers }: JobParameters): string {
  if (targetWorkers === "local") {
    const tags = shownTags(targetTags).map((tag) => JSON.stringify(tag)).join(", ");
    const tagged = tags === "" ? "" : `, tags: [${tags}]`;
    return `Start one there (serveWorker({ local: true${tagged} })).`;
  }
  const flags = shownTags(targetTags)
    .map((tag) => ` --tag${tag.startsWith("-") ? "=" : " "}${shellWord(tag)}`).join("");
  return `Start one (leat worker${flags}).`;
}

/** Some of the live workers, and the number of the others. */
function aliveOf(state: DispatcherState, isDraining: IsDraining): string {
  const named: Worker[] = [];
  for (const worker of state.workers.values()) {
    if (named.length === WORKERS_NAMED_MAX) break;
    if (worker.alive) named.push(worker);
  }
  const shown = named.map(({ name, tags, isPrivate }) => {
    const kind = (isDraining(name) ? "draining, " : "") +
      (isPrivate ? "only for clients of its own process, " : "");
    const has = tags.length === 0 ? "no tags" : `tags ${shownTags(tags).join(", ")}${moreOf(tags)}`;
    return `"${name}" (${kind}${has})`;
  });
  const more = state.workersAlive - named.length;
  return shown.join(", ") + (more === 0 ? "" : ` and ${more} more`);
}

/** The tags that a sentence names. They are limited because each job's description repeats them. */
function shownTags(tags: readonly string[]): string[] {
  return tags.slice(0, TAGS_NAMED_MAX).map((tag) =>
    tag.length <= TAG_SHOWN_LENGTH ? tag : `${tag.slice(0, TAG_SHOWN_LENGTH).toWellFormed()}…`
  );
}

/** How many tags a sentence does not name. */
function moreOf({ length }: readonly string[]): string {
  return length <= TAGS_NAMED_MAX ? "" : ` and ${length - TAGS_NAMED_MAX} more`;
}
