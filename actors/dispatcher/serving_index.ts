/**
 * Finds what belongs together of workers and iterations, without a look at all others: in a cluster with
 * pools of workers for its jobs, most have nothing to do with each other.
 *
 * What it finds may be more than `mayRead` says (`targets.ts`), and is never less.
 *
 * @module
 */
import { LOCAL_ONLY_TAG } from "../../data/target_workers.ts";
import type { Client, Iteration, Worker } from "./entities.ts";
import type { JobParameters } from "./protocol.ts";

/** Those with workers of which no tag is wanted. */
const ANY_TAG = "";

/** See the module. It is kept by the state, and follows from its entities. */
export class ServingIndex {
  /** Those that go on and that workers of any process may serve, by a tag that they want. */
  readonly #openToAll = new Map<string, Map<number, Iteration>>();
  /** The same, but for workers that are left to their own process. */
  readonly #openToMost = new Map<string, Map<number, Iteration>>();
  readonly #clientsOfProcess = new Map<string, Map<number, Client>>();
  readonly #workersWithTag = new Map<string, Map<string, Worker>>();

  addIteration(iteration: Iteration, parameters: JobParameters): void {
    const byTag = this.#byTag(parameters);
    if (byTag === undefined || iteration.finished) return;
    put(byTag, tagOf(parameters), iteration.iterationId, iteration);
  }

  /** It is over, or forgotten. */
  removeIteration({ iterationId }: Iteration, parameters: JobParameters): void {
    const byTag = this.#byTag(parameters);
    if (byTag !== undefined) remove(byTag, tagOf(parameters), iterationId);
  }

  addClient(client: Client): void {
    if (client.process === null) return;
    put(this.#clientsOfProcess, client.process, client.clientId, client);
  }

  removeClient({ process, clientId }: Client): void {
    if (process !== null) remove(this.#clientsOfProcess, process, clientId);
  }

  addWorker(worker: Worker): void {
    for (const tag of worker.tags) put(this.#workersWithTag, tag, worker.name, worker);
  }

  /** It is forgotten, or about to have other tags. */
  removeWorker({ tags, name }: Worker): void {
    for (const tag of tags) remove(this.#workersWithTag, tag, name);
  }

  /** The ids of iterations that the worker may have to serve, in the order of their creation. */
  iterationsFor({ tags, process, isPrivate }: Worker): number[] {
    const found = new Set<number>();
    for (const client of this.#clientsOfProcess.get(process ?? "")?.values() ?? []) {
      found.add(client.iterationId);
    }
    const open = tags.includes(LOCAL_ONLY_TAG)
      ? [this.#openToAll]
      : [this.#openToAll, this.#openToMost];
    for (const byTag of isPrivate ? [] : open) {
      for (const tag of [ANY_TAG, ...tags]) {
        for (const iterationId of byTag.get(tag)?.keys() ?? []) found.add(iterationId);
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  /** The workers with what a job wants of all; undefined where that is nothing. */
  workersFor(parameters: JobParameters): Iterable<Worker> | undefined {
    const tag = tagOf(parameters);
    return tag === ANY_TAG ? undefined : this.#workersWithTag.get(tag)?.values() ?? [];
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

function put<K, V>(byKey: Map<string, Map<K, V>>, key: string, id: K, value: V): void {
  const those = byKey.get(key);
  if (those === undefined) byKey.set(key, new Map([[id, value]]));
  else those.set(id, value);
}

function remove<K, V>(byKey: Map<string, Map<K, V>>, key: string, id: K): void {
  const those = byKey.get(key);
  those?.delete(id);
  if (those?.size === 0) byKey.delete(key);
}
