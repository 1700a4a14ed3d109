/**
 * A process with a node that listens, for tests that freeze or kill it. It first prints its
 * address.
 */
import { ActorSystem } from "../../actors/runtime/system.ts";
import { serveWebSocket } from "../../transport/web_socket/server.ts";
import { DenoWorld } from "../../platform/deno_world.ts";

/** The protocol of `/probe`. */
export interface Mirror {
  echo(value: unknown): unknown;
}

const world = new DenoWorld({ logLevel: "off" });
const server = serveWebSocket({
  world,
  hostname: "127.0.0.1",
  port: 0,
  helloTimeoutMs: 60_000,
  local: () => system.id,
  onLink: (link) => system.attach(link),
});
const system = new ActorSystem({ node: server.address, world });
system.spawn<Mirror>({
  name: "probe",
  create: () => ({ handlers: { echo: (value) => value } }),
});
console.log(`listening ${server.address}`);
