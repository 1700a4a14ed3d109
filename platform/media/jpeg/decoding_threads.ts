/**
 * Threads that decode JPEGs and transform the pixels. The asking thread only copies an image in and
 * out: without them, it would resize all images itself, and no more cores would help.
 */

import { type MessagePort as NodePort, Worker } from "node:worker_threads";
import { LeatError } from "../../../core/error.ts";
import { type PackedError, unpackError } from "../../../data/threads/packed_error.ts";
import type { DecodePlan } from "../decode_plan.ts";
import type { Region } from "../image_format.ts";

/** What a thread decodes. All memory is native, and stays until the thread has answered. */
export interface DecodingTask {
  /** The address of the decompressor, which has read the header. */
  readonly handle: bigint;
  readonly file: bigint;
  readonly fileBytes: bigint;
  /** Where the decoder's pixels go, of this part of the image. */
  readonly pixels: bigint;
  readonly region: Region;
  /** A number of `enum TJPF`. */
  readonly pixelFormat: number;
  readonly plan: DecodePlan;
  /** Where the image goes. */
  readonly made: bigint;
}

export interface DecodingRequest extends DecodingTask {
  readonly number: number;
}

/** What the library has returned, or why the image could not be transformed. */
export interface DecodingAnswer {
  readonly number: number;
  readonly status?: number;
  readonly error?: PackedError;
}

/** Before the first thread starts, the asking thread has transformed images for so long, in ms. */
const COLD_WORK_MS = 200;
/** Address space for the generated code of a thread, in MiB. */
const CODE_RANGE_MIB = 16;
/** Address space of a thread in all, with a margin, in bytes. */
const THREAD_BYTES = 96 * 2 ** 20;
/** While more threads start, one has so many tasks. */
const TASKS_PER_THREAD = 2;

/** The threads that decode for one thread: at most `max`, as many as there was work for at once. */
export class DecodingThreads {
  #max: number;
  readonly #threads = new Set<DecodingThread>();
  #workedMs = 0;
  #decoded = 0;
  /** Set when a thread could not start. */
  #isOff: boolean;

  constructor(max: number) {
    this.#max = max;
    this.#isOff = max < 2;
  }

  /** Starts no more than fit half of the memory that the process may take. */
  fit(memoryBytesMax: number): void {
    this.#max = Math.min(this.#max, Math.floor(memoryBytesMax / 2 / THREAD_BYTES));
  }

  /** Notes for how long the asking thread has transformed an image. */
  worked(ms: number): void {
    this.#workedMs += ms;
  }

  /** How many can decode. */
  get ready(): number {
    return [...this.#threads].filter(({ isReady }) => isReady).length;
  }

  /** How many images were given to threads. */
  get decoded(): number {
    return this.#decoded;
  }

  /**
   * Decodes on the thread that has least to do, and resolves to what the library returned. Undefined
   * where none is there yet, or too few are.
   */
  decode(task: DecodingTask): Promise<number> | undefined {
    if (this.#isOff || this.#workedMs < COLD_WORK_MS) return undefined;
    let best: DecodingThread | undefined, isStarting = false;
    for (const thread of this.#threads) {
      if (!thread.isReady) isStarting = true;
      else if (best === undefined || thread.tasks < best.tasks) best = thread;
    }
    const isGrowing = this.#threads.size < this.#max;
    if (isGrowing && !isStarting && (best === undefined || best.tasks > 0)) this.#start();
    if (best === undefined) return undefined;
    const isFull = (isGrowing || isStarting) && best.tasks >= TASKS_PER_THREAD;
    if (isFull) return undefined;
    this.#decoded++;
    return best.decode(task);
  }

  /** Ends all threads once they have no tasks. Others start when there is work again. */
  async close(): Promise<void> {
    this.#workedMs = 0;
    this.#isOff = this.#max < 2;
    const threads = [...this.#threads];
    this.#threads.clear();
    await Promise.all(threads.map((thread) => thread.close()));
  }

  #start(): void {
    try {
      const thread: DecodingThread = new DecodingThread(() => {
        const isClosed = !this.#threads.delete(thread);
        if (!isClosed && !thread.isReady) this.#isOff = true;
      });
      this.#threads.add(thread);
    } catch {
      // A program without permission to read Leat's own files goes on without threads.
      this.#isOff = true;
    }
  }
}

class DecodingThread {
  readonly #worker: Worker;
  /** Of the web: a port of node is slow in Deno. */
  readonly #port: MessagePort;
  readonly #onEnded: () => void;
  readonly #asked = new Map<number, PromiseWithResolvers<number>>();
  #numbers = 0;
  #hasEnded = false;
  isReady = false;

  constructor(onEnded: () => void) {
    this.#onEnded = onEnded;
    this.#worker = new Worker(new URL("./decoding_thread_entry.ts", import.meta.url), {
      name: "leat-images",
      // By default the engine reserves half a gigabyte for each, which a process with a limit lacks.
      resourceLimits: { codeRangeSizeMb: CODE_RANGE_MIB },
    });
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }: MessageEvent<DecodingAnswer | "ready">) => {
      if (data === "ready") this.isReady = true;
      else this.#answered(data);
    };
    // Neither keeps the program alive; the worker does while it has tasks.
    (port1 as unknown as NodePort).unref();
    this.#worker.postMessage(port2, [port2 as unknown as NodePort]);
    this.#worker.on("error", ({ message }: Error) => this.#ended(message));
    this.#worker.on("exit", (code: number) => this.#ended(`it exited with code ${code}`));
    this.#worker.unref();
  }

  get tasks(): number {
    return this.#asked.size;
  }

  decode(task: DecodingTask): Promise<number> {
    const outcome = Promise.withResolvers<number>();
    const number = ++this.#numbers;
    if (this.#asked.size === 0) this.#worker.ref();
    this.#asked.set(number, outcome);
    this.#port.postMessage({ number, ...task } satisfies DecodingRequest);
    return outcome.promise;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#asked.values()].map(({ promise }) => promise));
    this.#ended("it was closed");
    await this.#worker.terminate();
  }

  #answered({ number, status, error }: DecodingAnswer): void {
    const asked = this.#asked.get(number);
    this.#asked.delete(number);
    if (this.#asked.size === 0) this.#worker.unref();
    if (status === undefined) asked?.reject(unpackError(error!));
    else asked?.resolve(status);
  }

  #ended(why: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#port.close();
    const error = new LeatError("internal", `The thread that decoded the image has ended: ${why}`);
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
    this.#onEnded();
  }
}

export const decodingThreads: DecodingThreads = new DecodingThreads(navigator.hardwareConcurrency);
