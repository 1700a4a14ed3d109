/**
 * The threads that serve confined ones, kept for the next when one is done.
 *
 * @module
 */
import * as comlink from "comlink";
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

  /** A thread that serves what asks at the other end of `port`. */
  async serve(port: MessagePort, onDied: (why: string) => void): Promise<HostThread> {
    const thread = this.#idle.pop() ?? new HostThread();
    this.#busy.add(thread);
    thread.onDied = onDied;
    const moved = comlink.transfer(port, [port]);
    await thread.control.serve(moved, this.#granted, this.#storage);
    return thread;
  }

  /** Takes a thread back. */
  async give(thread: HostThread): Promise<void> {
    thread.onDied = () => this.#drop(thread);
    await thread.control.release();
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
  readonly control: comlink.Remote<HostThreadControl>;
  onDied: (why: string) => void = () => {};
  #isTerminated = false;

  constructor() {
    this.#worker = new Worker(new URL("./host_thread.ts", import.meta.url), {
      type: "module",
      name: "leat-host",
    });
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.onDied(event.message);
    });
    this.control = comlink.wrap<HostThreadControl>(this.#worker);
  }

  /** Ends it. Idempotent. */
  terminate(): void {
    if (this.#isTerminated) return;
    this.#isTerminated = true;
    this.#worker.terminate();
    // Else comlink would hold all this for ever: its books lead to the worker, and that leads back here.
    this.control[comlink.releaseProxy]();
  }
}
