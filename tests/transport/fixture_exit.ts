/** A program that joins two nodes over a WebSocket, closes everything and does not call `exit`. */
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { serveWebSocket } from "../../transport/web_socket/server.ts";
import { DenoWorld } from "../../platform/deno_world.ts";

const world = new DenoWorld({ logLevel: "off" });
const far = new ActorSystem({ node: "far", world });
const server = serveWebSocket({
  world,
  hostname: "127.0.0.1",
  port: 0,
  helloTimeoutMs: 60_000,
  local: () => far.id,
  onLink: (link) => far.attach(link),
});
const connector = webSocketConnector({ world, connectTimeoutMs: 60_000 });
const near = new ActorSystem({ node: "near", world, connector });
await near.ask(nodeActorOf(server.address), "list", null, { timeoutMs: 3_600_000 });
// An uncancelled ask of a missing actor would leave a deadline an hour away.
near.ask(nodeActorOf("ws://127.0.0.1:1"), "list", null, { timeoutMs: 3_600_000, attemptMs: 60_000 })
  .catch(() => {});
await near.stop();
await far.stop();
await server.close();
console.log("closed");
