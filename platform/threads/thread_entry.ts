/** The program of a thread that runs a node. The hub requests the start of the node. */
import * as comlink from "comlink";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import type { FencedRef } from "../../actors/runtime/ref.ts";
import { type ActorKind, ActorSystem } from "../../actors/runtime/system.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import { connectorByScheme } from "../../transport/connectors.ts";
import { HubLinks } from "../../transport/hub_links.ts";
import type { StartThread } from "../../transport/start_thread.ts";
import {
  type Introducer,
  type NodeContext,
  type NodeParts,
  type NodeSetup,
  type NodeStart,
  type Outcome,
  outcomeOf,
  type ThreadControl,
  valueOf,
} from "../../transport/thread_control.ts";
import { portLink } from "../../transport/web_worker.ts";
import { DenoWorld, type DenoWorldOptions } from "../deno_world.ts";
import { guardExits } from "./exit_guard.ts";

/** The thread's side of the hub's calls. */
class NodeThread implements ThreadControl {
  readonly #links = new HubLinks();
  #system: ActorSystem | undefined;
  #parts: NodeParts = {};
  #kinds: Readonly<Record<string, ActorKind>> = {};
  /** Kept as long as the thread runs: comlink abandons the calls of a proxy that is garbage-collected. */
  #introducer: comlink.Remote<Introducer> | undefined;
  #lastThread = 0;

  start(start: NodeStart, introductions: MessagePort): Promise<Outcome<NodeId>> {
    this.#introducer = comlink.wrap<Introducer>(introductions);
    return outcomeOf(() => this.#start(start));
  }

  connect(remote: NodeId, port: MessagePort): void {
    this.#running().attach(this.#link(remote, port));
  }

  gone(remote: NodeId, error: WireError): void {
    this.#links.close(remote, LeatError.fromWire(error));
  }

  spawn(kind: string, name: string, config: unknown): Promise<Outcome<FencedRef>> {
    return outcomeOf(() => {
      if (!Object.hasOwn(this.#kinds, kind)) {
        const kinds = Object.keys(this.#kinds).join(", ") || "none";
        throw new LeatError(
          "not_found",
          `This node starts no actors of kind "${kind}" (it starts: ${kinds})`,
        );
      }
      return this.#running().spawn({ kind, ...this.#kinds[kind]!(config), name });
    });
  }

  stop(): Promise<Outcome<null>> {
    return outcomeOf(async () => {
      await this.#system?.stop();
      await this.#parts.stopped?.();
      return null;
    });
  }

  async #start({ name, module, config, world: options }: NodeStart): Promise<NodeId> {
    const { setup } = await import(module) as { setup?: NodeSetup };
    if (typeof setup !== "function") {
      throw new LeatError("invalid_argument", `${module} exports no function "setup"`);
    }
    const world = new DenoWorld(options as DenoWorldOptions | undefined);
    const startThread = this.#startThread;
    const endNode = (reason: LeatError) => void this.#introducer!.endNode(reason.toWire());
    const context: NodeContext = { node: name, world, config, startThread, endNode };
    this.#parts = await setup(context);
    const { kinds = {}, supervision, connectors = {}, started } = this.#parts;
    this.#kinds = kinds;
    this.#system = new ActorSystem({
      node: name,
      world,
      kinds,
      connector: connectorByScheme(connectors, {
        connect: (node, local) => this.#dial(node, local),
      }),
      ...(supervision === undefined ? {} : { supervision }),
    });
    await started?.(this.#system);
    return this.#system.id;
  }

  readonly #startThread: StartThread = (program, name, port, onDeath) => {
    const id = ++this.#lastThread;
    const hub = this.#introducer!;
    const ended = hub.runThread(id, program, name, comlink.transfer(port, [port]));
    let wasEnded = false;
    ended.catch((error) => LeatError.from(error).message).then((why) => {
      if (!wasEnded) onDeath(why);
    });
    return () => {
      wasEnded = true;
      hub.endThread(id);
    };
  };

  async #dial(node: string, local: NodeId): Promise<Link> {
    const { remote, port } = valueOf(await this.#introducer!.introduce(local, node));
    return this.#link(remote, port);
  }

  #link(remote: NodeId, port: MessagePort): Link {
    const link = portLink(port, remote);
    this.#links.track(link);
    return link;
  }

  #running(): ActorSystem {
    if (this.#system === undefined) {
      throw new LeatError("failed_precondition", "There is no node on this thread yet");
    }
    return this.#system;
  }
}

// With "inline" runners, user functions run on this thread and could end it.
guardExits((call) =>
  `Code on a node's thread called ${call}, which would end the node: throw an error instead`
);

// This comes before any `await`: messages that arrive before it would be lost.
comlink.expose(new NodeThread());
