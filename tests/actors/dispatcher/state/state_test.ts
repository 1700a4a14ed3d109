/**
 * The state is a function of the journal: whatever is decided, replaying it gives the same state.
 */
import { ANYONE, SAME_PROCESS } from "../../../../actors/runtime/identity.ts";
import { Consumers } from "../../../../actors/dispatcher/modes/consumers.ts";
import { endClient, newsFor } from "../../../../actors/dispatcher/members/clients.ts";
import { registerDataset } from "../../../../actors/dispatcher/jobs/datasets.ts";
import { openIteration } from "../../../../actors/dispatcher/jobs/join_iteration.ts";
import {
  decodeRecords,
  type JournalRecord,
  RecordBatch,
} from "../../../../actors/dispatcher/journal/records.ts";
import { listerDied, runnerDied } from "../../../../actors/dispatcher/jobs/runner_deaths.ts";
import { digestOfSplits, packSplits } from "../../../../data/sharding/split_table.ts";
import { assignSplit } from "../../../../actors/dispatcher/modes/splits.ts";
import { decodeSnapshot, encodeSnapshot } from "../../../../actors/dispatcher/journal/snapshot.ts";
import type { Client } from "../../../../actors/dispatcher/state/entities.ts";
import { DispatcherState } from "../../../../actors/dispatcher/state/state.ts";
import type { Transaction } from "../../../../actors/dispatcher/transaction.ts";
import { loseWorker, workerHeartbeat } from "../../../../actors/dispatcher/members/workers.ts";
import { QUOTAS } from "../../../../actors/dispatcher/jobs/quotas.ts";
import { LeatError } from "../../../../core/error.ts";
import { hashBytes } from "../../../../core/hash.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { assert, assertEquals, assertThrows } from "../../../assert.ts";
import { tableOf } from "../lib.ts";
import fc from "../../../lib/properties.ts";

/** One decision: numbers choose among what there is. */
interface Command {
  readonly kind: typeof KINDS[number];
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const KINDS = [
  "register",
  "open",
  "open coordinated",
  "open coordinated",
  "release",
  "heartbeat",
  "heartbeat",
  "heartbeat",
  "worker",
  "worker",
  "worker",
  "lose worker",
  "list",
  "split",
  "split",
  "split",
  "runner dies",
  "collect",
] as const;

const COMMANDS = fc.array(
  fc.record({
    kind: fc.constantFrom(...KINDS),
    a: fc.nat(50),
    b: fc.nat(50),
    c: fc.nat(3),
  }),
  { minLength: 40, maxLength: 200, size: "max" },
);

/** Decides without an actor; the journal is a list of encoded records. */
class Decider implements Transaction {
  readonly random = new DenoWorld({ seed: 7n }).random;
  readonly journal: Uint8Array[] = [];
  readonly consumers = new Consumers();
  readonly assigned = new Map<string, string>();
  readonly listedWorkers = ["w0", "w2"];
  readonly unheard = new Set<string>();
  state = new DispatcherState();
  nowMs = 0;
  #requests = 0;

  get wallMs(): number {
    return this.nowMs;
  }

  append(record: JournalRecord): void {
    const batch = new RecordBatch();
    batch.add(record);
    this.journal.push(batch.encode());
    this.state.apply(record);
    if (record.type !== "split_assigned") return;
    const iterationId = this.state.tasks.get(record.taskId)?.iterationId;
    const split = `${iterationId} ${record.source} ${record.repetition} ${record.index}`;
    assert(!this.assigned.has(split), `split ${split} was handed out twice`);
    this.assigned.set(split, `${record.taskId} ${record.number}`);
  }

  run({ kind, a, b, c }: Command): void {
    this.nowMs++;
    try {
      this.#decide(kind, a, b, c);
    } catch (error) {
      // Refusals are part of the game; anything else is a bug.
      if (
        !(error instanceof LeatError) || error.code === "internal" || error.code === "data_loss"
      ) {
        throw error;
      }
    }
    for (const iteration of this.state.iterations.values()) {
      this.state.modeOf(iteration).review(this, iteration, this.consumers);
    }
  }

