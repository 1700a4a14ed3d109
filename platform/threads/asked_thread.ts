/** Threads that answer messages. While they have no work, the program can end. */
import { type MessagePort as NodePort, Worker, type WorkerOptions } from "node:worker_threads";
import { LeatError } from "../../core/error.ts";
import { type PackedError, unpackError } from "../../data/threads/packed_error.ts";

interface ThreadEvents<M> {
  onMessage(message: M): void;
  /** May be called again. */
  onEnded(why: string): void;
}

/** Starts a thread, which gets the other end of `port`. `ref()` keeps the program running. */
export function startAskedThread<M>(
  entry: URL,
  options: WorkerOptions,
  { onMessage, onEnded }: ThreadEvents<M>,
): { readonly worker: Worker; readonly port: MessagePort } {
  const worker = new Worker(entry, options);
  // The web's MessageChannel: sending 150 KB through Node's takes 10 ms.
  const { port1: port, port2 } = new MessageChannel();
  port.onmessage = ({ data }: MessageEvent<M>) => onMessage(data);
  (port as unknown as NodePort).unref();
  worker.postMessage(port2, [port2 as unknown as NodePort]);
  worker.on("error", (error: Error) => onEnded(error.message));
  worker.on("exit", (code: number) => onEnded(`it exited with code ${code}`));
  worker.unref();
  return { worker, port };
}

/** The answer to the message with this number. */
export interface Reply<A> {
  readonly number: number;
  readonly answer?: A;
  readonly error?: PackedError;
}

interface AskedThreadOptions extends WorkerOptions {
  /** The thread in messages: `"The thread of prefetch"`. */
  readonly what: string;
  readonly onEnded: () => void;
}

/** A thread that answers each message by a {@linkcode Reply}, and may say when it is ready. */
export class AskedThread<A> {
  /** Whether it has posted `"ready"`. */
  isReady = false;
  readonly #thread: ReturnType<typeof startAskedThread>;
  readonly #options: AskedThreadOptions;
  readonly #asked = new Map<number, PromiseWithResolvers<A | undefined>>();
  #numbers = 0;
  #end: LeatError | undefined;

  constructor(entry: URL, { what, onEnded, ...options }: AskedThreadOptions) {
    this.#options = { what, onEnded };
    this.#thread = startAskedThread<Reply<A> | "ready">(entry, options, {
      onMessage: (message) => {
        if (message === "ready") this.isReady = true;
        else this.#replied(message);
      },
      onEnded: (why) => this.#ended(why),
    });
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** How many messages it has not answered. */
  get outstanding(): number {
    return this.#asked.size;
  }

  ask(message: object): Promise<A | undefined> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const asked = Promise.withResolvers<A | undefined>();
    const number = ++this.#numbers;
    this.#thread.worker.ref();
    this.#asked.set(number, asked);
    this.tell({ number, ...message });
    return asked.promise;
  }

  /** Sends a message that is not answered. */
  tell(message: object): void {
    if (this.isAlive) this.#thread.port.postMessage(message);
  }

  /** Ends it; messages without an answer fail. */
  async terminate(): Promise<void> {
    this.#ended("it was closed");
    await this.#thread.worker.terminate();
  }

  /** Ends it when it has answered everything. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#asked.values()].map(({ promise }) => promise));
    await this.terminate();
  }

  #replied({ number, answer, error }: Reply<A>): void {
    const asked = this.#asked.get(number);
    this.#asked.delete(number);
    if (this.#asked.size === 0) this.#thread.worker.unref();
    if (error === undefined) asked?.resolve(answer);
    else asked?.reject(unpackError(error));
  }

  #ended(why: string): void {
    if (this.#end !== undefined) return;
    this.#end = new LeatError("internal", `${this.#options.what} has ended: ${why}`);
    this.#thread.port.close();
    for (const { reject } of this.#asked.values()) reject(this.#end);
    this.#asked.clear();
    this.#options.onEnded();
  }
}
