/** A worker of a cluster, as a server. */
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { Timer } from "../actors/runtime/world.ts";
import { workerAt, type WorkerProtocol } from "../actors/worker/protocol.ts";
import { LeatError } from "../core/error.ts";
import { PrivateNode } from "../platform/nodes/private_node.ts";
import { admitWorker, PROCESS_ID } from "../platform/nodes/process_nodes.ts";
import type { Playing, WorkerRole } from "./roles.ts";
import { grantsOf, type SandboxGrants, type SandboxOptions } from "../platform/sandbox/grants.ts";
import { isLoopbackHost, serviceAddress } from "../platform/nodes/service_address.ts";
import { requireSecretsOutside } from "./secrets_outside.ts";
import { ServiceNode, type ServiceNodeConfig } from "../platform/nodes/service_node.ts";
import { checkWorkerConfig } from "./service_options.ts";
import type { WorkerStorage } from "../platform/storage/storage.ts";
import { defaultWindowBytes } from "./window_memory.ts";
import type { takeUpWorker } from "./worker_role.ts";

/** Time limit for deregistering at the dispatcher, in ms. */
const LEAVE_TIMEOUT_MS = 500;
/** Added to the drain timeout, for the answer to arrive. */
const DRAIN_MARGIN_MS = 500;
/** How often the worker checks again while it cannot reach its own address, in ms. */
const SELF_CHECK_MS = 10_000;

/** Options of a worker server. */
export interface WorkerServerConfig extends Omit<ServiceNodeConfig, "hostname">, WorkerStorage {
  /** The dispatcher: `ws://host:port` or `wss://host:port`. */
  readonly dispatcher: string;
  /**
   * The interface to listen on. Default: `127.0.0.1` when the dispatcher is on this machine's
   * loopback, all interfaces (`0.0.0.0`) otherwise.
   */
  readonly hostname?: string;
  /** Stable and unique among workers. Default: the advertised address. */
  readonly name?: string;
  /**
   * Tags by which jobs choose workers (`distribute({ targetTags })`), also shown in logs and pages.
   * `COLOCATED` reserves this worker for the clients of its own process, unless other clients ask
   * for `targetWorkers: "any"`.
   */
  readonly tags?: readonly string[];
  /**
   * Serves only the clients of this process, by direct call: it does not listen, and needs no
   * address, port or token of its own. It shares a job with workers elsewhere: they produce the
   * rest. Default false.
   */
  readonly local?: boolean;
  /** Time between heartbeats, in ms. Default 30,000. */
  readonly heartbeatMs?: number;
  /** How long a task waits for a split of an unreachable dispatcher, in ms. Default one hour. */
  readonly dispatcherTimeoutMs?: number;
  /**
   * Most bytes of the sliding windows of its shared tasks together: each of n tasks gets an n-th
   * part, and the others' parts grow when one ends. Default: 10 GiB, or a quarter of this host's
   * memory if that is less (1 GiB without permission to read its size).
   */
  readonly windowBytesMax?: number;
  /** Coordinated reads: how late a round may be before all consumers skip it, in ms. Default 100. */
  readonly skipAfterMs?: number;
  /**
   * Coordinated reads: most bytes of one task's rounds that wait for slow consumers; beyond it the
   * task starts no later round. Default 256 MiB.
   */
  readonly roundsBytesMax?: number;
  /**
   * Whether this process only serves the worker: then the costs of jobs include its resource usage.
   * Default false.
   */
  readonly ownProcess?: boolean;
  /**
   * Confines the functions of submitted pipelines to the grants here; `true` is the default of
   * {@linkcode SandboxOptions}. Each pipeline then runs in a process of its own, so this program
   * needs `--allow-run=deno`, and `--allow-read` and `--allow-write` of the temporary folder.
   * Default false: functions may do whatever the program may.
   */
  readonly sandbox?: boolean | SandboxOptions;
  /**
   * For unconfined functions: the worker fails, so that the program can be restarted, once so many
   * threads ignore the request to end. Deno cannot end a thread whose function never yields.
   * Default: never.
   */
  readonly runawayThreadsMax?: number;
  /** How long a thread may ignore the request to end, in ms. Default two minutes. */
  readonly runawayAfterMs?: number;
}

/** Options of closing a worker's server. */
export interface WorkerCloseOptions {
  /**
   * Time for the worker to finish its splits, and for clients to fetch what it has produced, in ms;
   * after that they are lost, as in a crash. Default 0: at once.
   */
  readonly drainTimeoutMs?: number;
}

