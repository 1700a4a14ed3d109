/** The nodes of a local cluster: inline, on threads, or behind sockets. Each can reach all others. */
import type { Connector } from "../../actors/runtime/link.ts";
import { sleep } from "../../actors/runtime/timers.ts";
import { ActorSystem, type SystemOptions } from "../../actors/runtime/system.ts";
import type { LogLevel } from "../../actors/runtime/world.ts";
import { LeatError } from "../../core/error.ts";
import { connectorByScheme } from "../../transport/connectors.ts";
import { ThreadHub } from "../../transport/thread_hub.ts";
import type { ThreadNode } from "../../transport/thread_node.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld, type DenoWorldOptions } from "../../platform/deno_world.ts";
import type { Carrier, FleetNode } from "./fleet.ts";
import { InlineHub } from "../../platform/nodes/inline_hub.ts";
import { loadRole, type Role, type RolePrograms, type StartRole, supervisionOf } from "../roles.ts";
import { keptPort } from "../../platform/nodes/kept_port.ts";
import { PROXY_KINDS } from "../../platform/nodes/service_kinds.ts";
import { ServiceNode } from "../../platform/nodes/service_node.ts";

/** Literal `import()`s, so that a program without permission to read Leat's files can load them. */
const PROGRAMS: RolePrograms = {
  dispatcher: () => import("../dispatcher_role.ts"),
  worker: () => import("../worker_role.ts"),
  inlineRunners: () => import("../../platform/threads/inline_runners.ts"),
};

/** Limit of attempts to listen on a node's port, and the pause after each, in ms. */
const LISTEN_ATTEMPTS_MAX = 100;
const LISTEN_PAUSE_MS = 100;

export class LocalFleet {
  /** The node of the calling thread, where clients run. */
  readonly home: ActorSystem;
  readonly threads: ThreadHub;
  readonly #logLevel: LogLevel | "off";
  readonly #inline = new InlineHub();
  readonly #nodes = new Set<FleetNode>();
  readonly #starting = new Set<Promise<FleetNode>>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;
  /** Connects to the nodes of this process that listen on no socket. */
  readonly #near: Connector = {
    connect: (name, local, signal) =>
      (this.#inline.has(name) ? this.#inline.connector : this.threads.connector)
        .connect(name, local, signal),
  };
  /** Nodes that ended by themselves, and why. */
  readonly #givenUp = new Map<string, LeatError>();
  /** Ports of nodes behind sockets: a restarted node keeps its port. */
  readonly #ports = new Map<string, number>();

