/** One worker of a local cluster, through all its restarts under one name. */
import { LeatError } from "../../core/error.ts";
import type { FleetNode } from "./fleet.ts";

/** How to start a worker, and what to call when it dies. */
export interface WorkerLifecycle {
  start(): Promise<FleetNode>;
  /** Resolves once the dispatcher has registered the node, or the node has ended. */
  registered(node: FleetNode): Promise<void>;
  died(reason: LeatError): void;
}

export class LocalWorker {
  readonly name: string;
  readonly #lifecycle: WorkerLifecycle;
  #phase: "stopped" | "starting" | "running" | "stopping" = "stopped";
  #node: FleetNode | undefined;
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(name: string, lifecycle: WorkerLifecycle) {
    this.name = name;
    this.#lifecycle = lifecycle;
  }

  get phase(): string {
    return this.#phase;
  }

  get node(): FleetNode | undefined {
    return this.#phase === "stopping" ? undefined : this.#node;
  }

  /** Starts a stopped worker; resolves once it is registered. */
  async start(): Promise<void> {
    this.#phase = "starting";
    this.#starting = this.#start();
    await this.#starting;
  }

  /**
   * Ends the worker once it has started: with `retire`, or else by killing it. A second call can kill
   * a worker that is retiring.
   */
  async stop(retire?: (node: FleetNode) => Promise<void>): Promise<void> {
    while (this.#starting !== undefined) await this.#starting.catch(() => {});
    const node = this.#node;
    if (node === undefined) return;
    if (this.#stopping === undefined) {
      this.#phase = "stopping";
      const ending = retire === undefined ? node.kill() : retire(node);
      this.#stopping = ending.finally(() => this.#setStopped());
    } else if (retire === undefined) await node.kill();
    await this.#stopping;
  }

  async #start(): Promise<void> {
    try {
      const node = await this.#lifecycle.start();
      this.#node = node;
      node.died.then((reason) => this.#died(node, reason));
      await this.#lifecycle.registered(node);
      if (this.#node !== node) await this.#failStart(node);
      this.#phase = "running";
    } catch (error) {
      await this.#node?.kill();
      this.#setStopped();
      throw error;
    } finally {
      this.#starting = undefined;
    }
  }

  async #failStart({ died }: FleetNode): Promise<never> {
    const reason = await died;
    const message = `Worker "${this.name}" ended before it was registered: ${reason.message}`;
    throw new LeatError("unavailable", message, { cause: reason });
  }

  /**
   * Reports the end of a running worker. `#start` reports the end of a starting one, and a stopping
   * one was meant to end.
   */
  #died(node: FleetNode, reason: LeatError): void {
    if (this.#node !== node || this.#phase === "stopping") return;
    this.#node = undefined;
    if (this.#phase === "starting") return;
    this.#setStopped();
    this.#lifecycle.died(reason);
  }

  #setStopped(): void {
    this.#node = this.#stopping = undefined;
    this.#phase = "stopped";
  }
}
