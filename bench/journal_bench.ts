/**
 * Splits handed out through the dispatcher actor, each durable before it is answered, beside rows
 * appended to bare SQLite: `FULL`, 64 to a transaction, as 64 tasks ask at a time.
 *
 * @module
 */
import { createDispatcher } from "../actors/dispatcher/dispatcher.ts";
import { dispatcherAt, type DispatcherProtocol } from "../actors/dispatcher/protocol.ts";
import type { Ref } from "../actors/runtime/ref.ts";
import { ActorSystem } from "../actors/runtime/system.ts";
import type { WorkerProtocol } from "../actors/worker/protocol.ts";
import { LeatError } from "../core/error.ts";
import { DenoWorld } from "../world/deno_world.ts";
import { openSqliteLog } from "../world/sqlite_log.ts";
import { type Load, pipelinedLoad } from "./bare/load.ts";
import { open as openSqlite } from "./bare/sqlite.ts";
import type { Bench } from "./lib/bench.ts";

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
  leat: openSplits,
}];

/** As many tasks as are in flight, each asking for one split after the other of a dataset that repeats. */
async function openSplits(): Promise<Load> {
  const folder = await Deno.makeTempDir({ prefix: "leat-bench-" });
  const openLog = (name: string) => openSqliteLog(`${folder}/${name}.log`);
  const system = new ActorSystem({
    node: "bench",
    world: new DenoWorld({ openLog, logLevel: "warn" }),
  });
  const dispatcher = dispatcherAt("bench");
  system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: (context) => createDispatcher(context),
  });
  await openJob(system, dispatcher);
  const idle: Asker[] = [];
  while (idle.length < IN_FLIGHT) {
    const taskId = await startTask(system, dispatcher, `worker-${idle.length}`);
    idle.push(new Asker(system, dispatcher, taskId));
  }
  const step = async () => {
    const asker = idle.pop()!;
    await asker.next();
    idle.push(asker);
    return 1;
  };
  return pipelinedLoad(IN_FLIGHT, step, async () => {
    await system.stop();
    await Deno.remove(folder, { recursive: true });
  });
}

async function openJob(system: ActorSystem, dispatcher: Ref<DispatcherProtocol>): Promise<void> {
  const dataset = { graph: new Uint8Array(1_000), fingerprint: "bench", cardinality: -1 };
  const patience = { timeoutMs: TIMEOUT_MS };
  const { datasetId } = await system.ask(dispatcher, "registerDataset", dataset, patience);
  await system.ask(dispatcher, "openIteration", {
    requestId: "bench",
    jobName: "bench",
    parameters: { datasetId, processingMode: "DYNAMIC", sharing: false },
    repetition: 0,
  }, patience);
}

/** Registers a worker that can list splits and does nothing else, and gives the task it got. */
async function startTask(
  system: ActorSystem,
  dispatcher: Ref<DispatcherProtocol>,
  name: string,
): Promise<number> {
  const table = [Array.from({ length: SPLITS }, (_, i) => ({ start: i, stop: i + 1 }))];
  const worker = system.spawn<WorkerProtocol>({
    name,
    create: () => ({
      handlers: {
        listSplits: () => ({ table }),
        beginSave: () => {
          throw new LeatError("unimplemented", "It saves nothing");
        },
        drain: () => true,
        leave: () => null,
        wake: () => null,
      },
    }),
  });
  const request = { name, worker, tags: [], tasks: [] };
  const patience = { timeoutMs: TIMEOUT_MS };
  const { newTasks } = await system.ask(dispatcher, "workerHeartbeat", request, patience);
  const [task] = newTasks;
  if (task === undefined) throw new LeatError("internal", `${name} was given no task`);
  return task.taskId;
}

/** Asks for splits as a task does. */
class Asker {
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

  /** One split; at the end of a repetition, of the next one. */
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
