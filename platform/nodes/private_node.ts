/** A node that does not listen. Others reach it over links that it has dialled, or from its thread. */
import { ActorSystem } from "../../actors/runtime/system.ts";
import { diallerName, webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld } from "../deno_world.ts";
import { NodeTokens } from "./node_tokens.ts";
import type { ServiceNodeConfig } from "./service_node.ts";
import { PROXY_KINDS } from "./service_kinds.ts";

export class PrivateNode {
  readonly system: ActorSystem;

  /** @param dispatcher The only node that it dials. */
  constructor(
    { token, ca, logLevel }: Pick<ServiceNodeConfig, "token" | "ca" | "logLevel">,
    dispatcher: string,
  ) {
    const world = new DenoWorld({
      logsInMemory: true,
      ...(logLevel === undefined ? {} : { logLevel }),
    });
    const node = diallerName("local-worker", world.random.hex64(), token);
    const own = token === undefined ? {} : { token };
    const tokens = new NodeTokens(world, own, { service: dispatcher });
    this.system = new ActorSystem({
      node,
      world,
      kinds: PROXY_KINDS,
      connector: webSocketConnector({
        world,
        credentials: (address) => tokens.credentialFor(address, node),
        ...(ca === undefined ? {} : { ca }),
      }),
    });
  }

  /** The node's name. It is not a URL, so nobody can dial it. */
  get address(): string {
    return this.system.id.node;
  }

  /** Always succeeds: there is no advertised address to check. */
  dial(): Promise<void> {
    return Promise.resolve();
  }

  /** Resolves at once: messages within a thread have arrived already. */
  flushed(): Promise<void> {
    return Promise.resolve();
  }

  stop(): Promise<void> {
    return this.system.stop();
  }
}
