/**
 * Threads that decode JPEGs and transform the pixels. The calling thread only copies images in and
 * out. Without these threads it would resize all images itself, on one core.
 */

import type { TypedArray } from "../../../core/dtype.ts";
import { AskedThread } from "../../threads/asked_thread.ts";
import type { DecodePlan } from "../decode_plan.ts";
import type { Region } from "../image_format.ts";

/** What a thread decodes. All native memory must stay until the thread has answered. */
export interface DecodingTask {
  /** The address of the decompressor, which has read the header. */
  readonly handle: bigint;
  readonly file: bigint;
  readonly fileBytes: bigint;
  /** Native memory for the decoder's pixels of `region`. */
  readonly pixels: bigint;
  readonly region: Region;
  /** A number of `enum TJPF`. */
  readonly pixelFormat: number;
  readonly plan: DecodePlan;
  /** Where the image goes: native memory, or an array of the plan's dtype in shared memory. */
  readonly result: bigint | TypedArray;
}

export interface DecodingRequest extends DecodingTask {
  readonly number: number;
}

/** Threads start after the calling thread has spent this long transforming images, in ms. */
const COLD_WORK_MS = 200;
/** Address space for the generated code of a thread, in MiB. */
const CODE_RANGE_MIB = 16;
/** All address space of a thread, with a margin, in bytes. */
const THREAD_BYTES = 96 * 2 ** 20;
/** Limit of the tasks of one thread while more threads may start. */
const TASKS_PER_THREAD = 2;

/** The threads that decode for one thread. Their number grows with concurrent work, up to `max`. */
export class DecodingThreads {
  #max: number;
  /** Each answers with the library's status. */
  readonly #threads = new Set<AskedThread<number>>();
  #workedMs = 0;
  #decoded = 0;
  /** Set when a thread could not start. */
  #isOff: boolean;

  constructor(max: number) {
    this.#max = max;
    this.#isOff = max < 2;
  }

  /** Limits the number of threads to what fits in half of the process's memory limit. */
  fit(memoryBytesMax: number): void {
    this.#max = Math.min(this.#max, Math.floor(memoryBytesMax / 2 / THREAD_BYTES));
  }

  /** Records how long the calling thread took to transform an image. */
  worked(ms: number): void {
    this.#workedMs += ms;
  }

  /** How many threads can decode now. */
  get ready(): number {
    return [...this.#threads].filter(({ isReady }) => isReady).length;
  }

  /** How many images were given to threads. */
  get decoded(): number {
    return this.#decoded;
  }

  /**
   * Decodes on the least busy thread; resolves to the library's status. Returns `undefined` if the
   * caller has to decode: no thread is ready, or all are full while more may start.
   */
  decode(task: DecodingTask): Promise<number> | undefined {
    if (this.#isOff || this.#workedMs < COLD_WORK_MS) return undefined;
    let best: AskedThread<number> | undefined, isStarting = false;
    for (const thread of this.#threads) {
      if (!thread.isReady) isStarting = true;
      else if (best === undefined || thread.outstanding < best.outstanding) best = thread;
    }
    const isGrowing = this.#threads.size < this.#max;
    if (isGrowing && !isStarting && (best === undefined || best.outstanding > 0)) this.#start();
    if (best === undefined) return undefined;
    const isFull = (isGrowing || isStarting) && best.outstanding >= TASKS_PER_THREAD;
    if (isFull) return undefined;
    this.#decoded++;
    return best.ask(task) as Promise<number>;
  }

  /** Ends all threads after their tasks. New ones start when there is work again. */
  async close(): Promise<void> {
    this.#workedMs = 0;
    this.#isOff = this.#max < 2;
    const threads = [...this.#threads];
    this.#threads.clear();
    await Promise.all(threads.map((thread) => thread.close()));
  }

  #start(): void {
    try {
      const entry = new URL("./decoding_thread_entry.ts", import.meta.url);
      const thread: AskedThread<number> = new AskedThread(entry, {
        name: "leat-images",
        // By default V8 reserves half a gigabyte for each, too much for a process with a memory limit.
        resourceLimits: { codeRangeSizeMb: CODE_RANGE_MIB },
        what: "The thread that decoded the image",
        onEnded: () => {
          const isClosed = !this.#threads.delete(thread);
          if (!isClosed && !thread.isReady) this.#isOff = true;
        },
      });
      this.#threads.add(thread);
    } catch {
      // Without permission to read Leat's own files, the program works without threads.
      this.#isOff = true;
    }
  }
}

export const decodingThreads: DecodingThreads = new DecodingThreads(navigator.hardwareConcurrency);
