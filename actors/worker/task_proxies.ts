/** The caches and schedulers in front of a worker's tasks. */
import { LeatError } from "../../core/error.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import type { ActorContext } from "../runtime/actor.ts";
import { nodeActorOf } from "../runtime/node/node_actor.ts";
import type { FencedRef } from "../runtime/ref.ts";
import type { HeldTask } from "./held_task.ts";
import type { CacheProtocol, ElementSourceProtocol, WorkerProtocol } from "./protocol.ts";
import type { WorkerOptions } from "./worker_options.ts";

/** How long another node may take to start a cache or scheduler, in ms. */
const PLACE_TIMEOUT_MS = 30_000;
/** How long one request to that node may go unanswered before it is sent again, in ms. */
const ATTEMPT_MS = 2_000;

export class TaskProxies {
  readonly #context: ActorContext<WorkerProtocol>;
  readonly #options: WorkerOptions;
  readonly #tasks: ReadonlyMap<number, HeldTask>;

  constructor(
    context: ActorContext<WorkerProtocol>,
    options: WorkerOptions,
    tasks: ReadonlyMap<number, HeldTask>,
  ) {
    this.#context = context;
    this.#options = options;
    this.#tasks = tasks;
  }

  /** The actor that clients of the task read: the task itself, or its cache or scheduler. */
  async sourceFor(held: HeldTask): Promise<FencedRef<ElementSourceProtocol>> {
    const { task, definition: { parameters } } = held;
    const { skipAfterMs = 100, roundsBytesMax } = this.#options;
    if (parameters.sharing) {
      const config = {
        task,
        windowBytesMax: this.#windowShare,
        elementBytesMax: Math.max(1, this.#windowBytesMax),
      };
      return await this.#place(held, "cache", config);
    }
    const isOrdered = parameters.processingMode === ShardingPolicy.DETERMINISTIC;
    if (parameters.numConsumers !== undefined && !isOrdered) {
      const config = {
        ...{ task, numConsumers: parameters.numConsumers, skipAfterMs },
        ...(roundsBytesMax === undefined ? {} : { heldBytesMax: roundsBytesMax }),
      };
      return await this.#place(held, "reads", config);
    }
    return task;
  }

  get #sharedTasks(): HeldTask[] {
    return [...this.#tasks.values()].filter(({ definition }) => definition.parameters.sharing);
  }

  get #windowBytesMax(): number {
    return this.#options.windowBytesMax ?? 2 ** 30;
  }

  get #windowShare(): number {
    // At least 1 byte, even if there are more tasks than bytes.
    return Math.max(1, Math.floor(this.#windowBytesMax / Math.max(1, this.#sharedTasks.length)));
  }

  /** Divides the memory for windows evenly between the caches. */
  divideWindows(): void {
    const windowBytesMax = this.#windowShare;
    for (const { source } of this.#sharedTasks) {
      if (source === undefined) continue;
      this.#context.tell(source as FencedRef<CacheProtocol>, "resize", { windowBytesMax });
    }
  }

  async #place(
    held: HeldTask,
    kind: "cache" | "reads",
    config: unknown,
  ): Promise<FencedRef<ElementSourceProtocol>> {
    const { placement = {}, proxies } = this.#options;
    const { key } = held;
    const node = placement[kind];
    if (node === undefined || node === this.#context.self.node) {
      const spec = { ...proxies[kind](config), name: `${kind}-${key}`, kind };
      return this.#context.spawn<ElementSourceProtocol>(spec);
    }
    const name = `${kind}-${this.#context.self.incarnation}-${key}`;
    held.placed = { node, name };
    const request = { kind, name, config, owner: held.task };
    return await this.#context.ask(nodeActorOf(node), "spawn", request, {
      timeoutMs: PLACE_TIMEOUT_MS,
      attemptMs: ATTEMPT_MS,
    }) as FencedRef<ElementSourceProtocol>;
  }

  /** Stops a cache or scheduler on another node. If this request is lost, it ends with its task. */
  async unplace({ placed }: HeldTask): Promise<void> {
    if (placed === undefined) return;
    const { node, name } = placed;
    try {
      await this.#context.ask(nodeActorOf(node), "stop", { name }, {
        timeoutMs: ATTEMPT_MS,
      });
    } catch (error) {
      this.#context.world.log("warn", `Could not stop ${name} on ${node}`, {
        error: LeatError.from(error).message,
      });
    }
  }
}
