/**
 * A small cluster that reads a random pipeline in a random mode (DYNAMIC, OFF or DETERMINISTIC)
 * with one to five workers and one or two clients.
 *
 * Promises under DETERMINISTIC: those of the ordered workload, including checkpoints, and the stream has
 * the values that the definitions of the operators give. In the other modes:
 * - No value is received more often than by these definitions (under OFF: per life of a worker), and no
 *   element is received more often than tasks have made it.
 * - An element of a living worker is lost only if a crashed client had requested it.
 * - If no operator counts elements and no worker has crashed, each value is made as often as defined. If
 *   no client has crashed either, it is received as often.
 * - Once the cluster has healed, every client reaches the end.
 */
import { LeatError } from "../../core/error.ts";
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { checkSplittable } from "../../data/sharding/splits.ts";
import { decodeMessage } from "../../transport/codec.ts";
import { BagChecker } from "../checkers/bag.ts";
import { Violations } from "../checkers/checker.ts";
import { HandoverChecker } from "../checkers/handover.ts";
import { SimCluster } from "../engine/cluster.ts";
import type { SimNode } from "../engine/node.ts";
import {
  type Bag,
  bagOf,
  drawPipeline,
  type RandomPipeline,
  valuesOf,
} from "../reference/random_pipelines.ts";
import { takeAll } from "./lib/reading.ts";
import { referenceRun, textOf } from "../reference/reference_stream.ts";
import { watchedRunners } from "../faults/runners_around.ts";
import { bootDispatcher, bootWorker, type WorkerSettings } from "../engine/service.ts";
import { TaskedWorkers } from "./lib/tasked_workers.ts";
import { type Trainer, Trainers } from "./lib/trainers.ts";
import { outcomeOf, type RunOptions, type RunOutcome } from "./workload.ts";
import { runOrderedOver } from "./workload_ordered.ts";

/** Names of workers. They may contain any characters. */
const WORKERS = ["worker-1", "wörker 2", "worker/3?x=#", "4", "worker|5"] as const;
const CLIENTS = ["client-1", "client 2 ☂"] as const;

const OUTSTANDING: [number, ...number[]] = [1, 4, 16];

export async function runPipelines(options: RunOptions): Promise<RunOutcome> {
  const rng = new SimCluster({ seed: options.seed }).random.fork("random pipeline");
  const pipeline = drawPipeline(rng);
  const drawn = rng.pick(["DYNAMIC", "OFF", "DETERMINISTIC"]) as ShardingPolicy;
  const isRefused = drawn === ShardingPolicy.DYNAMIC && !canBeSplit(pipeline);
  const mode = isRefused ? ShardingPolicy.OFF : drawn;
  const outcome = mode === ShardingPolicy.DETERMINISTIC
    ? await runInOrder(pipeline, 1 + rng.int(2), options)
    : await runWithoutOrder(pipeline, mode, options);
  const what = `${mode} of ${pipeline.text}`;
  return { ...outcome, violations: outcome.violations.map((each) => `${each} [${what}]`) };
}

/** Whether DYNAMIC accepts the pipeline: it refuses a `zip` that would pair what belongs apart. */
function canBeSplit({ make }: RandomPipeline): boolean {
  try {
    checkSplittable(make().node);
    return true;
  } catch (error) {
    if (error instanceof LeatError) return false;
    throw error;
  }
}

async function runWithoutOrder(
  pipeline: RandomPipeline,
  mode: ShardingPolicy,
  options: RunOptions,
): Promise<RunOutcome> {
  using run = new PipelineRun(options, pipeline, mode);
  return await outcomeOf(run, ({ bag }) => bag.delivered);
}

