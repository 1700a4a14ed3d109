/**
 * The fleet of a local cluster.
 *
 * @module
 */
import type { Connector } from "../actors/runtime/link.ts";
import { ActorSystem } from "../actors/runtime/system.ts";
import type { DurableLog } from "../actors/runtime/durable_log.ts";
import { DenoWorld } from "./deno_world.ts";
import type { Carrier, Fleet, FleetNode, FleetOptions } from "./fleet.ts";
import { InlineHub } from "./inline_hub.ts";
import { MemoryLog } from "./memory_log.ts";
import { type Role, takeUp } from "./roles.ts";
import { FRONT_KINDS } from "./service_kinds.ts";

/** See the module. */
export class LocalFleet implements Fleet {
  readonly home: ActorSystem;
  readonly #options: FleetOptions;
  readonly #hub = new InlineHub();
  readonly #nodes = new Set<FleetNode>();

  constructor(name: string, options: FleetOptions = {}) {
    this.#options = options;
    this.home = this.#system(`${name}-home`, this.#hub.connector);
    this.#hub.add(this.home);
  }

  async start(carrier: Carrier, name: string, role: Role): Promise<FleetNode> {
    if (carrier !== "inline") throw new Error("later");
    const node = this.#startInline(name, role);
    this.#nodes.add(node);
    return await Promise.resolve(node);
  }

  async close(): Promise<void> {
    for (const node of [...this.#nodes].reverse()) await node.stop();
    await this.home.stop();
  }

  #startInline(name: string, role: Role): FleetNode {
    const system = this.#system(name, this.#hub.connector, role);
    this.#hub.add(system);
    const playing = takeUp(system, role);
    const stop = async () => {
      await system.stop();
      this.#hub.cut(system);
      await playing.close();
    };
    return {
      id: system.id,
      carrier: "inline",
      stop,
      kill: () => {
        this.#hub.cut(system);
        return stop();
      },
    };
  }

  #system(node: string, connector: Connector, role?: Role): ActorSystem {
    const folder = role?.role === "dispatcher" ? role.journalFolder : undefined;
    const world = new DenoWorld({
      logLevel: this.#options.logLevel ?? "warn",
      ...(folder === undefined ? { openLog } : { logFolder: folder }),
    });
    return new ActorSystem({ node, world, connector, kinds: FRONT_KINDS });
  }
}

function openLog(): Promise<DurableLog> {
  return Promise.resolve(new MemoryLog());
}
