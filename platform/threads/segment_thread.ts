/** A thread that runs segments of pipelines, one after the other. */
import { type MessagePort as NodePort, Worker } from "node:worker_threads";
import { LeatError } from "../../core/error.ts";
import type {
  OpenSegment,
  Segment,
  SegmentAnswer,
  SegmentRequest,
} from "../../data/threads/function_threads.ts";
import { type PackedError, unpackError } from "../../data/threads/packed_error.ts";

/** A message to the thread: a segment, a request to it, or its end, which is not answered. */
export type SegmentMessage =
  | { readonly number: number; readonly segment: Segment }
  | { readonly number: number; readonly request: SegmentRequest }
  | { readonly close: true };

/** Its answer to the message with this number. */
export interface SegmentReply {
  readonly number: number;
  readonly answer?: SegmentAnswer;
  readonly error?: PackedError;
}

interface Asked {
  resolve(answer: SegmentAnswer | undefined): void;
  reject(error: unknown): void;
}

export class SegmentThread {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #onEnded: () => void;
  /** Messages that were not answered, by number. */
  readonly #asked = new Map<number, Asked>();
  #messages = 0;
  #end: LeatError | undefined;

  constructor(onEnded: () => void) {
    this.#onEnded = onEnded;
    this.#worker = new Worker(new URL("./segment_thread_entry.ts", import.meta.url), {
      name: "leat-segment",
    });
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }: MessageEvent<SegmentReply>) => this.#replied(data);
    (port1 as unknown as NodePort).unref();
    this.#worker.postMessage(port2, [port2 as unknown as NodePort]);
    this.#worker.on("error", (error: Error) => this.#ended(error.message));
    this.#worker.on("exit", (code: number) => this.#ended(`it exited with code ${code}`));
    this.#worker.unref();
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** Starts a segment. `onClosed` is called when the thread is free for another one. */
  async open(segment: Segment, onClosed: () => void): Promise<OpenSegment> {
    try {
      await this.#ask({ segment });
    } catch (error) {
      onClosed();
      throw error;
    }
    let isOpen = true;
    return {
      ask: async (request) => (await this.#ask({ request }))!,
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        if (this.isAlive) this.#port.postMessage({ close: true } satisfies SegmentMessage);
        onClosed();
      },
    };
  }

  async terminate(): Promise<void> {
    this.#ended("it was closed");
    await this.#worker.terminate();
  }

  #ask(
    message: { readonly segment: Segment } | { readonly request: SegmentRequest },
  ): Promise<SegmentAnswer | undefined> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const { promise, resolve, reject } = Promise.withResolvers<SegmentAnswer | undefined>();
    const number = ++this.#messages;
    this.#asked.set(number, { resolve, reject });
    this.#worker.ref();
    this.#port.postMessage({ number, ...message } satisfies SegmentMessage);
    return promise;
  }

  #replied({ number, answer, error }: SegmentReply): void {
    const asked = this.#asked.get(number);
    this.#asked.delete(number);
    if (this.#asked.size === 0) this.#worker.unref();
    if (error === undefined) asked?.resolve(answer);
    else asked?.reject(unpackError(error));
  }

  #ended(why: string): void {
    if (this.#end !== undefined) return;
    this.#end = new LeatError("internal", `The thread of prefetch has ended: ${why}`);
    this.#port.close();
    for (const { reject } of this.#asked.values()) reject(this.#end);
    this.#asked.clear();
    this.#onEnded();
  }
}
