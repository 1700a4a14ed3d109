/** Random commands to the dispatcher of a DETERMINISTIC job, for tests by property. */
import { QUOTAS } from "../../../../actors/dispatcher/jobs/quotas.ts";
import { openIteration } from "../../../../actors/dispatcher/jobs/join_iteration.ts";
import { type JournalRecord, RecordBatch } from "../../../../actors/dispatcher/journal/records.ts";
import { endClient } from "../../../../actors/dispatcher/members/clients.ts";
import { loseWorker, workerHeartbeat } from "../../../../actors/dispatcher/members/workers.ts";
import { Consumers } from "../../../../actors/dispatcher/modes/consumers.ts";
import { noteReceived } from "../../../../actors/dispatcher/modes/deterministic/ordered.ts";
import { has, listed } from "../../../../actors/dispatcher/modes/deterministic/places.ts";
import type { OrderedConsumers } from "../../../../actors/dispatcher/modes/mode_state.ts";
import { assignSplit } from "../../../../actors/dispatcher/modes/splits.ts";
import { DispatcherState } from "../../../../actors/dispatcher/state/state.ts";
import type { Transaction } from "../../../../actors/dispatcher/transaction.ts";
import { ANYONE, SAME_PROCESS } from "../../../../actors/runtime/identity.ts";
import { LeatError } from "../../../../core/error.ts";
import { digestOfSplits, packSplits } from "../../../../data/sharding/split_table.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { SplitOwners } from "../../../../sim/checkers/splits/split_owners.ts";
import { assert, assertEquals } from "../../../assert.ts";
import { tableOf } from "../lib.ts";
import { CONSUMERS, ORDERED, WINDOW_SPLITS } from "./ordered_cluster.ts";
import fc from "../../../lib/properties.ts";

/** Decides without an actor; numbers choose among what there is. */
export class Decider implements Transaction {
  readonly random = new DenoWorld({ seed: 7n }).random;
  readonly journal: Uint8Array[] = [];
  state = new DispatcherState();
  nowMs = 0;
  readonly wallMs = 0;
  readonly listedWorkers = [];
  readonly unheard = new Set<string>();
  #requests = 0;
  #numbers = new Map<string, number>();
  readonly #owners = new SplitOwners();

  constructor() {
    this.append({
      type: "dataset_registered",
      owner: "anyone",
      datasetId: "1",
      graph: new Uint8Array(4),
      fingerprint: "f",
      cardinality: 100,
    });
  }

  append(record: JournalRecord): void {
    const batch = new RecordBatch();
    batch.add(record);
    this.journal.push(batch.encode());
    this.state.apply(record);
    assertEquals(this.#owners.note(record), undefined);
  }

  run([kind, a, b]: Command): void {
    try {
      this.#decide(kind, a, b);
    } catch (error) {
      const refused = error instanceof LeatError && error.code !== "internal" &&
        error.code !== "data_loss";
      if (!refused) throw error;
    }
    for (const { ordered } of this.state.iterations.values()) {
      const { mark, next, assigned, done, lost, consumers } = ordered!;
      const kept = [...assigned.map(({ sequence }) => sequence), ...listed(lost)];
      assertEquals(new Set(kept).size, kept.length, "a split is in two places");
      assert(
        [...kept, ...listed(done)].every((at) => at >= mark),
        "something below the mark is kept",
      );
      if (consumers !== null) {
        this.#checkConsumers(consumers, kept, next);
        continue;
      }
      assert(next <= Math.max(mark + WINDOW_SPLITS, mark), "the window is exceeded");
      assert(kept.length <= WINDOW_SPLITS);
    }
  }

  /** What a consumer that reads has yet to get, up to where splits were handed out, is being produced. */
  #checkConsumers({ reading }: OrderedConsumers, kept: number[], next: number): void {
    for (const { mark, done } of Object.values(reading)) {
      for (let at = mark; at < next; at++) {
        assert(has(done, at) || kept.includes(at), `split ${at} is lost for a consumer`);
      }
    }
  }

