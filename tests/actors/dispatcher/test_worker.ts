/** A worker, for tests of the dispatcher. */
import type { TaskStatus } from "../../../actors/dispatcher/protocol.ts";
import type { AnswerOf } from "../../../actors/runtime/protocol.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import type { ElementSourceProtocol, WorkerProtocol } from "../../../actors/worker/protocol.ts";
import { sleep } from "../../../actors/runtime/timers.ts";
import { LeatError } from "../../../core/error.ts";
import { packSplits } from "../../../data/sharding/split_table.ts";
import type { SplitTable } from "../../../data/sharding/splits.ts";
import type { TestCluster } from "./lib.ts";

/** A worker actor that runs nothing. */
export class TestWorker {
  readonly name: string;
  readonly ref: FencedRef<WorkerProtocol>;
  /** What it says of its tasks at heartbeats. */
  readonly tasks = new Map<number, TaskStatus>();
  /** What listing splits answers; an error is thrown. */
  table: SplitTable | LeatError;
  /** What beginning a save answers; it fails without, and an error is thrown. */
  begun: AnswerOf<WorkerProtocol, "beginSave"> | LeatError | undefined;
  /** What listing splits and beginning a save wait for. */
  listing: Promise<void> | undefined;
  /** How long each listing takes, in ms. */
  takesMs = 0;
  /** What it says of where it is. */
  place: { tags?: string[]; process?: string; isPrivate?: boolean } = {};
  listings = 0;
  /** The identities whose jobs it has listed splits for. */
  readonly listedFor: string[] = [];
  wakes = 0;
  /** Who has asked for its name. */
  readonly wantedBy: string[] = [];
  /** What answering that waits for. */
  stuck: Promise<void> | undefined;
  readonly #cluster: TestCluster;

  constructor(cluster: TestCluster, name: string, table: SplitTable, actor = name) {
    this.#cluster = cluster;
    this.name = name;
    this.table = table;
    this.ref = cluster.system.spawn<WorkerProtocol>({
      name: actor,
      create: (context) => ({
        handlers: {
          listSplits: async ({ owner }) => {
            this.listings++;
            this.listedFor.push(owner);
            await this.listing;
            if (this.takesMs > 0) await sleep(context, this.takesMs);
            if (this.table instanceof LeatError) throw this.table;
            return { bounds: isTable(this.table) ? packSplits(this.table) : this.table as never };
          },
          beginSave: async () => {
            await this.listing;
            if (this.begun instanceof LeatError) throw this.begun;
            if (this.begun !== undefined) return this.begun;
            throw new LeatError("unimplemented", "It saves nothing");
          },
          nameWanted: async ({ by }) => {
            this.wantedBy.push(by);
            await this.stuck;
            return null;
          },
          drain: () => true,
          leave: () => null,
          wake: () => {
            this.wakes++;
            return null;
          },
        },
      }),
    });
  }

  /** Heartbeats until there is no news, taking up new tasks as ready and dropping ended ones. */
  async heartbeat(): Promise<number[]> {
    let follows: string | undefined;
    for (;;) {
      const answer = await this.#cluster.ask("workerHeartbeat", {
        name: this.name,
        worker: this.ref,
        tags: [],
        ...this.place,
        ...(follows === undefined ? {} : { follows }),
        tasks: [...this.tasks.values()],
      });
      if (answer.kind === "takeover") {
        follows = answer.incarnation;
        continue;
      }
      const { newTasks, endedTasks } = answer;
      for (const taskId of endedTasks) this.tasks.delete(taskId);
      for (const { taskId } of newTasks) {
        this.tasks.set(taskId, { taskId, source: this.sourceOf(taskId), completed: false });
      }
      if (newTasks.length === 0) return [...this.tasks.keys()];
    }
  }

  /** Says good-bye, as a worker that was drained. */
  async leave(): Promise<void> {
    await this.#cluster.ask("workerHeartbeat", {
      name: this.name,
      worker: this.ref,
      tags: [],
      ...this.place,
      tasks: [...this.tasks.values()],
      leaving: true,
    });
  }

  /** Says at the next heartbeat that the task has produced everything. */
  complete(taskId: number): void {
    this.tasks.set(taskId, { ...this.tasks.get(taskId)!, completed: true });
  }

  sourceOf(taskId: number): FencedRef<ElementSourceProtocol> {
    return { node: "test", path: `/${this.name}/task-${taskId}`, incarnation: "1" };
  }

  /** The worker ends and begins anew under the same name. */
  async reborn(): Promise<TestWorker> {
    await this.#cluster.system.stopActor(this.ref.path.slice(1));
    const table = this.table instanceof LeatError ? [[]] : this.table;
    return new TestWorker(this.#cluster, this.name, table);
  }
}

/** Whether the bounds of its splits can be told; a hostile worker tells anything. */
function isTable(table: unknown): table is SplitTable {
  return Array.isArray(table) &&
    table.every((splits) =>
      Array.isArray(splits) &&
      splits.every((split) => split?.start >= 0 && split.stop >= split.start)
    );
}
