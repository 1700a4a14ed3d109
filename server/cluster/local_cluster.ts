/** A whole service on this host: on threads, in this thread, or behind sockets. */
import type { ClientHome } from "../../actors/client/starting.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { DispatcherDescription } from "../../actors/dispatcher/protocol_figures.ts";
import type { ActorInfo } from "../../actors/runtime/inspection.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import {
  type ElementSourceProtocol,
  type ElementSourceStats,
  workerAt,
} from "../../actors/worker/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { sleep } from "../../actors/runtime/timers.ts";
import { LeatError } from "../../core/error.ts";
import { registerHome } from "../../platform/nodes/client_homes.ts";
import type { FleetNode } from "./fleet.ts";
import { checkJournal } from "../journal_check.ts";
import type { LocalClusterOptions, LocalWorkerOptions } from "./local_cluster_options.ts";
import type { LocalFleet } from "./local_fleet.ts";
import { requireSecretsOutside } from "../secrets_outside.ts";
import { LocalWorker } from "./local_worker.ts";
import { PROCESS_ID } from "../../platform/nodes/process_nodes.ts";
import type { SandboxOptions } from "../../platform/sandbox/grants.ts";
import { dispatcherRole, workerRange, workerRole } from "./local_roles.ts";
import { autoscale, type Scaler } from "./scaler.ts";
import { checkClusterOptions, checkWorkerOptions } from "../service_options.ts";

/** Time limit for starting a node, or asking one for statistics, in ms. */
const NODE_TIMEOUT_MS = 60_000;
/** Sends the request again each second, because a node that restarts loses it. */
const RETRIED = { timeoutMs: NODE_TIMEOUT_MS, attemptMs: 1_000 } as const;
/** Drain time of a worker that is stopped gracefully, in ms: clients fetch what it still holds. */
const DRAIN_TIMEOUT_MS = 5_000;
/** The drain time when scaling down, in ms. It is long, because nothing waits for the worker to end. */
const SCALED_DOWN_DRAIN_MS = 600_000;
/** How often a new worker's registration is checked, in ms. */
const REGISTRATION_POLL_MS = 5;

let clusters = 0;

/**
 * A dispatcher and workers on this host.
 *
 * @example
 * ```ts
 * import { Dataset, LocalCluster } from "../../mod.ts";
 *
 * await using cluster = await LocalCluster.start({ workers: 2 });
 * const batches = Dataset.range(100).batch(10).distribute({
 *   service: cluster,
 *   processingMode: "DYNAMIC",
 * });
 * let elements = 0;
 * for await (const batch of batches) elements += batch.shape[0]!;
 * console.log(elements); // 100
 * ```
 */
export class LocalCluster implements AsyncDisposable {
  /** Prefix of the nodes' names. In this thread, the option `service` may be this name. */
  readonly #name: string;
  readonly #options: LocalClusterOptions;
  readonly #fleet: LocalFleet;
  /** By address: the function that unregisters the cluster's home. */
  readonly #unregister = new Map<string, () => void>();
  readonly #workers: LocalWorker[] = [];
  readonly #killing = new Set<Promise<unknown>>();
  #dispatcher: FleetNode | undefined;
  /** Why the dispatcher died, unless it was stopped. */
  #dispatcherDeath: LeatError | undefined;
  /** The name or URL of the dispatcher's node, also while it is stopped. */
  #dispatcherAddress = "";
  #proxies: { cache?: string; reads?: string } = {};
  #scaler: Scaler | undefined;
  #closed: Promise<void> | undefined;

  private constructor(options: LocalClusterOptions, Nodes: typeof LocalFleet) {
    this.#options = options;
    this.#name = `local-${++clusters}`;
    this.#fleet = new Nodes(this.#name, options.logLevel ?? "warn");
    this.#unregister.set(this.#name, registerHome(this.#name, () => this.home()));
  }

