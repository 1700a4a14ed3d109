/**
 * Measures the dispatcher and the cost of its journal. It compares:
 * - assigned splits, each durable before it is answered, with rows appended to bare SQLite (`FULL`, 64
 *   per transaction, because 64 tasks request at a time);
 * - the same with a dispatcher whose journal is in memory;
 * - heartbeats with asks of an actor that does nothing;
 * - the start on a long journal with the start on a short one.
 */
import { packSplits } from "../../data/sharding/split_table.ts";
import { hashBytes } from "../../core/hash.ts";
import { setImmediate } from "node:timers";
import { createDispatcher } from "../../actors/dispatcher/dispatcher.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import { openJournal } from "../../actors/dispatcher/journal/recovery.ts";
import type { DurableLog } from "../../actors/runtime/durable_log.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { FencedRef, Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type { WorkerProtocol } from "../../actors/worker/protocol.ts";
import { LeatError } from "../../core/error.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { MemoryLog } from "../../platform/journal/memory_log.ts";
import { openSqliteLog } from "../../platform/journal/sqlite_log.ts";
import { type Load, pipelinedLoad, sequentialLoad } from "../bare/load.ts";
import { open as openSqlite } from "../bare/sqlite.ts";
import type { Bench } from "../lib/bench.ts";

const IN_FLIGHT = 64;
const SPLITS = 4_096;
const TIMEOUT_MS = 30_000;
const ATTEMPT_MS = 2_000;

/** The benches of this file. */
export const benches: Bench[] = [{
  name: "journal: splits, 64 in flight",
  unit: "splits/s",
  floor: 0.25,
  bare: () => openSqlite("FULL", IN_FLIGHT),
  leat: () => openSplits(onDisk()),
}, {
  name: "journal: splits, against none",
  unit: "splits/s",
  floor: 0.05,
  bare: () => openSplits(inMemory()),
  leat: () => openSplits(onDisk()),
}, {
  name: "dispatcher: heartbeats, against asks",
  unit: "asks/s",
  floor: 0.1,
  bare: openAsks,
  leat: openHeartbeats,
}, {
  name: "journal: start after 119,000 splits, against 19,000",
  unit: "ms",
  isDuration: true,
  floor: 0.5,
  bare: () => openStarts(19_000),
  leat: () => openStarts(119_000),
}];

/** Where a dispatcher keeps its journal. */
interface JournalLocation {
  openLog(name: string): Promise<DurableLog>;
  remove(): Promise<void>;
}

function onDisk(): JournalLocation {
  const folder = Deno.makeTempDirSync({ prefix: "leat-bench-" });
  return {
    openLog: (name) => openSqliteLog(`${folder}/${name}.log`),
    remove: () => Deno.remove(folder, { recursive: true }),
  };
}

function inMemory(): JournalLocation {
  return {
    openLog: () => Promise.resolve(new MemoryLog()),
    remove: () => Promise.resolve(),
  };
}

/** Opens a load in which each request in flight is of another task, whose dataset repeats. */
async function openSplits(location: JournalLocation): Promise<Load> {
  const { system, dispatcher } = startDispatcher(location);
  await openJob(system, dispatcher);
  const idle: SplitRequester[] = [];
  while (idle.length < IN_FLIGHT) {
    const { taskId } = await startTask(system, dispatcher, `worker-${idle.length}`);
    idle.push(new SplitRequester(system, dispatcher, taskId));
  }
  const step = async () => {
    const requester = idle.pop()!;
    await requester.next();
    idle.push(requester);
    return 1;
  };
  return pipelinedLoad(IN_FLIGHT, step, async () => {
    await system.stop();
    await location.remove();
  });
}

function startDispatcher({ openLog }: JournalLocation) {
  const system = new ActorSystem({
    node: "bench",
    world: new DenoWorld({ openLog, logLevel: "warn" }),
  });
  const dispatcher = dispatcherAt("bench");
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: (context) => createDispatcher(context),
  });
  return { system, dispatcher };
}

/** Opens a load in which each request in flight is the heartbeat of another worker with a task. */
async function openHeartbeats(): Promise<Load> {
  const location = onDisk();
  const { system, dispatcher } = startDispatcher(location);
  await openJob(system, dispatcher);
  const idle: RequestOf<DispatcherProtocol, "workerHeartbeat">[] = [];
  while (idle.length < IN_FLIGHT) {
    const name = `worker-${idle.length}`;
    const { taskId, worker } = await startTask(system, dispatcher, name);
    const source = { node: "bench", path: `/${name}/task`, incarnation: "1" };
    idle.push({ name, worker, tags: [], tasks: [{ taskId, source, completed: false }] });
  }
  const step = async () => {
    const request = idle.pop()!;
    await system.ask(dispatcher, "workerHeartbeat", request, { timeoutMs: TIMEOUT_MS });
    idle.push(request);
    return 1;
  };
  return pipelinedLoad(IN_FLIGHT, step, async () => {
    await system.stop();
    await location.remove();
  });
}

/** Opens a load of asks of an actor that only answers. */
function openAsks(): Load {
  type Idle = { leave(request: null): null };
  const system = new ActorSystem({ node: "bench", world: new DenoWorld({ logLevel: "warn" }) });
  const idle = system.spawn<Idle>({
    name: "idle",
    create: () => ({ handlers: { leave: () => null } }),
  });
  const step = async () => {
    await system.ask(idle, "leave", null, { timeoutMs: TIMEOUT_MS });
    return 1;
  };
  return pipelinedLoad(IN_FLIGHT, step, () => system.stop());
}

