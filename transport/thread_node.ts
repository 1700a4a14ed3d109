/**
 * A node on a thread of its own, as the thread hub (`thread_hub.ts`), which starts and connects such
 * nodes, controls it.
 */
import * as comlink from "comlink";
import type { NodeId } from "../actors/runtime/link.ts";
import type { FencedRef, Ref } from "../actors/runtime/ref.ts";
import type { World } from "../actors/runtime/world.ts";
import { AbortRace } from "../core/abort_race.ts";
import { LeatError } from "../core/error.ts";
import { type Introducer, type ThreadControl, valueOf } from "./thread_control.ts";

/** Time limit for a thread to load its module and set up its node, in ms. */
const START_TIMEOUT_MS = 120_000;

/** Time limit for a node to stop gracefully before its thread is terminated, in ms. */
const STOP_TIMEOUT_MS = 15_000;

export interface ThreadNodeOptions {
  /** The node's name, unique in the hub. */
  readonly name: string;
  /** The URL of a module whose export `setup` is a `NodeSetup`: `import.meta.resolve("./x.ts")`. */
  readonly module: string;
  /** Passed to `setup` by structured clone. */
  readonly config?: unknown;
  /** Options of the thread's platform, by structured clone. */
  readonly world?: unknown;
}

/** A node that the hub can connect to others. */
export interface HubMember {
  readonly name: string;
  readonly id: NodeId;
  /** Receives its end of a channel to `remote`. */
  accept(remote: NodeId, port: MessagePort): void | Promise<void>;
  /** Tells the node that `remote`, which it was connected with, has ended. */
  gone(remote: NodeId, error: LeatError): void;
}

export class ThreadNode implements HubMember {
  readonly name: string;
  /** Settles when the thread has ended, with the reason. */
  readonly closed: Promise<LeatError>;
  readonly #settle: (error: LeatError) => void;
  readonly #world: World;
  readonly #worker: Worker;
  readonly #control: comlink.Remote<ThreadControl>;
  /** Through its second port the node asks the hub for connections to other nodes. */
  readonly #introductions = new MessageChannel();
  /** Rejects at the end of the thread: a comlink call to a dead thread would never settle. */
  readonly #death = new AbortRace();
  readonly #onEnd: (error: LeatError) => void;
  #id: NodeId | undefined;
  #ended = false;

  constructor(
    world: World,
    entry: URL,
    name: string,
    introducer: Introducer,
    onEnd: (error: LeatError) => void,
  ) {
    this.name = name;
    this.#onEnd = onEnd;
    this.#world = world;
    const closed = Promise.withResolvers<LeatError>();
    this.closed = closed.promise;
    this.#settle = closed.resolve;
    this.#worker = new Worker(entry, { type: "module", name });
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#end(new LeatError("unavailable", `The thread of "${name}" died: ${event.message}`));
    });
    this.#worker.addEventListener("messageerror", () => {
      this.#end(new LeatError("unavailable", `The thread of "${name}" sent an unreadable message`));
    });
    this.#control = comlink.wrap<ThreadControl>(this.#worker);
    comlink.expose(introducer, this.#introductions.port1);
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  get id(): NodeId {
    if (this.#id === undefined) throw new LeatError("unavailable", `"${this.name}" is starting`);
    return this.#id;
  }

  /** Loads the module and sets up the node. */
  async start({ name, module, config, world }: ThreadNodeOptions): Promise<void> {
    const port = this.#introductions.port2;
    const start = { name, module, config, world };
    const started = this.#call((control) => control.start(start, comlink.transfer(port, [port])));
    const what = `The thread of "${name}" did not set up its node`;
    this.#id = valueOf(await this.#within(START_TIMEOUT_MS, started, what));
  }

  /**
   * Starts a top-level actor on the node.
   * @throws LeatError `not_found` when the module offers no such kind, `already_exists` when the
   * name is taken, `unavailable` when the thread dies first.
   */
  async spawn<P = unknown>(kind: string, name: string, config: unknown): Promise<FencedRef<P>> {
    const outcome = await this.#call((control) => control.spawn(kind, name, config));
    return valueOf(outcome) as Ref as FencedRef<P>;
  }

  /** Stops the actors gracefully, then ends the thread. Resolves when it has ended. */
  async stop(): Promise<void> {
    let reason = new LeatError("unavailable", `"${this.name}" has stopped`);
    try {
      const stopped = this.#call((control) => control.stop());
      const what = `"${this.name}" did not stop`;
      valueOf(await this.#within(STOP_TIMEOUT_MS, stopped, what));
    } catch (error) {
      if (!this.#ended) {
        reason = LeatError.from(error);
        this.#world.log("warn", `"${this.name}" did not stop gracefully`, {
          error: reason.message,
        });
      }
    }
    this.terminate(reason);
  }

  /** Ends the thread at once, like a crash. */
  terminate(
    reason: LeatError = new LeatError("unavailable", `"${this.name}" was terminated`),
  ): void {
    this.#end(reason);
  }

  async accept(remote: NodeId, port: MessagePort): Promise<void> {
    await this.#call((control) => control.connect(remote, comlink.transfer(port, [port])));
  }

  gone(remote: NodeId, error: LeatError): void {
    this.#call((control) => control.gone(remote, error.toWire())).catch(() => {});
  }

  #call<T>(use: (control: ThreadControl) => T | Promise<T>): Promise<T> {
    if (this.#ended) return this.#death.race(new Promise<T>(() => {}));
    // `#control` has the methods of `ThreadControl`, made asynchronous. Comlink's type for it does
    // not keep union types.
    const control = this.#control as unknown as ThreadControl;
    return this.#death.race(Promise.resolve(use(control)));
  }

  async #within<T>(timeoutMs: number, promise: Promise<T>, what: string): Promise<T> {
    const timeout = Promise.withResolvers<never>();
    const timer = this.#world.timer(timeoutMs, () => {
      timeout.reject(new LeatError("deadline_exceeded", `${what} within ${timeoutMs} ms`));
    });
    try {
      return await Promise.race([promise, timeout.promise]);
    } finally {
      timer.cancel();
    }
  }

  #end(reason: LeatError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#worker.terminate();
    // Otherwise comlink's registry leaks the worker and, through it, this object.
    this.#control[comlink.releaseProxy]();
    this.#introductions.port1.close();
    this.#death.abort(
      reason.code === "unavailable"
        ? reason
        : new LeatError("unavailable", `"${this.name}" is gone: ${reason.message}`, {
          cause: reason,
        }),
    );
    this.#onEnd(reason);
    this.#settle(reason);
  }
}