/** A worker that listens. */
export interface WorkerServer extends AsyncDisposable {
  /** The address that it advertises; with `local: true`, a name that cannot be dialled. */
  readonly address: string;
  /** Its name at the dispatcher. */
  readonly name: string;
  /**
   * Resolves if the worker cannot continue: the dispatcher refuses it (a wrong token, another
   * worker with its name), its actor died too often, or too many of its threads cannot be ended
   * (`runawayThreadsMax`). Close it then.
   */
  readonly failed: Promise<LeatError>;
  /**
   * Takes no more work, lets clients fetch the rest within the drain timeout, deregisters at the
   * dispatcher and stops: within two seconds after draining. Idempotent.
   */
  close(options?: WorkerCloseOptions): Promise<void>;
}

/**
 * Serves a worker. It registers with its dispatcher as soon as that answers, and waits without a
 * limit; the log says so every few seconds.
 *
 * The worker dials the address that it advertises, and the dispatcher does so too: both log at once
 * if it leads nowhere.
 *
 * Iterators of the same thread read it by direct call, without a socket (`targetWorkers`); a
 * training program with spare cores starts one with `local: true` in addition to the workers of
 * other hosts.
 * @throws LeatError `already_exists` when the port is in use; `failed_precondition` when it would
 * listen beyond this machine without a token; `invalid_argument` for invalid settings;
 * `permission_denied` and `not_found` for a sandbox that grants what this program does not have.
 *
 * @example
 * ```ts ignore
 * import { serveWorker } from "./mod.ts";
 *
 * await using worker = await serveWorker({ dispatcher: "ws://10.0.0.5:5050", token });
 * throw await worker.failed;
 * ```
 *
 * @example A worker in the training program, which shares the work with those that are elsewhere
 * ```ts
 * import { Dataset, serveDispatcher, serveWorker } from "../mod.ts";
 *
 * await using dispatcher = await serveDispatcher({ logLevel: "off" });
 * const service = dispatcher.address;
 * await using _here = await serveWorker({ dispatcher: service, local: true, logLevel: "off" });
 * await using _there = await serveWorker({ dispatcher: service, logLevel: "off" });
 * const squares = Dataset.range(100).map((x) => x * x)
 *   .distribute({ service, processingMode: "DYNAMIC" });
 * let count = 0;
 * for await (const _square of squares) count++;
 * console.log(count); // 100
 * ```
 */
export async function serveWorker(config: WorkerServerConfig): Promise<WorkerServer> {
  const { sandbox = false, tokens } = config;
  if (sandbox !== false && tokens !== undefined && "file" in tokens) {
    const options = sandbox === true ? {} : sandbox;
    await requireSecretsOutside(options, [{ what: "tokens.file", path: tokens.file }]);
  }
  // Loaded lazily: most programs never serve.
  const { takeUpWorker } = await import("./worker_role.ts");
  return new Server(config, takeUpWorker);
}

class Server implements WorkerServer {
  readonly name: string;
  readonly failed: Promise<LeatError>;
  readonly #node: ServiceNode | PrivateNode;
  readonly #leaveProcess: () => void;
  readonly #playing: Playing;
  #draining: Promise<void> | undefined;
  #selfCheck: Timer | undefined;
  #closed: Promise<void> | undefined;

