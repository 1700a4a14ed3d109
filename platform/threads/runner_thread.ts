/** The program of a runner's thread. */
import * as comlink from "comlink";
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import { lazyFactory } from "../../data/iterators/lazy_iterator.ts";
import { registerServed } from "../../data/node.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";
import { PipelineRunner, PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type {
  CompressionWish,
  OwnStep,
  RunnerOutcome,
  RunnerSettings,
} from "../../actors/worker/runner/runner.ts";
import { FramePool } from "../../transport/codec.ts";
import { DenoHost, workerHost } from "../deno_host.ts";
import { decoderPool } from "../media/jpeg/decoder_pool.ts";
import type { PythonBatch } from "../python/python_pool.ts";
import { guardExits } from "./exit_guard.ts";
import type { WireSplits } from "./wire_splits.ts";
import type { ServiceCredentials } from "../nodes/client_homes.ts";
import type { WorkerStorage } from "../storage/storage.ts";

/** The result of listing splits; errors keep their code when they are sent as data. */
interface ListedSplits {
  readonly bounds: SplitBounds;
  readonly error?: WireError;
}

/** A request of `Runner.next`. It uses a port of its own, because a comlink call costs more. */
export interface StepRequest {
  readonly only: OwnStep | undefined;
  readonly wish: CompressionWish | undefined;
  /** The memory of earlier elements, which the thread uses again. */
  readonly spent: readonly ArrayBuffer[];
}

/** The answer to a `StepRequest`; `error` if the step itself failed. */
export type StepAnswer =
  | { readonly outcome: RunnerOutcome; readonly bytesRead: number }
  | { readonly error: WireError };

export class RunnerThreadControl {
  #host = new DenoHost({ threads: false });
  /** Aborts the Python calls of the pipeline that runs here. */
  #pythonCalls = new AbortRace();
  #runner: PipelineRunner | undefined;
  #splits: comlink.Remote<WireSplits> | undefined;
  #splitsPort: MessagePort | undefined;
  #stepsPort: MessagePort | undefined;
  #pool = new FramePool();

  configure(storage: WorkerStorage): void {
    const { services } = storage;
    registerServices(services);
    this.#host = workerHost(storage, {
      // Elements leave this thread as bytes.
      sharesBatches: true,
      pythonPool: { run: (batch) => this.#pythonCalls.race(this.#callPython(batch)), close() {} },
    });
  }

  start(settings: RunnerSettings, splitsPort: MessagePort, stepsPort: MessagePort): void {
    this.#splitsPort = splitsPort;
    this.#stepsPort = stepsPort;
    stepsPort.onmessage = ({ data }: MessageEvent<StepRequest>) => this.#answer(stepsPort, data);
    const splits = this.#splits = comlink.wrap<WireSplits>(splitsPort);
    this.#runner = new PipelineRunner(
      settings,
      {
        async next(source, repetition) {
          const answer = await splits.next(source, repetition);
          if (answer.error !== undefined) throw LeatError.fromWire(answer.error);
          return answer.split;
        },
        total: (source) => splits.total(source),
        async read(split, from) {
          const { frame, error } = await splits.read(split, from);
          if (error !== undefined) throw LeatError.fromWire(error);
          return frame;
        },
      },
      this.#host,
      { pool: this.#pool, betweenSteps: () => this.#host.yield() },
    );
  }

  /** Runs a step and sends its outcome. The runner runs steps in order. */
  async #answer(port: MessagePort, { only, wish, spent }: StepRequest): Promise<void> {
    const runner = this.#runner!;
    for (const buffer of spent) this.#pool.give(buffer);
    try {
      const outcome = await runner.next(only, wish);
      const answer: StepAnswer = { outcome, bytesRead: runner.bytesRead };
      const buffer = "frame" in outcome ? outcome.frame.buffer : undefined;
      port.postMessage(answer, buffer instanceof ArrayBuffer ? [buffer] : []);
    } catch (error) {
      port.postMessage({ error: LeatError.from(error).toWire() } satisfies StepAnswer);
    }
  }

  async listSplits(graph: Uint8Array): Promise<ListedSplits> {
    try {
      return { bounds: await new PipelineRunners(this.#host).listSplits(graph) };
    } catch (error) {
      return { bounds: [], error: LeatError.from(error).toWire() };
    }
  }

  async #callPython(batch: PythonBatch): Promise<Uint8Array> {
    if (this.#splits === undefined) {
      throw new LeatError("failed_precondition", "No pipeline runs here");
    }
    const answer = await this.#splits.python(
      comlink.transfer(batch, [batch.calls.buffer as ArrayBuffer]),
    );
    if (answer.error !== undefined) throw LeatError.fromWire(answer.error);
    return answer.outcomes;
  }

  /** Disposes of the pipeline. Resolves to whether the thread keeps modules that pipelines imported. */
  async retire(): Promise<boolean> {
    this.#runner?.dispose();
    this.#runner = undefined;
    this.#pool = new FramePool();
    // Without this, comlink would leak the port and a pipeline that waits for a split.
    this.#splits?.[comlink.releaseProxy]();
    this.#splits = undefined;
    this.#splitsPort?.close();
    this.#splitsPort = undefined;
    this.#stepsPort?.close();
    this.#stepsPort = undefined;
    this.#pythonCalls.abort(
      new LeatError("cancelled", "The pipeline that called the Python function was closed"),
    );
    this.#pythonCalls = new AbortRace();
    // The thread may be terminated after this, and terminating frees no native memory.
    await decoderPool.empty();
    return this.#host.hasImported;
  }
}

/**
 * Registers the iterators of pipelines that read from a service. Their module is loaded lazily: a
 * client and its sockets are a third of a thread's code, and rarely needed.
 */
function registerServices(services: ServiceCredentials | undefined): void {
  const served = lazyFactory(async () => {
    // With a literal in `import()`, Deno would process the client's modules for every thread.
    const module: typeof import("../nodes/served_iterators.ts") = await import(
      import.meta.resolve("../nodes/served_iterators.ts")
    );
    return module.servedIterators(services);
  });
  registerServed(served);
}

guardExits((call) =>
  `Code of the pipeline called ${call}, which would end its thread: throw an error instead`
);

addEventListener("message", (event) => {
  comlink.expose(new RunnerThreadControl(), (event as MessageEvent<MessagePort>).data);
}, { once: true });
