/**
 * Finds the iterations that a worker may serve, and the workers of a job, without a scan. The
 * results may contain more than `mayRead` (`targets.ts`) allows, but never less.
 */
import { LOCAL_ONLY_TAG } from "../../../data/service/reading_choices.ts";
import type { Client, Iteration, Worker } from "./entities.ts";
import { KeyedSets } from "./keyed_sets.ts";
import type { JobParameters } from "../protocol.ts";

/** The key of jobs that want no tag. */
const ANY_TAG = "";

/** The index of workers and iterations. `Tables` keeps it up to date. */
export class ServingIndex {
  /** Ids of running iterations that workers of any process may serve, by a tag of their job. */
  readonly #openToAll = new KeyedSets<string, number>();
  /** Ids of those that only workers without `LOCAL_ONLY_TAG` may serve, by a tag of their job. */
  readonly #openToMost = new KeyedSets<string, number>();
  /** Clients without a known process have no entry. */
  readonly #clientsOfProcess = new KeyedSets<string | null, Client>();
  readonly #workersWithTag = new KeyedSets<string, Worker>();

  addIteration(iteration: Iteration, parameters: JobParameters): void {
    const byTag = this.#byTag(parameters);
    if (byTag === undefined || iteration.finished) return;
    byTag.add(tagOf(parameters), iteration.iterationId);
  }

  /** The iteration is over or forgotten. */
  removeIteration({ iterationId }: Iteration, parameters: JobParameters): void {
    this.#byTag(parameters)?.delete(tagOf(parameters), iterationId);
  }

  addClient(client: Client): void {
    if (client.process !== null) this.#clientsOfProcess.add(client.process, client);
  }

  removeClient(client: Client): void {
    this.#clientsOfProcess.delete(client.process, client);
  }

  addWorker(worker: Worker): void {
    for (const tag of worker.tags) this.#workersWithTag.add(tag, worker);
  }

  /** The worker is forgotten, or about to change. */
  removeWorker(worker: Worker): void {
    for (const tag of worker.tags) this.#workersWithTag.delete(tag, worker);
  }

  /** Ids of the iterations that the worker may have to serve, in order of creation. */
  iterationsFor({ tags, process, isPrivate }: Worker): number[] {
    const found = new Set<number>();
    for (const { iterationId } of this.#clientsOfProcess.get(process)) found.add(iterationId);
    const open = tags.includes(LOCAL_ONLY_TAG)
      ? [this.#openToAll]
      : [this.#openToAll, this.#openToMost];
    for (const byTag of isPrivate ? [] : open) {
      for (const tag of [ANY_TAG, ...tags]) {
        for (const iterationId of byTag.get(tag)) found.add(iterationId);
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  /** The workers with a tag that the job wants; undefined if it wants no tag. */
  workersFor(parameters: JobParameters): Iterable<Worker> | undefined {
    const tag = tagOf(parameters);
    return tag === ANY_TAG ? undefined : this.#workersWithTag.get(tag);
  }

  /** Undefined if workers serve only clients of their own process; those are found by process. */
  #byTag({ numConsumers, targetWorkers }: JobParameters) {
    if (numConsumers !== undefined || targetWorkers === "any") return this.#openToAll;
    return targetWorkers === "local" ? undefined : this.#openToMost;
  }
}

/** The tag by which a job is indexed: one tag already excludes most workers. */
function tagOf({ targetTags = [] }: JobParameters): string {
  return targetTags[0] ?? ANY_TAG;
}
