/** The trainer actor: a training loop with a simulated accelerator, on a separate thread. */

import os from "node:os";
import process from "node:process";
import type { Actor, ActorContext } from "../../actors/runtime/actor.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import { LeatError } from "../../core/error.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { type Dataset, type DatasetIterator, Tensor } from "../../mod.ts";
import { DenoHost } from "../../platform/deno_host.ts";
import { workerFiles } from "../../platform/storage/storage.ts";
import { Accelerator, type BatchTokens, batchTokens, stepTimeMs } from "./accelerator.ts";
import { pipelineOf } from "./pipelines.ts";
import {
  epochMs,
  type OpenRequest,
  type TrainerProtocol,
  type TrainRequest,
  type TrainResult,
} from "./trainer_protocol.ts";

/** How many batches a colocated pipeline prepares ahead of the accelerator. */
const PREFETCH_BATCHES = 2;
/** Shortest time between two progress messages, in ms. */
const PROGRESS_INTERVAL_MS = 100;
/** Longest warm-up, in ms. */
const WARMUP_MS_MAX = 20_000;
/** Time limit for the other trainers to end a step, in ms. */
const BARRIER_TIMEOUT_MS = 120_000;

/** Creates a trainer that reads from a service. */
export function createTrainer(
  context: ActorContext<TrainerProtocol>,
  system: ActorSystem,
  service: string,
): Actor<TrainerProtocol> {
  const trainer = new Trainer(context, service);
  const stopInspecting = system.inspect((event) => trainer.inspect(event));
  return {
    handlers: {
      open: (request) => trainer.open(request).then(() => null),
      train: (request) => trainer.train(request),
      close: () => trainer.close().then(() => null),
    },
    async stop() {
      stopInspecting();
      await trainer.close();
    },
  };
}

class Trainer {
  readonly #context: ActorContext;
  readonly #service: string;
  #accelerator = new Accelerator();
  #arrivals: Record<string, number[]> = {};
  #iterator: DatasetIterator<unknown> | undefined;
  #first: IteratorResult<unknown, undefined> | undefined;
  #reportedMs = 0;

  constructor(context: ActorContext, service: string) {
    this.#context = context;
    this.#service = service;
  }

  async open(request: OpenRequest): Promise<void> {
    const files = workerFiles({ storageLatencyMs: request.storageLatencyMs });
    await this.close();
    this.#arrivals = {};
    this.#iterator = openIterator(this.#dataset(request).node, { host: new DenoHost({ files }) });
    this.#first = await this.#iterator.next();
  }

