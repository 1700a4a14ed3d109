/**
 * Nodes on threads of their own, and how they find each other. The hub starts and controls the
 * threads. When a node first sends to another, the hub connects the two by a channel; their
 * messages never pass through the hub's thread.
 */
import * as comlink from "comlink";
import {
  closedThere,
  type Connector,
  type Link,
  type NodeId,
  unknownNode,
} from "../actors/runtime/link.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import type { World } from "../actors/runtime/world.ts";
import { LeatError } from "../core/error.ts";
import { GoneNodes, HubLinks } from "./hub_links.ts";
import { OwnedThreads } from "./start_thread.ts";
import { type Introducer, type Introduction, outcomeOf } from "./thread_control.ts";
import { type HubMember, ThreadNode, type ThreadNodeOptions } from "./thread_node.ts";
import { portLink } from "./web_worker.ts";

interface ThreadHubOptions {
  readonly world: World;
  /** The program of the threads: `platform/threads/thread_entry.ts`, or one with the same interface. */
  readonly entry: URL;
}

export class ThreadHub implements AsyncDisposable {
  readonly #options: ThreadHubOptions;
  readonly #members = new Map<string, HubMember>();
  readonly #starting = new Map<string, Promise<unknown>>();
  readonly #threads = new Set<ThreadNode>();
  /** By name, to tell "it is gone" from "there is none". */
  readonly #gone = new GoneNodes();
  /** By a node's name: the names of its peers, each with the node's id when they were connected. */
  readonly #joined = new Map<string, Map<string, NodeId>>();
  #closed = false;

  /** For systems on the hub's own thread; reaches every node of the hub. */
  readonly connector: Connector = {
    connect: async (node, local) => {
      const { remote, port } = await this.#introduce(local, node, () => true);
      const link = portLink(port, remote);
      this.#local(local.node)?.track(link);
      return link;
    },
  };

  constructor(options: ThreadHubOptions) {
    this.#options = options;
  }

  /** The nodes that can be reached, by name. */
  get nodes(): string[] {
    return [...this.#members.keys()];
  }

  /**
   * Makes a system of this thread reachable. The returned function disconnects it, as if it died.
   * @throws LeatError `already_exists` when the name is taken.
   */
  add(system: ActorSystem): () => void {
    const member = new LocalMember(system);
    const { name } = member;
    this.#checkFree(name);
    this.#admit(member);
    return () => {
      // Later the name may be another member's.
      if (this.#members.get(name) !== member) return;
      this.#leave(member, new LeatError("unavailable", `${name} was cut off`));
    };
  }

  /**
   * Starts a thread and a node on it.
   * @throws LeatError `already_exists` when the name is taken, `deadline_exceeded` when the thread
   * takes too long, `unavailable` when it dies first, and whatever `setup` throws.
   */
  async startNode(options: ThreadNodeOptions): Promise<ThreadNode> {
    const { name } = options;
    if (this.#closed) throw new LeatError("cancelled", "The hub has been closed");
    this.#checkFree(name);
    const started = this.#startThread(options);
    this.#starting.set(name, started);
    try {
      return await started;
    } finally {
      this.#starting.delete(name);
    }
  }

  /** Stops all threads in order, newest first. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#starting.values());
    for (const thread of [...this.#threads].reverse()) await thread.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #startThread(options: ThreadNodeOptions): Promise<ThreadNode> {
    const { world, entry } = this.#options;
    const owned = new OwnedThreads();
    const introducer: Introducer = {
      introduce: async (local, node) => {
        const isAlive = () => !thread.isEnded;
        const outcome = await outcomeOf(() => this.#introduce(local, node, isAlive));
        if ("error" in outcome) return outcome;
        return comlink.transfer(outcome, [outcome.value.port]);
      },
      runThread: (id, program, name, port) => owned.run(id, program, name, port),
      endThread: (id) => owned.end(id),
      endNode: (reason) => thread.terminate(LeatError.fromWire(reason)),
    };
    const thread: ThreadNode = new ThreadNode(world, entry, options.name, introducer, (error) => {
      this.#threads.delete(thread);
      owned.close();
      this.#leave(thread, error);
    });
    this.#threads.add(thread);
    try {
      await thread.start(options);
    } catch (error) {
      thread.terminate(LeatError.from(error));
      throw error;
    }
    this.#admit(thread);
    return thread;
  }

  /** A name is taken as soon as its thread starts: no other member gets it, until it has ended. */
  #checkFree(name: string): void {
    if (!this.#members.has(name) && !this.#starting.has(name)) return;
    throw new LeatError("already_exists", `There is already a node named "${name}" here`);
  }

  #admit(member: HubMember): void {
    this.#members.set(member.name, member);
    this.#gone.delete(member.name);
  }

  /**
   * Removes a member, or a thread that is still setting up. Notifies the nodes connected with it:
   * ports do not report a thread's end.
   */
  #leave(member: HubMember, error: LeatError): void {
    const { name } = member;
    const gone = closedThere(error);
    this.#members.delete(name);
    this.#gone.add(name, error);
    const peers = this.#joined.get(name);
    this.#joined.delete(name);
    for (const [peer, id] of peers ?? []) {
      this.#joined.get(peer)?.delete(name);
      this.#reachable(peer)?.gone(id, gone);
    }
    if (member instanceof LocalMember) member.cut(error);
  }

  /** Connects `source` with `node`, unless `isAlive` says that `source` has ended. */
  async #introduce(source: NodeId, node: string, isAlive: () => boolean): Promise<Introduction> {
    await this.#starting.get(node)?.catch(() => {});
    const target = this.#members.get(node);
    if (target === undefined || !isAlive()) throw this.#unknown(node);
    this.#join(source, node);
    this.#join(target.id, source.node);
    const { port1, port2 } = new MessageChannel();
    try {
      await target.accept(source, port2);
    } catch (error) {
      port1.close();
      throw error;
    }
    return { remote: target.id, port: port1 };
  }

  #unknown(node: string): LeatError {
    const error = this.#gone.get(node);
    if (error !== undefined) {
      return new LeatError("unavailable", `Node "${node}" is gone: ${error.message}`, {
        cause: error,
      });
    }
    const known = this.nodes.join(", ") || "none";
    return unknownNode(`There is no node "${node}" here (there are: ${known})`);
  }

  #join(id: NodeId, peer: string): void {
    this.#joined.getOrInsertComputed(id.node, () => new Map()).set(peer, id);
  }

  /** Includes a thread that is still setting up: its actors may already send. */
  #reachable(name: string): HubMember | undefined {
    return this.#members.get(name) ?? [...this.#threads].find((thread) => thread.name === name);
  }

  #local(node: string): LocalMember | undefined {
    const member = this.#members.get(node);
    return member instanceof LocalMember ? member : undefined;
  }
}

/** A node on the hub's own thread. */
class LocalMember implements HubMember {
  readonly name: string;
  readonly id: NodeId;
  readonly #system: ActorSystem;
  readonly #links = new HubLinks();

  constructor(system: ActorSystem) {
    this.id = system.id;
    this.name = system.id.node;
    this.#system = system;
  }

  accept(remote: NodeId, port: MessagePort): void {
    const link = portLink(port, remote);
    this.track(link);
    this.#system.attach(link);
  }

  track(link: Link): void {
    this.#links.track(link);
  }

  gone(remote: NodeId, error: LeatError): void {
    this.#links.close(remote, error);
  }

  cut(error: LeatError): void {
    this.#links.closeAll(error);
  }
}