/** Opens a load of starts of a dispatcher, which opens, checks and replays its journal. */
async function openStarts(splits: number): Promise<Load> {
  const location = onDisk();
  const open = async () => await openJournal(await location.openLog("dispatcher"), JOURNAL_OPTIONS);
  const { state, journal } = await open();
  const commit = (record: JournalRecord) => {
    journal.append(record);
    state.apply(record);
  };
  for (const record of JOB_RECORDS) commit(record);
  for (let i = 0; i < splits; i++) {
    const [repetition, index, number] = [Math.floor(i / SPLITS), i % SPLITS, i + 1];
    commit({ type: "split_assigned", taskId: 1, source: 0, repetition, index, number });
    if (number % IN_FLIGHT === 0) await journal.committed();
  }
  await journal.close();
  const step = async () => {
    const startedMs = performance.now();
    const opened = await open();
    const tookMs = performance.now() - startedMs;
    await opened.journal.close();
    return tookMs;
  };
  return sequentialLoad(step, () => location.remove());
}

const JOURNAL_OPTIONS = {
  recordsMax: 20_000,
  bytesMax: 16 * 2 ** 20,
  macrotask: (fn: () => void) => void setImmediate(fn),
  nowMs: () => performance.now(),
  timer: (delayMs: number, fn: () => void) => {
    const timer = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  onStall: () => {},
  onFailure: () => {},
  snapshotBytesMax: 2 ** 29,
  onTooLarge: () => {},
};

const JOB_RECORDS: readonly JournalRecord[] = [
  { type: "cluster_created", clusterId: "00000000deadbeef" },
  {
    type: "dataset_registered",
    owner: "anyone",
    datasetId: "1",
    graph: new Uint8Array(1_000),
    fingerprint: "bench",
    cardinality: -1,
  },
  {
    type: "job_created",
    owner: "anyone",
    jobId: 1,
    name: "bench",
    parameters: { datasetId: "1", processingMode: "DYNAMIC", sharing: false },
  },
  { type: "iteration_created", iterationId: 1, jobId: 1, repetition: 0, seed: "0" },
  { type: "task_created", taskId: 1, iterationId: 1, worker: "w", seed: "0" },
  {
    type: "splits_listed",
    iterationId: 1,
    bounds: [Float64Array.from({ length: 2 * SPLITS }, (_, i) => (i + 1) >> 1)],
    digest: "bench",
  },
];

async function openJob(system: ActorSystem, dispatcher: Ref<DispatcherProtocol>): Promise<void> {
  const graph = new Uint8Array(1_000);
  const dataset = { graph, fingerprint: hashBytes(graph), cardinality: -1 };
  const limits = { timeoutMs: TIMEOUT_MS };
  const { datasetId } = await system.ask(dispatcher, "registerDataset", dataset, limits);
  await system.ask(dispatcher, "openIteration", {
    requestId: "bench",
    jobName: "bench",
    parameters: { datasetId, processingMode: "DYNAMIC", sharing: false },
    repetition: 0,
  }, limits);
}

/** Registers a worker that can only list splits. Returns the worker and its task. */
async function startTask(
  system: ActorSystem,
  dispatcher: Ref<DispatcherProtocol>,
  name: string,
): Promise<{ readonly taskId: number; readonly worker: FencedRef<WorkerProtocol> }> {
  const table = [Array.from({ length: SPLITS }, (_, i) => ({ start: i, stop: i + 1 }))];
  const worker = system.spawn<WorkerProtocol>({
    name,
    create: () => ({
      handlers: {
        listSplits: () => ({ bounds: packSplits(table) }),
        beginSave: () => {
          throw new LeatError("unimplemented", "It saves nothing");
        },
        nameWanted: () => null,
        drain: () => true,
        leave: () => null,
        wake: () => null,
      },
    }),
  });
  const request = { name, worker, tags: [], tasks: [] };
  const limits = { timeoutMs: TIMEOUT_MS };
  const answer = await system.ask(dispatcher, "workerHeartbeat", request, limits);
  const newTasks = answer.kind === "work" ? answer.newTasks : [];
  const [task] = newTasks;
  if (task === undefined) throw new LeatError("internal", `${name} got no task`);
  return { taskId: task.taskId, worker };
}

/** Requests splits as a task does. */
class SplitRequester {
  readonly #system: ActorSystem;
  readonly #dispatcher: Ref<DispatcherProtocol>;
  readonly #taskId: number;
  #number = 0;
  #repetition = 0;
  #newest = -1;

  constructor(system: ActorSystem, dispatcher: Ref<DispatcherProtocol>, taskId: number) {
    this.#system = system;
    this.#dispatcher = dispatcher;
    this.#taskId = taskId;
  }

  /** Requests a split. If the repetition has ended, requests one of the next repetition. */
  async next(): Promise<void> {
    for (;;) {
      const { split } = await this.#system.ask(this.#dispatcher, "getSplit", {
        taskId: this.#taskId,
        number: ++this.#number,
        source: 0,
        repetition: this.#repetition,
      }, { timeoutMs: TIMEOUT_MS, attemptMs: ATTEMPT_MS });
      if (split === null) {
        this.#repetition++;
        this.#newest = -1;
        continue;
      }
      if (split.index <= this.#newest) {
        throw new LeatError("internal", `Split ${split.index} came after split ${this.#newest}`);
      }
      this.#newest = split.index;
      return;
    }
  }
}