  #decide(kind: Command[0], a: number, b: number): void {
    const { state } = this;
    const iteration = pick(state.iterations, a);
    switch (kind) {
      case "open": {
        const jobName = `job ${a % 3}`;
        const job = state.jobNamed(jobName);
        const found = job === undefined ? undefined : state.iterationOf(job.jobId, 0);
        openIteration(
          this,
          {
            requestId: `r${++this.#requests}`,
            jobName,
            ...(found === undefined ? {} : { follows: found.iterationId }),
            parameters: {
              datasetId: "1",
              sharing: false,
              ...ORDERED,
              ...(a % 3 === 2 ? { numConsumers: CONSUMERS } : {}),
            },
            repetition: 0,
            ...(a % 3 === 2 ? { consumerIndex: b % CONSUMERS } : {}),
            ...(b % 3 === 0 ? { startAt: b % 7 } : {}),
            ...(b % 3 === 0 && b % 7 > 1 ? { behind: [b % 7 - 2] } : {}),
          },
          ANYONE,
          { positionOf: () => undefined, isUnreadable: () => false, isClosed: () => false },
        );
        return;
      }
      case "release":
        return endClient(this, pick(state.clients, a)?.clientId ?? 0, "released", new Consumers());
      case "worker": {
        const name = `w${a % 3}`;
        const worker = {
          node: "n",
          path: `/${name}`,
          incarnation: `${1 + (b % 20 === 0 ? 1 : 0)}`,
        };
        const tasks = [...state.tasksOfWorker(name)].map(({ taskId }) => {
          return { taskId, completed: b % 10 === 1 };
        });
        workerHeartbeat(this, { name, worker, tags: [], tasks }, {
          source: worker,
          sender: SAME_PROCESS,
        });
        return;
      }
      case "lose":
        if (state.workers.get(`w${a % 3}`)?.alive) loseWorker(this, `w${a % 3}`);
        return;
      case "list": {
        if (iteration === undefined || iteration.splits !== null) return;
        const bounds = packSplits(tableOf(12));
        const { iterationId } = iteration;
        this.append({ type: "splits_listed", iterationId, bounds, digest: digestOfSplits(bounds) });
        return;
      }
      case "split": {
        const taskId = pick(state.tasks, a)?.taskId ?? 0;
        const spare = b % 3 === 0;
        const key = `${taskId} ${spare}`;
        const number = (this.#numbers.get(key) ?? 0) + 1;
        this.#numbers.set(key, number);
        const request = { taskId, number, source: 0, repetition: 0, spare };
        assignSplit(this, request, WINDOW_SPLITS);
        return;
      }
      case "received": {
        if (iteration?.splits == null) return;
        const client = pick(
          new Map([...state.clientsOfIteration(iteration.iterationId)].entries()),
          b,
        );
        if (client === undefined) return;
        const { mark, next, consumers } = iteration.ordered!;
        const own = consumers?.reading[client.consumerIndex ?? 0]?.mark ?? mark;
        const to = Math.max(own, Math.min(next, own + a % 3));
        const done = b % 2 === 0 ? [] : [to + 1].filter((at) => at < next);
        noteReceived(this, iteration, client, { mark: to, done }, QUOTAS);
      }
    }
  }
}

type Command = readonly [typeof KINDS[number], number, number];

const KINDS = [
  "open",
  "release",
  "worker",
  "worker",
  "lose",
  "list",
  "list",
  "split",
  "split",
  "split",
  "received",
  "received",
] as const;

export const COMMANDS = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.nat(50), fc.nat(50)), {
  minLength: 40,
  maxLength: 200,
  size: "max",
});

function pick<K, V>(map: ReadonlyMap<K, V>, number: number): V | undefined {
  return [...map.values()][number % Math.max(1, map.size)];
}