  #decide(kind: Command["kind"], a: number, b: number, c: number): void {
    switch (kind) {
      case "register": {
        const graph = new Uint8Array(400).fill(c);
        const request = { graph, fingerprint: hashBytes(graph), cardinality: c === 0 ? 5 : -1 };
        registerDataset(this, request, ANYONE, QUOTAS);
        return;
      }
      case "open":
        return this.#open(
          a % 3 === 0 ? undefined : `job ${a % 3}`,
          b % 2,
          (["DYNAMIC", "OFF", "FILE"] as const)[c % 3]!,
        );
      case "open coordinated":
        return this.#open(`rounds ${c % 2}`, 0, "OFF", a % 2);
      case "release": {
        const client = pick(this.state.clients, a);
        if (client === undefined) return;
        const why = b % 2 === 0 ? "released" : "timed_out";
        endClient(this, client.clientId, why, this.consumers);
        return;
      }
      case "heartbeat":
        return this.#heartbeat(a, b, c);
      case "worker":
        return this.#worker(`w${a % 3}`, 1 + (b % 20 === 0 ? 1 : 0), c);
      case "lose worker": {
        const worker = pick(this.state.workers, a);
        if (worker?.alive) loseWorker(this, worker.name);
        return;
      }
      case "list":
        return this.#list(a, b);
      case "split": {
        const taskId = pick(this.state.tasks, a)?.taskId ?? 1;
        assignSplit(this, { taskId, number: 1 + b % 30, source: c % 2, repetition: c >> 1 }, 1);
        return;
      }
      case "runner dies": {
        const task = pick(this.state.tasks, a);
        if (task === undefined) return;
        const { taskId, runnerDeaths } = task;
        const error = new LeatError("unavailable", `The runner was ended ${c}`).toWire();
        runnerDied(this, { taskId, number: runnerDeaths + b % 2, error }, 3);
        return;
      }
      case "collect": {
        const iteration = pick(this.state.iterations, a);
        if (iteration === undefined) return;
        const { iterationId } = iteration;
        if (this.state.clientsOfIteration(iterationId).size > 0) return;
        this.append({ type: "iteration_collected", iterationId });
      }
    }
  }

  #open(
    jobName: string | undefined,
    repetition: number,
    processingMode: "OFF" | "DYNAMIC" | "FILE",
    consumerIndex?: number,
  ): void {
    const dataset = pick(this.state.datasets, repetition + 1);
    const rounds = consumerIndex === undefined ? {} : { numConsumers: 2 };
    openIteration(
      this,
      {
        requestId: `r${++this.#requests}`,
        parameters: {
          datasetId: dataset?.datasetId ?? "none",
          processingMode,
          sharing: false,
          ...rounds,
        },
        repetition,
        ...(jobName === undefined ? {} : { jobName }),
        ...(consumerIndex === undefined ? {} : { consumerIndex }),
      },
      ANYONE,
      { positionOf: () => undefined, isUnreadable: () => false, isClosed: () => false },
    );
  }

  #heartbeat(a: number, b: number, c: number): void {
    const client = pick(this.state.clients, a);
    if (client === undefined) return;
    const iteration = this.state.iterations.get(client.iterationId)!;
    const { proposal, schedules } = iteration.rounds;
    const lost = c === 0 ? [...this.state.tasksOfIteration(iteration.iterationId)] : [];
    const nextRound = (this.consumers.nextRound(client.clientId) ?? 0) + b;
    const report = {
      kind: "rounds" as const,
      position: { kind: "reading" as const, nextRound, deliveredRound: 0 },
      acceptedSchedule: proposal?.schedule.version ?? schedules.at(-1)?.version ?? 0,
      lostTasks: lost.slice(0, 1).map(({ taskId }) => ({ taskId })),
    };
    const { consumers } = this;
    this.state.modeOf(iteration).handleReport(this, client, report, {
      consumers,
      lostTaskTimeoutMs: 5,
      quotas: QUOTAS,
    });
    const changed = b % 2 === 0 ? undefined : new Set(this.state.tasks.keys());
    newsFor(this.state, client, changed, report, { windowSplits: 4, isDraining: () => false });
  }

  #worker(name: string, life: number, c: number): void {
    const tasks = [...this.state.tasksOfWorker(name)].map(({ taskId }) => ({
      taskId,
      source: { node: "n", path: `/${name}/${taskId}`, incarnation: `${life}` },
      completed: c === 0 && taskId % 2 === 0,
    }));
    const worker = { node: "n", path: `/${name}`, incarnation: `${life}` };
    const request = { name, worker, tags: ["t"], tasks: c === 1 ? [] : tasks };
    workerHeartbeat(this, request, { source: worker, sender: SAME_PROCESS });
  }

  #list(a: number, b: number): void {
    const iteration = pick(this.state.iterations, a);
    if (iteration === undefined || iteration.splits !== null || iteration.error !== null) {
      return;
    }
    const { iterationId } = iteration;
    if (b % 10 === 0) {
      const error = new LeatError("not_found", "no files", { details: { pattern: "*" } }).toWire();
      return this.append({ type: "iteration_failed", iterationId, error });
    }
    if (b % 10 === 1) {
      const failure = new LeatError("aborted", `The lister was ended ${b}`);
      return listerDied(this, { iterationId, worker: "w0", failure }, 3);
    }
    const bounds = packSplits(tableOf(b % 7, b % 3));
    this.append({ type: "splits_listed", iterationId, bounds, digest: digestOfSplits(bounds) });
  }
}

