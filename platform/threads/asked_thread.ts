/** A thread that answers messages. It keeps the program alive only while an answer is outstanding. */
import { type MessagePort as NodePort, Worker, type WorkerOptions } from "node:worker_threads";
import { LeatError } from "../../core/error.ts";
import { type PackedError, unpackError } from "../../data/threads/packed_error.ts";

/** The reply to the message with this number: an answer or an error. */
export interface Reply<A> {
  readonly number: number;
  readonly answer?: A;
  readonly error?: PackedError;
}

interface AskedThreadOptions extends WorkerOptions {
  /** Names the thread in error messages: `"The thread of prefetch"`. */
  readonly what: string;
  /** Called when the thread has ended, before messages without an answer fail with the error. */
  readonly onEnded: (error: LeatError) => void;
}

/** A thread that answers each message by a {@linkcode Reply}, and may say when it is ready. */
export class AskedThread<A> {
  /** Whether it has posted `"ready"`. */
  isReady = false;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #options: AskedThreadOptions;
  readonly #pending = new Map<number, PromiseWithResolvers<A | undefined>>();
  #lastNumber = 0;
  #end: LeatError | undefined;

  constructor(entry: URL, { what, onEnded, ...options }: AskedThreadOptions) {
    this.#options = { what, onEnded };
    this.#worker = new Worker(entry, options);
    // The web's MessageChannel: sending 150 KB through Node's takes 10 ms.
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }: MessageEvent<Reply<A> | "ready">) => {
      if (data === "ready") this.isReady = true;
      else this.#replied(data);
    };
    (port1 as unknown as NodePort).unref();
    this.#worker.postMessage(port2, [port2 as unknown as NodePort]);
    this.#worker.on("error", (error: Error) => this.#ended(error.message));
    this.#worker.on("exit", (code: number) => this.#ended(`it exited with code ${code}`));
    this.#worker.unref();
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** The number of messages that it has not answered. */
  get outstanding(): number {
    return this.#pending.size;
  }

  ask(message: object, buffers: readonly ArrayBuffer[] = []): Promise<A | undefined> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const pending = Promise.withResolvers<A | undefined>();
    const number = ++this.#lastNumber;
    this.#port.postMessage({ number, ...message }, [...buffers]);
    this.#worker.ref();
    this.#pending.set(number, pending);
    return pending.promise;
  }

  /** Sends a message that is not answered. */
  tell(message: object): void {
    if (this.isAlive) this.#port.postMessage(message);
  }

  /** Ends the thread; messages without an answer fail. */
  async terminate(): Promise<void> {
    this.#ended("it was closed");
    await this.#worker.terminate();
  }

  /** Resolves when it has answered everything, or has ended. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#pending.values()].map(({ promise }) => promise));
  }

  /** Ends the thread when it has answered everything. */
  async close(): Promise<void> {
    await this.settled();
    await this.terminate();
  }

  #replied({ number, answer, error }: Reply<A>): void {
    const pending = this.#pending.get(number);
    this.#pending.delete(number);
    if (this.#pending.size === 0) this.#worker.unref();
    if (error === undefined) pending?.resolve(answer);
    else pending?.reject(unpackError(error));
  }

  #ended(why: string): void {
    if (this.#end !== undefined) return;
    this.#end = new LeatError("internal", `${this.#options.what} has ended: ${why}`);
    this.#port.close();
    this.#options.onEnded(this.#end);
    for (const { reject } of this.#pending.values()) reject(this.#end);
    this.#pending.clear();
  }
}