  async train(request: TrainRequest): Promise<TrainResult> {
    const { warmupMs = 0, warmupNodes = 0, ...counted } = request;
    if (warmupMs > 0) {
      const isWarm = (elapsedMs: number) =>
        elapsedMs >= warmupMs && Object.keys(this.#arrivals).length >= warmupNodes ||
        elapsedMs >= WARMUP_MS_MAX;
      await this.#run({ step: request.step }, isWarm);
    }
    const { batches = Infinity, durationMs = Infinity } = counted;
    // A rate needs a batch, also if this thread stood still for the whole time.
    const isOver = (elapsedMs: number, count: number) =>
      count >= batches || elapsedMs >= durationMs && count > 0;
    return await this.#run(counted, isOver);
  }

  async close(): Promise<void> {
    const iterator = this.#iterator;
    this.#iterator = undefined;
    this.#first = undefined;
    await iterator?.return();
  }

  /** Records from which node a batch arrives, because the batch itself does not name its node. */
  inspect(event: InspectionEvent): void {
    if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
    const { body, source } = event.envelope;
    if ((body as { kind?: unknown } | null)?.kind !== "element") return;
    (this.#arrivals[source.node] ??= []).push(epochMs());
  }

  #dataset({ pipeline, place, distribute }: OpenRequest): Dataset<unknown> {
    const dataset = pipelineOf(pipeline);
    switch (place) {
      case "colocated":
        return dataset.prefetch(PREFETCH_BATCHES);
      case "service":
        return dataset.distribute({ ...distribute, service: this.#service });
      case "ideal":
        return dataset.take(1).cache().repeat();
    }
  }

  async #run(
    request: TrainRequest,
    isOver: (elapsedMs: number, batches: number) => boolean,
  ): Promise<TrainResult> {
    const { record = false } = request;
    // A new accelerator, because it must not compensate for the lateness of warm-up steps.
    this.#accelerator = new Accelerator();
    const run = new Run();
    while (!isOver(run.elapsedMs, run.batches)) {
      const batch = await run.waiting(() => this.#next());
      if (batch.done === true) break;
      const tokens = tokensOf(batch.value);
      run.stepped(await this.#step(request, tokens), tokens);
      if (record) run.ids.push(...idsOf(batch.value));
      this.#report(request, run);
    }
    return run.result(record ? this.#arrivals : {});
  }

  async #next(): Promise<IteratorResult<unknown, undefined>> {
    if (this.#iterator === undefined) {
      throw new LeatError("failed_precondition", "The trainer has nothing to read; open it first");
    }
    const first = this.#first;
    this.#first = undefined;
    return first ?? await this.#iterator.next();
  }

  async #step({ step, barrier }: TrainRequest, tokens: BatchTokens): Promise<StepTimes> {
    const ownMs = stepTimeMs(step, tokens.padded);
    if (barrier === undefined) {
      await this.#accelerator.step(ownMs, this.#context.signal);
      return { ownMs, stepMs: ownMs };
    }
    const request = { durationMs: ownMs };
    const options = { timeoutMs: BARRIER_TIMEOUT_MS };
    const { stepMs } = await this.#context.ask(barrier, "step", request, options);
    return { ownMs, stepMs };
  }

  #report({ monitor }: TrainRequest, { batches, elapsedMs, waitedMs }: Run): void {
    const nowMs = performance.now();
    if (monitor === undefined || nowMs - this.#reportedMs < PROGRESS_INTERVAL_MS) return;
    this.#reportedMs = nowMs;
    const trainer = this.#context.self.node;
    this.#context.tell(monitor, "progressed", { trainer, batches, elapsedMs, waitedMs });
  }
}

/** The step time of this trainer alone, and of the slowest synchronous trainer, in ms. */
interface StepTimes {
  readonly ownMs: number;
  readonly stepMs: number;
}

/** Records the measurements of a run. */
class Run {
  batches = 0;
  waitedMs = 0;
  readonly #startMs = performance.now();
  readonly #cpuAtStart = process.cpuUsage();
  readonly #hostBusyAtStart = hostBusyMs();
  readonly #tokens = { real: 0, padded: 0 };
  readonly #stepTimesMs: number[] = [];
  readonly ids: string[] = [];
  #ownStepsMs = 0;
  #stepsMs = 0;
  #steppedMs = this.#startMs;

  get elapsedMs(): number {
    return performance.now() - this.#startMs;
  }

  async waiting<T>(read: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const batch = await read();
    this.waitedMs += performance.now() - startMs;
    return batch;
  }

  stepped({ ownMs, stepMs }: StepTimes, tokens: BatchTokens): void {
    const nowMs = performance.now();
    this.batches++;
    this.#tokens.real += tokens.real;
    this.#tokens.padded += tokens.padded;
    this.#ownStepsMs += ownMs;
    this.#stepsMs += stepMs;
    this.#stepTimesMs.push(nowMs - this.#steppedMs);
    this.#steppedMs = nowMs;
  }

  /** Returns the result. Its `elapsedMs` ends with the last step. */
  result(arrivals: TrainResult["arrivals"]): TrainResult {
    const { user, system } = process.cpuUsage(this.#cpuAtStart);
    return {
      batches: this.batches,
      elapsedMs: this.#steppedMs - this.#startMs,
      waitedMs: this.waitedMs,
      cpuMs: (user + system) / 1000,
      hostBusyCores: (hostBusyMs() - this.#hostBusyAtStart) / Math.max(1, this.elapsedMs),
      tokens: this.#tokens,
      stepTimesMs: this.#stepTimesMs,
      ownStepsMs: this.#ownStepsMs,
      stepsMs: this.#stepsMs,
      ids: this.ids,
      arrivals,
    };
  }
}

/** Returns the busy time of all cores of the host together, in ms. */
function hostBusyMs(): number {
  return os.cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq)
    .reduce((sum, time) => sum + time, 0);
}

/** Counts the tokens of a batch `{ tokens, length }`. Any other batch has none. */
function tokensOf(batch: unknown): BatchTokens {
  const { tokens, length } = batch as { tokens?: unknown; length?: unknown };
  if (!(tokens instanceof Tensor) || !(length instanceof Tensor)) return { real: 0, padded: 0 };
  return batchTokens(length.data as Float64Array, tokens.shape[1]);
}

/** Returns the names in a batch `{ id }`. Any other batch has none. */
function idsOf(batch: unknown): readonly string[] {
  const { id } = batch as { id?: unknown };
  return id instanceof Tensor ? id.data as unknown as readonly string[] : [];
}
