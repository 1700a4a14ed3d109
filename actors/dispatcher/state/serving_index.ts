/**
 * Finds what belongs together of workers and iterations, without a look at all others: in a cluster with
 * pools of workers for its jobs, most have nothing to do with each other.
 *
 * What it finds may be more than `mayRead` says (`targets.ts`), and is never less.
 *
 * @module
 */
import { LOCAL_ONLY_TAG } from "../../../data/service/target_workers.ts";
import type { Client, Iteration, Worker } from "./entities.ts";
import { KeyedSets } from "./keyed_sets.ts";
import type { JobParameters } from "../protocol.ts";

/** Those with workers of which no tag is wanted. */
const ANY_TAG = "";

/** See the module. It is kept by the tables, and follows from its entities. */
export class ServingIndex {
  /** The ids of those that go on and that workers of any process may serve, by a tag that they want. */
  readonly #openToAll = new KeyedSets<string, number>();
  /** The same, but for workers that are left to their own process. */
  readonly #openToMost = new KeyedSets<string, number>();
  /** None is of the process null. */
  readonly #clientsOfProcess = new KeyedSets<string | null, Client>();
  readonly #workersWithTag = new KeyedSets<string, Worker>();

  addIteration(iteration: Iteration, parameters: JobParameters): void {
    const byTag = this.#byTag(parameters);
    if (byTag === undefined || iteration.finished) return;
    byTag.add(tagOf(parameters), iteration.iterationId);
  }

  /** It is over, or forgotten. */
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

  /** It is forgotten, or about to change. */
  removeWorker(worker: Worker): void {
    for (const tag of worker.tags) this.#workersWithTag.delete(tag, worker);
  }

  /** The ids of iterations that the worker may have to serve, in the order of their creation. */
  iterationsFor({ tags, process, isPrivate }: Worker): number[] {
    const found = new Set<number>();
    for (const { iterationId } of this.#clientsOfProcess.of(process)) found.add(iterationId);
    const open = tags.includes(LOCAL_ONLY_TAG)
      ? [this.#openToAll]
      : [this.#openToAll, this.#openToMost];
    for (const byTag of isPrivate ? [] : open) {
      for (const tag of [ANY_TAG, ...tags]) {
        for (const iterationId of byTag.of(tag)) found.add(iterationId);
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  /** The workers with what a job wants of all; undefined where that is nothing. */
  workersFor(parameters: JobParameters): Iterable<Worker> | undefined {
    const tag = tagOf(parameters);
    return tag === ANY_TAG ? undefined : this.#workersWithTag.of(tag);
  }

  /** Undefined: workers serve the clients of their own process alone, and are found by that. */
  #byTag({ numConsumers, targetWorkers }: JobParameters) {
    if (numConsumers !== undefined || targetWorkers === "any") return this.#openToAll;
    return targetWorkers === "local" ? undefined : this.#openToMost;
  }
}

/** One of several is enough to tell most others apart. */
function tagOf({ targetTags = [] }: JobParameters): string {
  return targetTags[0] ?? ANY_TAG;
}
