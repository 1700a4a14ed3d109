/**
 * The indices of the dispatcher's state: that each finds what a look at all entities would. The method:
 * records drawn at random, each of which follows from those before it, and a look after each.
 */
import type { JournalRecord } from "../../../../actors/dispatcher/journal/records.ts";
import { DispatcherState } from "../../../../actors/dispatcher/state/state.ts";
import { SimRandom } from "../../../../sim/engine/random.ts";
import { assert, assertEquals } from "../../../assert.ts";

const SEEDS = 20;
const STEPS = 150;
/** A chance that the state is restored from a snapshot of itself before the next record. */
const RESTORED = 0.03;
const NAMES = ["a", "b", "c"];
const WORKERS = ["w0", "w1", "w2", "w3"];
const PROCESSES = [null, "p", "q"];
const PLACE = { node: "n", path: "/p" };

/** Draws records. Ids are counted, so that none is given again. */
class Drawn {
  state = new DispatcherState();
  readonly kinds = new Set<JournalRecord["type"]>();
  readonly #randomState: SimRandom;
  #last = 0;

  constructor(seed: bigint) {
    this.#randomState = new SimRandom(seed);
  }

  step(): void {
    if (this.#randomState.chance(RESTORED)) {
      this.state = DispatcherState.restore(this.state.snapshot());
    }
    const draw = this.#pick([
      ...[this.#dataset, this.#job, this.#iteration, this.#worker, this.#worker, this.#task],
      ...[this.#task, this.#task, this.#task, this.#taskChange, this.#taskChange, this.#client],
      ...[this.#client, this.#goes],
    ])!;
    for (const record of draw.call(this)) {
      this.state.apply(record);
      this.kinds.add(record.type);
    }
  }

  #pick<T>(items: Iterable<T>): T | undefined {
    const all = [...items];
    return all[this.#randomState.int(Math.max(1, all.length))];
  }

  #dataset(): JournalRecord[] {
    const fingerprint = this.#pick(NAMES)!;
    const datasetId = `${++this.#last}`;
    const graph = new Uint8Array(1);
    return [{
      type: "dataset_registered",
      owner: "anyone",
      datasetId,
      fingerprint,
      graph,
      cardinality: 1,
    }];
  }

  #job(): JournalRecord[] {
    const name = this.#pick([null, ...NAMES])!;
    if (name !== null && this.state.jobNamed(name) !== undefined) return [];
    const parameters = {
      ...{ datasetId: "1", processingMode: "OFF" as const, sharing: false },
      ...(this.#randomState.chance(0.5) ? { numConsumers: 2 } : {}),
    };
    const jobId = ++this.#last;
    return [
      { type: "job_created", owner: "anyone", jobId, name, parameters },
      this.#iterationOf(jobId),
    ];
  }

  #iteration(): JournalRecord[] {
    const job = this.#pick(this.state.jobs.values());
    return job === undefined ? [] : [this.#iterationOf(job.jobId)];
  }

  #iterationOf(jobId: number): JournalRecord {
    const iterationId = ++this.#last;
    const repetition = iterationId;
    return { type: "iteration_created", iterationId, jobId, repetition, seed: "0" };
  }

  #worker(): JournalRecord[] {
    const name = this.#pick(WORKERS)!;
    if (this.state.workers.get(name)?.alive && this.#randomState.chance(0.5)) {
      return [{ type: "worker_lost", name, wallMs: 0 }];
    }
    const process = this.#pick(PROCESSES)!;
    const worker = { ...PLACE, incarnation: `${++this.#last}` };
    const given = process === null ? {} : { process };
    return [{ type: "worker_registered", name, worker, tags: ["t"], ...given }];
  }

  #task(): JournalRecord[] {
    const iterationId = this.#pick(this.state.iterations.keys());
    const worker = this.#pick(WORKERS)!;
    if (iterationId === undefined || this.state.taskAt(iterationId, worker)) return [];
    return [{ type: "task_created", taskId: ++this.#last, iterationId, worker, seed: "0" }];
  }

  #taskChange(): JournalRecord[] {
    const taskId = this.#pick(this.state.tasks.keys());
    if (taskId === undefined) return [];
    return [
      this.#pick<JournalRecord>([
        { type: "task_ready", taskId, source: { ...PLACE, incarnation: "1" } },
        { type: "task_completed", taskId },
        { type: "task_ended", taskId, why: "task_failed" },
      ])!,
    ];
  }

  #client(): JournalRecord[] {
    const iterationId = this.#pick(this.state.iterations.keys());
    if (iterationId === undefined) return [];
    const clientId = ++this.#last;
    const ids = { clientId, iterationId, requestId: `r${clientId}` };
    return [{ type: "client_opened", ...ids, consumerIndex: null }];
  }

  #goes(): JournalRecord[] {
    const { clients, iterations, datasets } = this.state;
    const clientId = this.#pick(clients.keys());
    if (clientId !== undefined && this.#randomState.chance(0.6)) {
      return [{ type: "client_released", clientId, why: "gone", nextRound: null }];
    }
    const datasetId = this.#pick(datasets.keys());
    if (datasetId !== undefined && this.#randomState.chance(0.4)) {
      return [{ type: "dataset_forgotten", datasetId }];
    }
    const unread = [...iterations.keys()].filter((id) =>
      [...clients.values()].every(({ iterationId }) => iterationId !== id)
    );
    const iterationId = this.#pick(unread);
    if (iterationId === undefined) return [];
    return [{ type: "iteration_finished", iterationId }, {
      type: "iteration_collected",
      iterationId,
    }];
  }
}

