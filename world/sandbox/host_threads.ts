/**
 * The threads that serve confined ones, kept for the next when one is done.
 *
 * @module
 */
import * as comlink from "comlink";
import { Ending } from "../../core/ending.ts";
import { LeatError } from "../../core/error.ts";
import type { WorkerStorage } from "../storage.ts";
import type { ReachedByHost } from "./grants.ts";
import type { HostThreadControl } from "./host_thread.ts";

/** Idle threads kept: one costs a fifth of a second and some memory that never comes back. */
const IDLE_THREADS_MAX = 4;

/** See the module. */
export class HostThreads {
  readonly #granted: ReachedByHost;
  readonly #storage: WorkerStorage;
  readonly #idle: HostThread[] = [];
  readonly #busy = new Set<HostThread>();
  #closed = false;

  /** @param granted What confined threads may reach through these. */
  constructor({ far, net }: ReachedByHost, storage: WorkerStorage) {
    this.#granted = { far, net };
    this.#storage = storage;
  }

  /**
   * A thread that serves what asks at the other end of `port`.
   *
   * @throws {LeatError} `unavailable` when it dies before it does.
   */
  async serve(port: MessagePort, onDied: (why: string) => void): Promise<HostThread> {
    const thread = this.#idle.pop() ?? new HostThread();
    this.#busy.add(thread);
    thread.onDied = onDied;
    try {
      await thread.serve(port, this.#granted, this.#storage);
    } catch (error) {
      this.#drop(thread);
      throw error;
    }
    return thread;
  }

  /** Takes a thread back. */
  async give(thread: HostThread): Promise<void> {
    thread.onDied = () => this.#drop(thread);
    try {
      await thread.release();
    } catch {
      // It has died, and will never answer.
      return this.#drop(thread);
    }
    if (this.#closed || this.#idle.length >= IDLE_THREADS_MAX) this.#drop(thread);
    else if (this.#busy.delete(thread)) this.#idle.push(thread);
  }

  close(): void {
    this.#closed = true;
    for (const thread of [...this.#idle, ...this.#busy]) thread.terminate();
    this.#idle.length = 0;
    this.#busy.clear();
  }

  #drop(thread: HostThread): void {
    thread.terminate();
    this.#busy.delete(thread);
    const index = this.#idle.indexOf(thread);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}

/** One of the threads. */
export class HostThread {
  readonly #worker: Worker;
  readonly #control: comlink.Remote<HostThreadControl>;
  readonly #death = new Ending();
  onDied: (why: string) => void = () => {};
  #isTerminated = false;

  constructor() {
    this.#worker = new Worker(new URL("./host_thread.ts", import.meta.url), {
      type: "module",
      name: "leat-host",
    });
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#death.come(new LeatError("unavailable", `The host thread is gone: ${event.message}`));
      this.onDied(event.message);
    });
    this.#control = comlink.wrap<HostThreadControl>(this.#worker);
  }

  /** See {@linkcode HostThreadControl}. */
  serve(port: MessagePort, granted: ReachedByHost, storage: WorkerStorage): Promise<void> {
    const moved = comlink.transfer(port, [port]);
    return this.#whileAlive(() => this.#control.serve(moved, granted, storage));
  }

  /** See {@linkcode HostThreadControl}. */
  release(): Promise<void> {
    return this.#whileAlive(() => this.#control.release());
  }

  /** Ends it. Idempotent. */
  terminate(): void {
    if (this.#isTerminated) return;
    this.#isTerminated = true;
    this.#death.come(new LeatError("unavailable", "The host thread was terminated"));
    this.#worker.terminate();
    // Else comlink would hold all this for ever: its books lead to the worker, and that leads back here.
    this.#control[comlink.releaseProxy]();
  }

  /** A thread that has died answers nothing. */
  #whileAlive(ask: () => Promise<void>): Promise<void> {
    return this.#death.before(this.#death.hasCome ? Promise.resolve() : ask());
  }
}