function pick<K, V>(map: ReadonlyMap<K, V>, number: number): V | undefined {
  return [...map.values()][number % Math.max(1, map.size)];
}

/** What is found at once of rounds, which has to follow from the state. */
function indexed(state: DispatcherState): unknown[] {
  return [...state.iterations.keys()].map((iterationId) => {
    const index = state.roundIndexOf(iterationId);
    if (index === undefined) return null;
    // Two of them say only what may be, and do so at first.
    const { mayHaveLostTasks: _, replacedAt: __, ...found } = index;
    return { ...found, serving: index.serving };
  });
}

function replay(state: DispatcherState, journal: readonly Uint8Array[]): DispatcherState {
  for (const record of journal.flatMap(decodeRecords)) state.apply(record);
  return state;
}

Deno.test("DispatcherState replayed from the journal equals the state that was lived", () => {
  const kinds = new Set<string>();
  fc.assert(
    fc.property(COMMANDS, (commands) => {
      const decider = new Decider();
      for (const command of commands) decider.run(command);
      for (const { type } of decider.journal.flatMap(decodeRecords)) kinds.add(type);
      const replayed = replay(new DispatcherState(), decider.journal);
      assertEquals(replayed.snapshot(), decider.state.snapshot());
    }),
    { numRuns: 60 },
  );
  for (const kind of EXERCISED) assert(kinds.has(kind), `no run made a record "${kind}"`);
});

/** What the commands above must lead to, or they test less than they seem to. */
const EXERCISED: readonly JournalRecord["type"][] = [
  "dataset_registered",
  "job_created",
  "iteration_created",
  "iteration_finished",
  "iteration_collected",
  "worker_registered",
  "worker_lost",
  "task_created",
  "task_ready",
  "task_completed",
  "task_ended",
  "client_opened",
  "client_released",
  "splits_listed",
  "iteration_failed",
  "runner_died",
  "lister_died",
  "split_assigned",
  "schedule_changed",
  "schedule_accepted",
  "schedule_committed",
];

Deno.test("DispatcherState restored from a snapshot and the records after it equals the state that was lived", () => {
  fc.assert(
    fc.property(COMMANDS, fc.nat(), (commands, at) => {
      const decider = new Decider();
      const cut = at % commands.length;
      for (const command of commands.slice(0, cut)) decider.run(command);
      const snapshot = encodeSnapshot(decider.state.snapshot());
      const tail = decider.journal.length;
      // The rest of the life is decided by the restored state: its indices must serve as well.
      const lived = decider.state;
      const restored = DispatcherState.restore(decodeSnapshot(snapshot));
      assertEquals(restored.snapshot(), lived.snapshot());
      assertEquals(indexed(restored), indexed(lived));
      decider.state = restored;
      for (const command of commands.slice(cut)) decider.run(command);
      replay(lived, decider.journal.slice(tail));
      assertEquals(lived.snapshot(), restored.snapshot());
    }),
    { numRuns: 60 },
  );
});