  /**
   * Starts a cluster; resolves when all workers are registered.
   * @throws LeatError `invalid_argument` for unknown or invalid options; `failed_precondition` when
   * another dispatcher holds the journal, `permission_denied`, `data_loss` and others when it
   * cannot be read.
   */
  static async start(options: LocalClusterOptions = {}): Promise<LocalCluster> {
    checkClusterOptions(options);
    const { min, max } = workerRange(options);
    const { journal, confine = false } = options;
    if (confine !== false) await requireJournalsOutside(confine, journal);
    if (journal !== undefined) await checkJournal(journal);
    // Loaded lazily: most programs start no cluster.
    const { LocalFleet } = await import("./local_fleet.ts");
    const cluster = new LocalCluster(options, LocalFleet);
    try {
      await cluster.#startDispatcher();
      await cluster.#startProxyNodes();
      await Promise.all(Array.from({ length: min }, () => cluster.addWorker()));
      if (typeof options.workers === "object") cluster.#autoscale(min, max);
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /**
   * The cluster's address, for `service`. If the dispatcher is behind a socket, other programs of this
   * host and pipelines on workers can use the address. Otherwise it is valid in this thread only.
   */
  get address(): string {
    return this.#dispatcherAddress.startsWith("ws") ? this.#dispatcherAddress : this.#name;
  }

  /** The number of workers ever added. Their indexes start at 0. */
  get workers(): number {
    return this.#workers.length;
  }

  /**
   * Starts another worker; resolves with its index once it is registered.
   * @throws LeatError `invalid_argument` for unknown or invalid options.
   */
  async addWorker(options: LocalWorkerOptions = {}): Promise<number> {
    checkWorkerOptions(options);
    const { confine = false } = options;
    if (confine !== false) await requireJournalsOutside(confine, this.#options.journal);
    const index = this.#workers.length;
    this.#workers.push(this.#newWorker(this.#nameOf(index), options));
    await this.restartWorker(index);
    return index;
  }

  /**
   * Ends a worker, like a crash. With `graceful`, it first finishes its splits, and clients fetch what
   * it holds, within `drainTimeoutMs` (default 5,000). A starting worker ends once it has started. A
   * worker that ends gracefully can still be killed by a second call.
   */
  async stopWorker(
    index: number,
    { graceful = false, drainTimeoutMs = DRAIN_TIMEOUT_MS } = {},
  ): Promise<void> {
    const worker = this.#worker(index);
    const retire = (node: FleetNode) => this.#retire(node, drainTimeoutMs);
    const ending = worker.stop(graceful ? retire : undefined);
    if (!graceful) this.#killing.add(ending);
    try {
      await ending;
    } finally {
      this.#killing.delete(ending);
    }
  }

  async #retire(node: FleetNode, drainTimeoutMs: number): Promise<void> {
    const { home } = this.#fleet;
    const worker = workerAt(node.id.node);
    await home.ask(worker, "drain", { timeoutMs: drainTimeoutMs }, {
      timeoutMs: drainTimeoutMs + NODE_TIMEOUT_MS,
    }).catch(() => false);
    await home.ask(worker, "leave", null, { timeoutMs: NODE_TIMEOUT_MS }).catch(() => null);
    await node.stop();
  }

  /** Restarts a stopped or dead worker under its name; resolves once it is registered. */
  async restartWorker(index: number): Promise<void> {
    this.#requireOpen();
    const worker = this.#worker(index);
    if (worker.phase !== "stopped") {
      throw new LeatError(
        "failed_precondition",
        `Worker ${index} is ${worker.phase}; it has to be stopped first`,
      );
    }
    await worker.start();
  }

  /** Ends the dispatcher like a crash. */
  async stopDispatcher(): Promise<void> {
    await this.#dispatcher?.kill();
    this.#dispatcher = undefined;
  }

  /** Fails the readers: nothing restarts a dispatcher that died by itself. */
  #dispatcherDied(dispatcher: FleetNode, reason: LeatError): void {
    if (this.#dispatcher !== dispatcher) return;
    this.#dispatcher = undefined;
    const text = `The dispatcher of ${this.#name} has ended by itself: ${reason.message}`;
    const error = new LeatError("internal", text, { cause: reason });
    this.#dispatcherDeath = error;
    this.#fleet.giveUp(dispatcher.id.node, error);
    this.#fleet.home.world.log("error", text);
  }

  /**
   * Restarts the dispatcher, with its journal if the cluster has a folder for it. Readers wait for a
   * dispatcher that was stopped; if it died by itself, they have failed (`internal`).
   */
  async restartDispatcher(): Promise<void> {
    this.#requireOpen();
    if (this.#dispatcher !== undefined) {
      throw new LeatError("failed_precondition", "The dispatcher runs already; stop it first");
    }
    await this.#startDispatcher();
  }

  /** The dispatcher's whole state. */
  async describe(): Promise<DispatcherDescription> {
    this.#requireOpen();
    const dispatcher = dispatcherAt(this.#dispatcherNode());
    return await this.#fleet.home.ask(dispatcher, "describe", null, RETRIED);
  }

  /** The actors of every running node. */
  async actors(): Promise<ActorInfo[]> {
    this.#requireOpen();
    const nodes = [this.#dispatcher, ...this.#workers.map((worker) => worker.node)];
    const names = [
      ...nodes.flatMap((node) => node?.id.node ?? []),
      ...Object.values(this.#proxies),
    ];
    const lists = await Promise.all(
      names.map((node) => this.#fleet.home.ask(nodeActorOf(node), "list", null, RETRIED)),
    );
    return lists.flat();
  }

  /** The statistics of every task, cache and scheduler. */
  async sources(): Promise<ElementSourceStats[]> {
    const isSource = ({ kind }: ActorInfo) => ["task", "cache", "reads"].includes(kind);
    const sources = (await this.actors()).filter(isSource);
    const { home } = this.#fleet;
    const stats = sources.map(async ({ ref }) => {
      const source = ref as Ref<ElementSourceProtocol>;
      try {
        return [await home.ask(source, "stats", null, { timeoutMs: NODE_TIMEOUT_MS })];
      } catch (error) {
        if (LeatError.from(error).code === "not_found") return []; // it has ended since
        throw error;
      }
    });
    return (await Promise.all(stats)).flat();
  }

  /**
   * The node through which clients of the calling thread reach the cluster.
   * @ignore
   */
  home(): ClientHome {
    const { clientRefreshMs } = this.#options;
    return {
      system: this.#fleet.home,
      dispatcher: dispatcherAt(this.#dispatcherAddress),
      process: PROCESS_ID,
      hasLocalWorker: () => this.#workers.some(({ node }) => node !== undefined),
      ...(clientRefreshMs === undefined ? {} : { timings: { refreshMs: clientRefreshMs } }),
      release: () => {},
    };
  }

  /**
   * The fleet of the cluster's nodes, with which a caller can start more nodes.
   * @ignore
   */
  get fleet(): LocalFleet {
    return this.#fleet;
  }

  /** Stops everything. Idempotent. */
  close(): Promise<void> {
    for (const unregister of this.#unregister.values()) unregister();
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    // The scaler's `close` waits for workers that are stopping; ending the fleet shortens that.
    const scaled = this.#scaler?.close();
    await this.#fleet.close();
    await scaled;
  }

  /** Stops everything, as `close()` does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #startDispatcher(): Promise<void> {
    const { placement = {}, carrier = "thread" } = this.#options;
    const role = dispatcherRole(this.#options, (index) => this.#nameOf(index));
    const name = `${this.#name}-dispatcher`;
    const dispatcher = await this.#fleet.start(placement.dispatcher ?? carrier, name, role);
    this.#dispatcher = dispatcher;
    this.#dispatcherDeath = undefined;
    this.#dispatcherAddress = dispatcher.id.node;
    dispatcher.died.then((reason) => this.#dispatcherDied(dispatcher, reason));
    // Iterators of this thread that get the URL also use this home, and open no other socket.
    const { address } = this;
    if (!this.#unregister.has(address)) {
      this.#unregister.set(address, registerHome(address, () => this.home()));
    }
  }

  /** Scales to the wanted number of workers; stopped ones restart under their names. */
  #autoscale(minWorkers: number, maxWorkers: number): void {
    const workers = this.#workers;
    const running = () => workers.filter(({ phase }) => phase === "running");
    const start = async () => {
      // Wait only for kills, which end soon. Draining may take minutes.
      await Promise.allSettled(this.#killing);
      const index = workers.findIndex(({ phase }) => phase === "stopped");
      if (index < 0) await this.addWorker();
      else await this.restartWorker(index);
    };
    const stop = (name: string) =>
      this.stopWorker(workers.findIndex((worker) => worker.name === name), {
        graceful: true,
        drainTimeoutMs: SCALED_DOWN_DRAIN_MS,
      });
    const { world } = this.#fleet.home;
    const { intervalMs } = this.#options.scaling ?? {};
    this.#scaler = autoscale({
      dispatcher: this,
      fleet: {
        get names() {
          return running().map(({ name }) => name);
        },
        start,
        stop,
      },
      minWorkers,
      maxWorkers,
      ...(intervalMs === undefined ? {} : { intervalMs }),
      onStep: ({ action, worker, workers, reason }) =>
        world.log(action === "fail" ? "warn" : "info", `Scaling to ${workers} workers: ${reason}`, {
          action,
          ...(worker === undefined ? {} : { worker }),
        }),
    });
    this.#scaler.failed.then(({ message }) => {
      world.log("error", `The number of workers stays as it is: ${message}`);
    });
  }

  async #startProxyNodes(): Promise<void> {
    const { placement = {} } = this.#options;
    for (const kind of ["cache", "reads"] as const) {
      const carrier = placement[kind];
      if (carrier === undefined) continue;
      const node = await this.#fleet.start(carrier, `${this.#name}-${kind}`, { role: "proxy" });
      this.#proxies[kind] = node.id.node;
    }
  }

  #newWorker(name: string, options: LocalWorkerOptions): LocalWorker {
    const { placement = {}, carrier = "thread" } = this.#options;
    const worker: LocalWorker = new LocalWorker(name, {
      start: async () => {
        const role = workerRole(this.#options, options, {
          name,
          workers: this.#workers.length,
          dispatcher: this.#dispatcherNode(),
          proxies: this.#proxies,
        });
        return await this.#fleet.start(placement.worker ?? carrier, name, role);
      },
      registered: (node) => this.#waitForRegistration(worker, node),
      died: ({ message }) => {
        this.#fleet.home.world.log("warn", `Worker "${name}" has ended: ${message}`);
      },
    });
    return worker;
  }

  async #waitForRegistration(worker: LocalWorker, { id }: FleetNode): Promise<void> {
    const { name } = worker;
    const { world } = this.#fleet.home;
    const deadlineMs = world.nowMs() + NODE_TIMEOUT_MS;
    while (world.nowMs() < deadlineMs) {
      const { workers } = await this.describe();
      const described = workers.find((other) => other.name === name);
      if (described?.alive && described.ref.incarnation?.startsWith(`${id.incarnation}-`)) return;
      if (worker.node === undefined) return;
      await sleep(world, REGISTRATION_POLL_MS);
    }
    throw new LeatError(
      "deadline_exceeded",
      `Worker "${name}" did not register within ${NODE_TIMEOUT_MS} ms`,
    );
  }

  #nameOf(index: number): string {
    return `${this.#name}-worker-${index}`;
  }

  #dispatcherNode(): string {
    if (this.#dispatcher === undefined) {
      throw this.#dispatcherDeath ??
        new LeatError("unavailable", `The dispatcher of ${this.#name} has been stopped`);
    }
    return this.#dispatcher.id.node;
  }

  #requireOpen(): void {
    if (this.#closed === undefined) return;
    throw new LeatError("cancelled", "The local cluster has been closed");
  }

  #worker(index: number): LocalWorker {
    const worker = this.#workers[index];
    if (worker === undefined) {
      throw new LeatError(
        "not_found",
        `There is no worker ${index}: the cluster has ${this.#workers.length}`,
      );
    }
    return worker;
  }
}

/** Refuses folders of functions that contain the cluster's journal, or that of another dispatcher. */
async function requireJournalsOutside(
  confine: true | SandboxOptions,
  journal: string | undefined,
): Promise<void> {
  const secrets = journal === undefined ? [] : [{ what: "journal", path: journal }];
  await requireSecretsOutside(confine === true ? {} : confine, secrets);
}