  constructor(config: WorkerServerConfig, takeUp: typeof takeUpWorker) {
    checkWorkerConfig(config);
    const dispatcher = serviceAddress(config.dispatcher, "The dispatcher's address");
    const { sandbox = false, runawayThreadsMax = Infinity } = config;
    checkTags(config.tags);
    // Checked before listening: an impossible grant is the caller's mistake.
    const grants = grantsOf(sandbox);
    this.#node = config.local === true ? privateNode(config, dispatcher) : new ServiceNode({
      ...config,
      hostname: config.hostname ?? defaultInterface(dispatcher),
    }, { mayDial: (node) => node === dispatcher, dialling: { service: dispatcher } });
    const { system, address } = this.#node;
    this.#leaveProcess = admitWorker(system, dispatcher);
    this.name = config.name ?? address;
    const refused = Promise.withResolvers<LeatError>();
    this.failed = Promise.race([refused.promise, system.failed]);
    this.#playing = takeUp(system, workerRole(config, dispatcher, this.name, grants), {
      onRefused: refused.resolve,
      onRunaways: (count) => {
        if (count >= runawayThreadsMax) refused.resolve(runAway(this.name, count));
      },
    });
    this.#checkOwnAddress(this.#playing.actor as FencedRef<WorkerProtocol>);
  }

  get address(): string {
    return this.#node.address;
  }

  async close({ drainTimeoutMs = 0 }: WorkerCloseOptions = {}): Promise<void> {
    // A second call that does not drain ends the draining of the first.
    if (this.#closed === undefined && drainTimeoutMs > 0) {
      await (this.#draining ??= this.#drain(drainTimeoutMs));
    }
    await (this.#closed ??= this.#stop());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #drain(timeoutMs: number): Promise<void> {
    const { system } = this.#node;
    // A worker that gave up has nothing to drain.
    await system.ask(workerAt(this.address), "drain", { timeoutMs }, {
      timeoutMs: timeoutMs + DRAIN_MARGIN_MS,
    }).catch(() => false);
    await this.#node.flushed();
  }

  async #stop(): Promise<void> {
    const { system } = this.#node;
    this.#selfCheck?.cancel();
    // If this does not arrive, the dispatcher times the worker out.
    await system.ask(workerAt(this.address), "leave", null, { timeoutMs: LEAVE_TIMEOUT_MS })
      .catch(() => null);
    await this.#node.stop();
    this.#leaveProcess();
    await this.#playing.close();
  }

  /** Logs whether the worker can reach the address it advertises, and later when it can. */
  async #checkOwnAddress(worker: FencedRef<WorkerProtocol>, failures = 0): Promise<void> {
    const { world } = this.#node.system;
    try {
      await this.#node.dial(worker);
      if (failures > 0) world.log("info", `Worker "${this.name}" answers at ${this.address} now`);
      return;
    } catch (error) {
      if (this.#closed !== undefined) return;
      if (failures === 0) {
        world.log(
          "warn",
          `Worker "${this.name}" does not reach the address that it advertises, ${this.address} ` +
            `(${
              LeatError.from(error).message
            }). Unless this host alone cannot, no client will: set ` +
            "one that others reach (--advertise HOST[:PORT])",
        );
      }
    }
    this.#selfCheck = world.timer(SELF_CHECK_MS, () => this.#checkOwnAddress(worker, failures + 1));
  }
}

/** Where a worker listens by default: beyond this machine only if its dispatcher is beyond it. */
function defaultInterface(dispatcher: string): string {
  return isLoopbackHost(new URL(dispatcher).hostname) ? "127.0.0.1" : "0.0.0.0";
}

function runAway(name: string, count: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `Worker "${name}" gives up: ${count} of its threads were asked to end and have not: their functions ` +
      "never yield, or they never loaded. They stay until its process ends. Restart it",
  );
}

/** A worker that does not listen accepts no options about listening. */
function privateNode(config: WorkerServerConfig, dispatcher: string): PrivateNode {
  const listening = ["hostname", "port", "advertise", "cert", "key", "insecure", "tokens"] as const;
  const given = listening.filter((name) => config[name] !== undefined);
  if (given.length === 0) return new PrivateNode(config, dispatcher);
  throw new LeatError(
    "invalid_argument",
    `A worker with local: true listens on nothing, so that ${
      given.join(", ")
    } has no meaning; leave ` +
      "one of the two out",
  );
}

function checkTags(tags: readonly string[] = []): void {
  if (tags.every((tag) => typeof tag === "string" && tag !== "")) return;
  throw new LeatError("invalid_argument", "The tags of a worker are words: none may be empty");
}

function workerRole(
  config: WorkerServerConfig,
  dispatcher: string,
  name: string,
  sandbox: SandboxGrants | undefined,
): WorkerRole {
  const { tags, heartbeatMs, dispatcherTimeoutMs, skipAfterMs, roundsBytesMax } = config;
  const { windowBytesMax = defaultWindowBytes() } = config;
  const { runawayAfterMs } = config;
  const { storage, storageLatencyMs, imageBytesMax, services } = config;
  const { ownProcess = false, local = false } = config;
  const { token, ca } = config;
  const ownService = {
    [dispatcher]: {
      ...(token === undefined ? {} : { token }),
      ...(ca === undefined ? {} : { ca }),
    },
  };
  return {
    role: "worker",
    dispatcher,
    config: {
      name,
      process: PROCESS_ID,
      ...(local ? { isPrivate: true } : {}),
      ...(tags === undefined ? {} : { tags }),
      ...(heartbeatMs === undefined ? {} : { heartbeatMs }),
      ...(dispatcherTimeoutMs === undefined ? {} : { dispatcherTimeoutMs }),
      windowBytesMax,
      ...(skipAfterMs === undefined ? {} : { skipAfterMs }),
      ...(roundsBytesMax === undefined ? {} : { roundsBytesMax }),
    },
    storage,
    storageLatencyMs,
    imageBytesMax,
    services: { ...ownService, ...services },
    ownProcess,
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(runawayAfterMs === undefined ? {} : { runawayAfterMs }),
  };
}