Deno.test("DispatcherState.restore shares nothing with its snapshot", () => {
  const decider = new Decider();
  decider.run({ kind: "register", a: 0, b: 0, c: 1 });
  const snapshot = decider.state.snapshot();
  decider.run({ kind: "open", a: 1, b: 0, c: 0 });
  assertEquals(snapshot.jobs.length, 0);
  const restored = DispatcherState.restore(snapshot);
  restored.apply({ type: "cluster_created", clusterId: "c" });
  (snapshot.datasets[0]!.graph as Uint8Array).fill(9);
  assertEquals(restored.datasets.get("1")!.graph[0], 1);
});

Deno.test("DispatcherState.restore takes the clients of a snapshot without readBy for those of programs", () => {
  const decider = new Decider();
  decider.run({ kind: "register", a: 0, b: 0, c: 1 });
  decider.run({ kind: "open", a: 1, b: 0, c: 0 });
  const snapshot = decider.state.snapshot();
  assertEquals(snapshot.clients.length, 1);
  const clients = snapshot.clients.map(({ readBy: _, ...client }) => client as Client);
  const restored = DispatcherState.restore({ ...snapshot, clients });
  assertEquals([...restored.clients.values()].map(({ readBy }) => readBy), [null]);
});

Deno.test("DispatcherState.datasetsLike has equal datasets in the order of their registering, until they are forgotten", () => {
  const state = new DispatcherState();
  const equal = { fingerprint: "f", graph: new Uint8Array(1), cardinality: 1 };
  for (const datasetId of ["a", "b", "c"]) {
    state.apply({ type: "dataset_registered", owner: "anyone", datasetId, ...equal });
  }
  const found: (string | undefined)[] = [];
  for (const datasetId of ["b", "a", "c"]) {
    found.push([...state.datasetsLike(equal)][0]?.datasetId);
    state.apply({ type: "dataset_forgotten", datasetId });
  }
  assertEquals([...found, ...state.datasetsLike(equal)], ["a", "a", "c"]);
});

Deno.test("DispatcherState refuses a journal with a hole or from a later version", () => {
  const state = new DispatcherState();
  const hole = assertThrows(() => state.apply({ type: "task_completed", taskId: 3 }), LeatError);
  assertEquals(hole.code, "data_loss");
  state.apply({
    type: "job_created",
    owner: "anyone",
    jobId: 1,
    name: "j",
    parameters: { datasetId: "1", processingMode: "OFF", sharing: false },
  });
  state.apply({ type: "iteration_created", iterationId: 1, jobId: 1, repetition: 0, seed: "0" });
  const later = { type: "iteration_painted", iterationId: 1 } as unknown as JournalRecord;
  assertEquals(assertThrows(() => state.apply(later), LeatError).code, "unimplemented");
  const snapshot = { ...state.snapshot(), format: 99 } as never;
  assertEquals(
    assertThrows(() => DispatcherState.restore(snapshot), LeatError).code,
    "unimplemented",
  );
});

Deno.test("DispatcherState.restore refuses a damaged snapshot with data_loss", () => {
  const { clients: _, ...damaged } = new DispatcherState().snapshot();
  for (const snapshot of [damaged, null]) {
    const error = assertThrows(() => DispatcherState.restore(snapshot as never), LeatError);
    assertEquals(error.code, "data_loss");
  }
});

Deno.test("RecordBatch gives back its records in order, runs of splits and others", () => {
  const split = (i: number) => ({
    type: "split_assigned" as const,
    taskId: i,
    source: 10 + i,
    repetition: 20 + i,
    index: 30 + i,
    number: 2 ** 40 + i,
  });
  const listed = {
    type: "splits_listed" as const,
    iterationId: 1,
    bounds: packSplits(tableOf(3, 0, 100)),
    digest: "d",
  };
  const completed = { type: "task_completed" as const, taskId: 7 };
  const records = [split(1), split(2), listed, completed, split(3), completed];
  const batch = new RecordBatch();
  for (const record of records) batch.add(record);
  assertEquals(decodeRecords(batch.encode()), records);
});

Deno.test("decodeRecords answers bytes that are no record with data_loss", () => {
  const error = assertThrows(() => decodeRecords(new Uint8Array([1, 2, 3])), LeatError);
  assertEquals(error.code, "data_loss");
});
