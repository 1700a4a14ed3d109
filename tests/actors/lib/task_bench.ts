/** One node with a task on it, for tests of caches, schedulers and readers of tasks. */
import {
  dispatcherAt,
  type DispatcherProtocol,
  type TaskDefinition,
} from "../../../actors/dispatcher/protocol.ts";
import type { ActorContext, ChildSpec } from "../../../actors/runtime/actor.ts";
import type { RequestOf } from "../../../actors/runtime/protocol.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import type { World } from "../../../actors/runtime/world.ts";
import { PipelineRunners } from "../../../actors/worker/runner/pipeline_runner.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../../../actors/worker/protocol.ts";
import type { RunnerFactory } from "../../../actors/worker/runner/runner.ts";
import {
  ACKNOWLEDGED_WITHIN_MS,
  AHEAD_BYTES_MAX,
  createTask,
  type TaskProtocol,
} from "../../../actors/worker/tasks/task.ts";
import { createOrderedTask } from "../../../actors/worker/tasks/ordered_task.ts";
import { type Dataset, ShardingPolicy } from "../../../mod.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";

/** The number of deaths after which no other runner is allowed. */
const RUNNER_DEATHS_MAX = 3;

/** A node, a task on it, and a way to send requests. */
export class TaskBench implements AsyncDisposable {
  readonly system: ActorSystem;
  readonly task: FencedRef<ElementSourceProtocol>;
  readonly #runners: RunnerFactory;
  readonly #sequences = new Map<string, number>();
  /** Per client, the requests without an answer. */
  readonly #waiting = new Map<string, Set<number>>();
  completed = false;
  unreadable = false;
  fenced = false;
  /** Reported deaths of runners; the dispatcher allows another runner after each but the last. */
  readonly deaths: RequestOf<DispatcherProtocol, "runnerDied">[] = [];

  constructor(
    dataset: Dataset<unknown>,
    {
      sharing = false,
      ordered = false,
      aheadBytesMax = AHEAD_BYTES_MAX,
      runnersOf = asIs,
      world = new DenoWorld({ logLevel: "off" }),
    }: {
      readonly sharing?: boolean;
      /** A task of a DETERMINISTIC job, whose dispatcher has splits without end. */
      readonly ordered?: boolean;
      readonly aheadBytesMax?: number;
      readonly runnersOf?: (runners: RunnerFactory) => RunnerFactory;
      readonly world?: World;
    } = {},
  ) {
    this.system = new ActorSystem({ node: "bench", world });
    this.#runners = runnersOf(new PipelineRunners(new DenoHost()));
    const definition: TaskDefinition = {
      clusterId: "cluster",
      taskId: 1,
      iterationId: 1,
      jobId: 1,
      owner: "a",
      repetition: 0,
      seed: "0000000000000001",
      dataset: { datasetId: "d", graph: dataset.serialize(), fingerprint: "f", cardinality: -2 },
      parameters: {
        datasetId: "d",
        processingMode: ordered ? "DETERMINISTIC" : ShardingPolicy.OFF,
        sharing,
      },
    };
    let splits = 0;
    this.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: {
          runnerDied: (request: RequestOf<DispatcherProtocol, "runnerDied">) => ({
            mayStart: this.deaths.push(request) < RUNNER_DEATHS_MAX,
          }),
          getSplit: ({ spare }: RequestOf<DispatcherProtocol, "getSplit">) => {
            const index = splits++;
            const split = { start: index, stop: index + 1, index, sequence: index };
            return spare === true ? new Promise(() => {}) : { split, total: 2 ** 32 };
          },
        } as never,
      }),
    });
    this.task = this.system.spawn<TaskProtocol>({
      name: "task",
      create: (context) =>
        (ordered ? createOrderedTask : createTask)(context, {
          definition,
          dispatcher: dispatcherAt("bench"),
          runners: this.#runners,
          dispatcherTimeoutMs: 60_000,
          aheadBytesMax,
          acknowledgedWithinMs: ACKNOWLEDGED_WITHIN_MS,
          onCompleted: () => this.completed = true,
          onFailed: () => this.unreadable = true,
          onFenced: () => this.fenced = true,
        }),
    });
  }

  spawn<P extends ElementSourceProtocol = ElementSourceProtocol>(
    spec: Omit<ChildSpec<P>, "create"> & {
      readonly create: (context: ActorContext<P>) => ReturnType<ChildSpec<P>["create"]>;
    },
  ): FencedRef<P> {
    return this.system.spawn<P>(spec);
  }

  /** Asks for the next element of a client, acknowledging all those before it that have come. */
  async get(
    source: FencedRef<ElementSourceProtocol>,
    clientId: number,
    more: Pick<
      GetElementRequest,
      "trainerId" | "consumerIndex" | "round" | "floor" | "absent" | "waitMs"
    > = {},
  ): Promise<ElementAnswer> {
    const key = `${source.path} ${clientId}`;
    const sequence = (this.#sequences.get(key) ?? 0) + 1;
    this.#sequences.set(key, sequence);
    const waiting = this.#waiting.getOrInsertComputed(key, () => new Set());
    const acknowledged = Math.min(sequence, ...waiting) - 1;
    waiting.add(sequence);
    const request = { clientId, sequence, acknowledged, ...more };
    const answer = await this.system.ask(source, "getElement", request, { timeoutMs: 60_000 });
    waiting.delete(sequence);
    return answer;
  }

  /** Resolves when the task says that it is drained. */
  async drain(): Promise<void> {
    await this.system.ask(this.task as FencedRef<TaskProtocol>, "drain", null, {
      timeoutMs: 60_000,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.system.stop();
    await this.#runners.close();
  }
}

function asIs(runners: RunnerFactory): RunnerFactory {
  return runners;
}

/** The element of an answer, or a word for its kind. */
export function opened(answer: ElementAnswer): unknown {
  if (answer.kind === "element") return decodeMessage(answer.element.bytes);
  return answer.kind === "error" ? answer.error.message : answer.kind;
}