/** That each index of the state finds what a look at all of its entities does. */
function assertIndexed(state: DispatcherState, where: string): void {
  const see = <T>(
    what: string,
    found: Iterable<T>,
    all: Iterable<T>,
    isWanted: (at: T) => boolean,
  ) => {
    const those = [...found];
    const wanted = [...all].filter(isWanted);
    const isSame = those.length === wanted.length && wanted.every((at) => those.includes(at));
    assert(isSame, `${where}: ${what} finds ${those.length}, and there are ${wanted.length}`);
  };
  const datasets = [...state.datasets.values()];
  const jobs = [...state.jobs.values()];
  const iterations = [...state.iterations.values()];
  const tasks = [...state.tasks.values()];
  const workers = [...state.workers.values()];
  const clients = [...state.clients.values()];
  for (const dataset of NAMES.map((fingerprint) => ({ fingerprint }))) {
    const like = datasets.filter(({ fingerprint }) => fingerprint === dataset.fingerprint);
    assertEquals([...state.datasetsLike(dataset)], like, `${where}: datasetsLike`);
  }
  for (const name of NAMES) {
    assertEquals(state.jobNamed(name), jobs.find((job) => job.name === name), `${where}: jobNamed`);
  }
  for (const { jobId } of jobs) {
    see("iterationsOfJob", state.iterationsOfJob(jobId), iterations, (at) => at.jobId === jobId);
  }
  for (const name of WORKERS) {
    see("tasksOfWorker", state.tasksOfWorker(name), tasks, ({ worker }) => worker === name);
  }
  for (const process of PROCESSES) {
    const found = state.workersOfProcess(process);
    see("workersOfProcess", found, workers, (at) => process !== null && at.process === process);
  }
  assertEquals(state.workersAlive, workers.filter(({ alive }) => alive).length, where);
  for (const client of clients) {
    assertEquals(state.clientOfRequest(client.requestId), client, `${where}: clientOfRequest`);
  }
  for (const { iterationId, jobId, repetition } of iterations) {
    const isOf = (at: { readonly iterationId: number }) => at.iterationId === iterationId;
    const iteration = state.iterationOf(jobId, repetition);
    assertEquals(iteration, state.iterations.get(iterationId), `${where}: iterationOf`);
    see("tasksOfIteration", state.tasksOfIteration(iterationId), tasks, isOf);
    see("clientsOfIteration", state.clientsOfIteration(iterationId), clients, isOf);
    const own = tasks.filter(isOf);
    const toComplete = own.filter(({ completed }) => !completed).length;
    assertEquals(state.tasksToComplete(iterationId), toComplete, `${where}: tasksToComplete`);
    for (const name of WORKERS) {
      const there = own.find(({ worker }) => worker === name);
      assertEquals(state.taskAt(iterationId, name), there, `${where}: taskAt`);
    }
    const isCoordinated = state.jobs.get(jobId)!.parameters.numConsumers !== undefined;
    const index = state.roundIndexOf(iterationId);
    const serving = own.filter(({ source }) => source !== null).length;
    assertEquals(index?.serving, isCoordinated ? serving : undefined, `${where}: roundIndexOf`);
    if (index !== undefined) see("newcomers", index.newcomers, clients, isOf);
  }
}

Deno.test("DispatcherState: each index finds what a look at all entities would, whatever comes and goes", () => {
  const kinds = new Set<JournalRecord["type"]>();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const drawn = new Drawn(BigInt(seed));
    for (let step = 1; step <= STEPS; step++) {
      drawn.step();
      assertIndexed(drawn.state, `seed ${seed}, step ${step}`);
    }
    for (const kind of drawn.kinds) kinds.add(kind);
  }
  for (const kind of EXERCISED) assert(kinds.has(kind), `no record "${kind}" was drawn`);
});

/** What must have been drawn, or the test sees less than it seems to. */
const EXERCISED: readonly JournalRecord["type"][] = [
  ...["dataset_registered", "dataset_forgotten", "job_created", "iteration_created"] as const,
  ...["iteration_collected", "worker_registered", "worker_lost", "task_created"] as const,
  ...["task_ready", "task_completed", "task_ended", "client_opened", "client_released"] as const,
];
