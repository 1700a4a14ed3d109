/** Another process for tests of links: dials a node, prints that, and stays. */
import { webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld } from "../../platform/deno_world.ts";

const connector = webSocketConnector({
  world: new DenoWorld({ logLevel: "off" }),
  connectTimeoutMs: 60_000,
});
const link = await connector.connect(Deno.args[0]!, { node: "child", incarnation: "1" });
link.start(() => {});
console.log("linked");