/** Runs under DETERMINISTIC. Also checks the reference stream against the definitions of the operators. */
async function runInOrder(
  { make, bag, isExact }: RandomPipeline,
  epochs: number,
  options: RunOptions,
): Promise<RunOutcome> {
  const wanted: string[] = [];
  const values: number[] = [];
  await referenceRun(make, epochs, (given) => {
    wanted.push(textOf(given));
    if ("error" in given) throw given.error;
    values.push(...valuesOf(given.element));
  });
  const outcome = await runOrderedOver({ make, epochs, areApart: false, wanted }, options);
  if (!isExact || isSame(bagOf(values), bag, epochs)) return outcome;
  return {
    ...outcome,
    violations: [
      ...outcome.violations,
      `definitions: the stream has ${values.length} values that differ from the operators' definitions`,
    ],
    checkers: [...outcome.checkers, "definitions"],
  };
}

function isSame(found: Bag, once: Bag, times: number): boolean {
  return found.size === once.size &&
    [...once].every(([value, count]) => found.get(value) === count * times);
}

class PipelineRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly bag: BagChecker;
  readonly #handover = new HandoverChecker(this.violations.by("handover"));
  /** The values of all elements that tasks have made. */
  readonly #made: number[] = [];
  readonly #pipeline: RandomPipeline;
  readonly #mode: ShardingPolicy;
  readonly #workers: readonly string[];
  readonly #trainers: Trainers;
  readonly #tasked = new TaskedWorkers();
  #workerLives = 0;

  constructor(options: RunOptions, pipeline: RandomPipeline, mode: ShardingPolicy) {
    this.#pipeline = pipeline;
    this.#mode = mode;
    this.cluster = new SimCluster(options);
    const rng = this.cluster.random.fork("pipelines");
    this.#workers = WORKERS.slice(0, 1 + rng.int(WORKERS.length));
    const clients = CLIENTS.slice(0, 1 + rng.int(CLIENTS.length));
    const { bag, pool, isExact } = pipeline;
    const isOff = mode === ShardingPolicy.OFF;
    this.bag = new BagChecker(
      isOff && isExact ? bag : pool,
      () => isOff ? this.#workerLives : 1,
      this.violations.by("values"),
    );
    this.#trainers = new Trainers({
      cluster: this.cluster,
      violations: this.violations,
      run: options,
      dispatcher: bootDispatcher(),
      workers: this.#workers,
      worker: (settings) => (node) => this.#bootWorker(node, settings),
      clients,
      train: (trainer) => this.#train(trainer),
      processingMode: mode,
      maxOutstandingRequests: rng.pick(OUTSTANDING),
    });
  }

  async toTheEnd(): Promise<void> {
    await this.#trainers.toTheEnd();
    this.#handover.expectAll();
    const { bag, isExact, isDivisible } = this.#pipeline;
    const isOff = this.#mode === ShardingPolicy.OFF;
    const haveWorkersLived = this.#workerLives === this.#workers.length;
    if (!haveWorkersLived || !(isOff ? isExact : isDivisible && isExact)) return;
    if (this.#trainers.haveLived) {
      return this.bag.expectAll(bag, isOff ? this.#tasked.count : 1);
    }
    // Under OFF it is unknown which workers joined before the last client reached the end.
    if (isOff || isSame(bagOf(this.#made), bag, 1)) return;
    this.violations.by("values").add(
      `tasks have made ${this.#made.length} values that differ from the operators' definitions`,
    );
  }

  [Symbol.dispose](): void {
    this.#trainers[Symbol.dispose]();
  }

  #bootWorker(node: SimNode, settings: WorkerSettings): void {
    this.#workerLives++;
    if (this.#mode === ShardingPolicy.OFF) this.#tasked.watch(node);
    const made = this.#handover.worker(node.lifetime());
    const onMade = (frame: Uint8Array) => {
      const element = decodeMessage(frame);
      made(textOf({ element }));
      this.#made.push(...valuesOf(element));
    };
    bootWorker(
      settings,
      (host) => watchedRunners(new PipelineRunners(host), onMade),
    )(node);
  }

  async #train({ who, open, step, node }: Trainer): Promise<void> {
    const handedOver = this.#handover.consumer(who, node.lifetime());
    node.system.inspect(handedOver.observe);
    await takeAll(open(this.#pipeline.make), async (element) => {
      handedOver.took(textOf({ element }));
      for (const value of valuesOf(element)) this.bag.took(value, who);
      await step(this.bag.delivered);
    });
  }
}