  constructor(name: string, logLevel: LogLevel | "off") {
    this.#logLevel = logLevel;
    const world = new DenoWorld(this.#worldOptions());
    const entry = new URL("../../platform/threads/thread_entry.ts", import.meta.url);
    this.threads = new ThreadHub({ world, entry });
    const connector = this.#connector(world);
    this.home = this.#system(`${name}-home`, world, {
      connector: {
        connect: (node, local, signal) => {
          const error = this.#givenUp.get(node);
          return error === undefined
            ? connector.connect(node, local, signal)
            : Promise.reject(error);
        },
      },
    });
    this.#admit(this.home);
  }

  /**
   * Starts a node with a role. The node's id is `name`; with `websocket`, its URL.
   * @throws LeatError `cancelled` after `close()`, and errors of starting it.
   */
  async start(carrier: Carrier, name: string, role: Role): Promise<FleetNode> {
    if (this.#isClosed) throw new LeatError("cancelled", "The local cluster has been closed");
    const started = this.#start(carrier, name, role);
    this.#starting.add(started);
    try {
      return await started;
    } finally {
      this.#starting.delete(started);
    }
  }

  async #start(carrier: Carrier, name: string, role: Role): Promise<FleetNode> {
    if (carrier === "thread") return await this.#startOnThread(name, role);
    const startRole = await loadRole(role, PROGRAMS);
    return carrier === "inline"
      ? this.#startInline(name, role, startRole)
      : await this.#startBehindSocket(name, role, startRole);
  }

  /** Makes requests to an ended node fail with `error` until the node is restarted. */
  giveUp(node: string, error: LeatError): void {
    this.#givenUp.set(node, error);
  }

  /** The carrier of the running node with this name. */
  carrierOf(name: string): Carrier | undefined {
    for (const { id, carrier } of this.#nodes) if (id.node === name) return carrier;
    return undefined;
  }

  /** Starts a thread with a node that the module's `setup` creates from `config`. */
  async startThread(name: string, module: string, config: unknown): Promise<ThreadNode> {
    return await this.threads.startNode({ name, module, config, world: this.#worldOptions() });
  }

  /** Stops every node, also those that are starting; resolves when all have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#starting);
    const ending = [...this.#ending];
    for (const node of [...this.#nodes].reverse()) {
      await node.stop().catch((error) => {
        this.home.world.log("warn", `${node.id.node} did not stop gracefully`, {
          error: LeatError.from(error).message,
        });
      });
    }
    await Promise.allSettled(ending);
    await this.home.stop();
    await this.threads.close();
  }

  /** Listens on the node's earlier port. Retries, because another node may be testing that port. */
  async #listen(name: string, role: Role): Promise<ServiceNode> {
    const { logFolder } = this.#worldOptions(role);
    const { world } = this.home;
    for (let attempts = 1;; attempts++) {
      const port = this.#ports.get(name) ??
        keptPort("127.0.0.1", (count) => world.random.int(count));
      try {
        return new ServiceNode({ port, logLevel: this.#logLevel }, {
          near: this.#near,
          supervision: supervisionOf(role),
          ...(logFolder === undefined ? {} : { logFolder }),
        });
      } catch (error) {
        const isInUse = LeatError.from(error).code === "already_exists";
        if (!isInUse || attempts === LISTEN_ATTEMPTS_MAX) throw error;
        await sleep(world, LISTEN_PAUSE_MS);
      }
    }
  }

  #startInline(name: string, role: Role, startRole: StartRole): FleetNode {
    const system = this.#system(name, new DenoWorld(this.#worldOptions(role)), {
      supervision: supervisionOf(role),
    });
    const cut = this.#admit(system);
    const runningRole = startRole(system);
    return this.#node("inline", role, system, cut, async () => {
      await system.stop();
      cut();
      await runningRole.close();
    });
  }

  async #startBehindSocket(name: string, role: Role, startRole: StartRole): Promise<FleetNode> {
    const node = await this.#listen(name, role);
    this.#ports.set(name, node.port);
    const leave = this.#admit(node.system);
    const runningRole = startRole(node.system);
    const cut = async () => {
      leave();
      await node.cut();
    };
    return this.#node("websocket", role, node.system, cut, async () => {
      await node.flushed();
      await node.stop();
      leave();
      await runningRole.close();
    });
  }

  async #startOnThread(name: string, role: Role): Promise<FleetNode> {
    const thread = await this.threads.startNode({
      name,
      module: import.meta.resolve("../service_thread.ts"),
      config: role,
      world: this.#worldOptions(role),
    });
    const { id } = thread;
    return this.#add({
      id,
      carrier: "thread",
      died: thread.closed,
      stop: () => thread.stop(),
      kill: () => Promise.resolve(thread.terminate()),
    });
  }

  /** Adds a node of this thread. Killing it first closes its links, so that it sends nothing more. */
  #node(
    carrier: Carrier,
    { role }: Role,
    { id, failed }: ActorSystem,
    cut: () => void | Promise<void>,
    stop: () => Promise<void>,
  ): FleetNode {
    return this.#add({
      id,
      carrier,
      died: role === "dispatcher" ? failed : new Promise(() => {}),
      stop,
      kill: async () => {
        await cut();
        await stop();
      },
    });
  }

  /**
   * Adds a node. `node.died` may also resolve after a requested end; the `died` of the returned node
   * does not.
   */
  #add(node: FleetNode): FleetNode {
    this.#givenUp.delete(node.id.node);
    let ended: Promise<void> | undefined;
    const death = Promise.withResolvers<LeatError>();
    node.died.then((reason) => {
      if (ended !== undefined) return;
      // Without the kill, remains of the node could collide with its restart.
      ended = node.kill().finally(() => {
        this.#nodes.delete(added);
        death.resolve(reason);
      });
    });
    const once = (end: () => Promise<void>) => () => {
      this.#nodes.delete(added);
      return ended ??= this.#end(end);
    };
    const added = {
      ...node,
      died: death.promise,
      stop: once(node.stop),
      kill: once(node.kill),
    };
    this.#nodes.add(added);
    return added;
  }

  /** Ends a node; `close` waits for it. */
  async #end(end: () => Promise<void>): Promise<void> {
    const ending = end();
    this.#ending.add(ending);
    try {
      await ending;
    } finally {
      this.#ending.delete(ending);
    }
  }

  /** Lets all nodes reach a system of this thread. The returned function disconnects it. */
  #admit(system: ActorSystem): () => void {
    this.#inline.add(system);
    const leave = this.threads.add(system);
    return () => {
      this.#inline.cut(system);
      leave();
    };
  }

  #system(
    node: string,
    world: DenoWorld,
    options: Pick<SystemOptions, "connector" | "supervision">,
  ): ActorSystem {
    return new ActorSystem({
      ...{ node, world, kinds: PROXY_KINDS, connector: this.#connector(world) },
      ...options,
    });
  }

  #connector(world: DenoWorld): Connector {
    const socket = webSocketConnector({ world });
    return connectorByScheme({ ws: socket, wss: socket }, this.#near);
  }

  #worldOptions(role?: Role): DenoWorldOptions {
    const logLevel = this.#logLevel;
    const folder = role?.role === "dispatcher" ? role.journalFolder : undefined;
    return folder === undefined
      ? { logLevel, logsInMemory: true }
      : { logLevel, logFolder: folder };
  }
}
