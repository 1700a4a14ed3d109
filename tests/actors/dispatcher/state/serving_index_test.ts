/**
 * `ServingIndex`: that it leaves out nothing that belongs together, and most of what does not. The method:
 * workers, clients and jobs drawn at random come and go, and all pairs are looked at.
 */
import type { Client, Iteration, Worker } from "../../../../actors/dispatcher/state/entities.ts";
import type { JobParameters } from "../../../../actors/dispatcher/protocol.ts";
import { ServingIndex } from "../../../../actors/dispatcher/state/serving_index.ts";
import { mayRead } from "../../../../actors/dispatcher/jobs/targets.ts";
import { LOCAL_ONLY_TAG } from "../../../../data/service/reading_choices.ts";
import { SimRandom } from "../../../../sim/engine/random.ts";
import { assert, assertEquals } from "../../../assert.ts";

const TAGS = ["a", "b", "c", LOCAL_ONLY_TAG];
const PROCESSES = [null, "p", "q"];
const TARGETS = [undefined, "any", "local"] as const;

class Drawn {
  readonly index = new ServingIndex();
  readonly workers = new Map<string, Worker>();
  readonly jobs = new Map<number, { iteration: Iteration; parameters: JobParameters }>();
  readonly clients = new Map<number, Client>();
  readonly #randomState: SimRandom;
  #last = 0;

  constructor(seed: bigint) {
    this.#randomState = new SimRandom(seed);
  }

  step(): void {
    const number = ++this.#last;
    const kind = this.#randomState.int(6);
    if (kind === 0) this.#addJob(number);
    if (kind === 1) this.#addWorker(`w${this.#randomState.int(12)}`);
    if (kind === 2) this.#addClient(number);
    if (kind === 3) this.#take(this.workers, (worker) => this.index.removeWorker(worker));
    if (kind === 4) this.#take(this.clients, (client) => this.index.removeClient(client));
    if (kind === 5) {
      this.#take(this.jobs, (job) => this.index.removeIteration(job.iteration, job.parameters));
    }
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#randomState.int(items.length)]!;
  }

  #tags(): string[] {
    return TAGS.filter(() => this.#randomState.chance(0.3));
  }

  #addJob(number: number): void {
    const targetWorkers = this.#pick(TARGETS);
    const parameters = {
      ...{ datasetId: "d", processingMode: "DYNAMIC", sharing: false, targetTags: this.#tags() },
      ...(targetWorkers === undefined ? {} : { targetWorkers }),
      ...(targetWorkers !== "local" && this.#randomState.chance(0.3) ? { numConsumers: 2 } : {}),
    } as JobParameters;
    const iteration = { iterationId: number, finished: false } as Iteration;
    this.jobs.set(number, { iteration, parameters });
    this.index.addIteration(iteration, parameters);
  }

  /** One of a name that is there is the same with other tags. */
  #addWorker(name: string): void {
    const before = this.workers.get(name);
    if (before !== undefined) this.index.removeWorker(before);
    const process = this.#pick(PROCESSES);
    const isPrivate = this.#randomState.chance(0.3);
    const worker = { name, tags: this.#tags(), process, isPrivate } as unknown as Worker;
    this.workers.set(name, worker);
    this.index.addWorker(worker);
  }

  #addClient(number: number): void {
    if (this.jobs.size === 0) return;
    const iterationId = this.#pick([...this.jobs.keys()]);
    const client = { clientId: number, iterationId, process: this.#pick(PROCESSES) } as Client;
    this.clients.set(number, client);
    this.index.addClient(client);
  }

  #take<K, V>(from: Map<K, V>, then: (value: V) => void): void {
    if (from.size === 0) return;
    const [key, value] = this.#pick([...from]);
    from.delete(key);
    then(value);
  }
}

Deno.test("ServingIndex finds every worker that may be read, and every iteration that it may serve", () => {
  let pairs = 0;
  let found = 0;
  for (let seed = 1n; seed <= 20n; seed++) {
    const drawn = new Drawn(seed);
    for (let step = 0; step < 200; step++) drawn.step();
    const { workers, jobs, clients, index } = drawn;
    for (const worker of workers.values()) {
      const iterations = index.iterationsFor(worker);
      assertEquals(iterations, iterations.toSorted((a, b) => a - b));
      for (const [iterationId, { parameters }] of jobs) {
        const readers = [null, ...clients.values()]
          .filter((client) => client === null || client.iterationId === iterationId);
        const isServed = readers.some((client) => mayRead(parameters, client, worker));
        assert(!isServed || iterations.includes(iterationId), `seed ${seed}: ${iterationId}`);
        const workersFor = index.workersFor(parameters);
        const isAmong = workersFor === undefined || [...workersFor].includes(worker);
        assert(!isServed || isAmong, `seed ${seed}: ${worker.name}`);
        pairs++;
        if (iterations.includes(iterationId)) found++;
      }
    }
  }
  assert(found < pairs / 2, `${found} of ${pairs} pairs are to be looked at`);
});

Deno.test("ServingIndex forgets what has gone", () => {
  const drawn = new Drawn(1n);
  for (let step = 0; step < 200; step++) drawn.step();
  const { jobs, index } = drawn;
  const tags = TAGS.slice(0, -1);
  const worker = { name: "w", tags, process: "p", isPrivate: false } as unknown as Worker;
  assert(index.iterationsFor(worker).length > 0);
  for (const { iteration, parameters } of jobs.values()) {
    index.removeIteration(iteration, parameters);
  }
  for (const client of drawn.clients.values()) index.removeClient(client);
  assertEquals(index.iterationsFor(worker), []);
});
