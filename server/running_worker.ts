/** A worker's server: its node, its role, and how it ends. */
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { Timer } from "../actors/runtime/world.ts";
import { workerAt, type WorkerProtocol } from "../actors/worker/protocol.ts";
import { LeatError } from "../core/error.ts";
import { PrivateNode } from "../platform/nodes/private_node.ts";
import { admitWorker, PROCESS_ID } from "../platform/nodes/process_nodes.ts";
import { serviceAddress } from "../platform/nodes/service_address.ts";
import { isLoopbackHost } from "../transport/loopback.ts";
import { ServiceNode } from "../platform/nodes/service_node.ts";
import { grantsOf, type SandboxGrants } from "../platform/sandbox/grants.ts";
import type { RunningRole, WorkerRole } from "./roles.ts";
import { defaultWindowBytes } from "./window_memory.ts";
import { startWorkerRole, type WorkerHooks } from "./worker_role.ts";
import type { WorkerCloseOptions, WorkerServer, WorkerServerConfig } from "./worker_server.ts";
import { definedFields } from "../core/tree.ts";

/** Time limit for deregistering at the dispatcher, in ms. */
const LEAVE_TIMEOUT_MS = 500;
/** Added to the drain timeout, for the answer to arrive. */
const DRAIN_MARGIN_MS = 500;
/** How often the worker checks again while it cannot reach its own address, in ms. */
const SELF_CHECK_MS = 10_000;

export class RunningWorker implements WorkerServer {
  readonly name: string;
  readonly failed: Promise<LeatError>;
  readonly #node: ServiceNode | PrivateNode;
  readonly #undoAdmission: () => void;
  readonly #runningRole: RunningRole;
  #draining: Promise<void> | undefined;
  #selfCheck: Timer | undefined;
  #closed: Promise<void> | undefined;

  /** @param threads How runner threads start. Default: as threads of this process. */
  constructor(
    config: WorkerServerConfig,
    threads: Pick<WorkerHooks, "startThread" | "loadTimeoutMs"> = {},
  ) {
    const dispatcher = serviceAddress(config.dispatcher, "The dispatcher's address");
    const { sandbox = false, runawayThreadsMax = Infinity } = config;
    checkTls(config, dispatcher);
    // Checked before listening: an impossible grant is the caller's mistake.
    const grants = grantsOf(sandbox);
    this.#node = config.local === true ? privateNode(config, dispatcher) : new ServiceNode({
      ...config,
      hostname: config.hostname ?? defaultInterface(dispatcher),
    }, {
      mayDial: (node) => node === dispatcher,
      dialling: { service: dispatcher },
      sharesSlots: config.sharesSlots ?? true,
    });
    const { system, address } = this.#node;
    this.#undoAdmission = admitWorker(system, dispatcher);
    this.name = config.name ?? address;
    const gaveUp = Promise.withResolvers<LeatError>();
    this.failed = Promise.race([gaveUp.promise, system.failed]);
    this.#runningRole = startWorkerRole(system, workerRole(config, dispatcher, this.name, grants), {
      ...threads,
      onRefused: gaveUp.resolve,
      onRunaways: (count) => {
        if (count >= runawayThreadsMax) gaveUp.resolve(runawayError(this.name, count));
      },
      onNeverLoaded: () => {
        if (runawayThreadsMax < Infinity) gaveUp.resolve(neverLoadedError(this.name));
      },
    });
    this.#checkOwnAddress(this.#runningRole.actor as FencedRef<WorkerProtocol>);
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
    this.#undoAdmission();
    await this.#runningRole.close();
  }

  /** Warns if the worker cannot reach the address it advertises, and logs once it can. */
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
            }). If other hosts do not reach it either, no client can ` +
            "read from this worker: set an address that they reach (--advertise HOST[:PORT])",
        );
      }
    }
    this.#selfCheck = world.timer(SELF_CHECK_MS, () => this.#checkOwnAddress(worker, failures + 1));
  }
}

/** Where a worker listens by default: on all interfaces only if its dispatcher is on another machine. */
function defaultInterface(dispatcher: string): string {
  return isLoopbackHost(new URL(dispatcher).hostname) ? "127.0.0.1" : "0.0.0.0";
}

function runawayError(name: string, count: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `Worker "${name}" gives up: ${count} of its threads were asked to end and have not, because their ` +
      "functions never yield or because they never loaded. They stay until the process ends. " +
      "Restart the worker",
  );
}

function neverLoadedError(name: string): LeatError {
  return new LeatError(
    "unavailable",
    `Worker "${name}" gives up: one of its threads has neither loaded nor ended. Deno may have lost a ` +
      "wake-up, and then no thread of this process loads any more. Restart the worker",
  );
}

/** The node of a worker with `local: true`, which accepts no options about listening. */
function privateNode(config: WorkerServerConfig, dispatcher: string): PrivateNode {
  const listening = ["hostname", "port", "advertise", "cert", "key", "insecure", "tokens"] as const;
  const given = listening.filter((name) => config[name] !== undefined);
  if (given.length === 0) return new PrivateNode(config, dispatcher);
  throw new LeatError(
    "invalid_argument",
    `A worker with local: true does not listen: leave out local, or all of these: ${
      given.join(", ")
    }`,
  );
}

/** Refuses a worker without TLS at a dispatcher with TLS: clients would not read from it. */
function checkTls({ local, cert }: WorkerServerConfig, dispatcher: string): void {
  if (local === true || cert !== undefined || !dispatcher.startsWith("wss:")) return;
  throw new LeatError(
    "invalid_argument",
    `The dispatcher at ${dispatcher} has TLS, and so must its workers, because its clients send ` +
      "nothing without TLS: give this worker a certificate (cert and key; --cert, --key)",
  );
}

function workerRole(
  config: WorkerServerConfig,
  dispatcher: string,
  name: string,
  sandbox: SandboxGrants | undefined,
): WorkerRole {
  const { tags, heartbeatMs, dispatcherTimeoutMs, skipAfterMs, roundsBytesMax } = config;
  const { windowBytesMax = defaultWindowBytes(), runawayAfterMs } = config;
  const { storage, storageLatencyMs, imageBytesMax, services } = config;
  const { ownProcess = false, local = false, token, ca } = config;
  return {
    role: "worker",
    dispatcher,
    config: {
      name,
      process: PROCESS_ID,
      ...(local ? { isPrivate: true } : {}),
      windowBytesMax,
      ...definedFields({ tags, heartbeatMs, dispatcherTimeoutMs, skipAfterMs, roundsBytesMax }),
    },
    ...{ storage, storageLatencyMs, imageBytesMax },
    services: { [dispatcher]: definedFields({ token, ca }), ...services },
    ownProcess,
    ...definedFields({ sandbox, runawayAfterMs }),
  };
}
