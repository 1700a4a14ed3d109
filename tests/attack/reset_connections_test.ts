/** A stranger who resets connections before a server accepts them. */
import { fileURLToPath } from "node:url";
import { DenoWorld } from "../../platform/deno_world.ts";
import { assert, assertEquals } from "../assert.ts";
import { assertServes, Listener } from "../transport/web_socket/strangers.ts";

const RESET = 64;

/** A world with the lines that are logged. */
class LoggedWorld extends DenoWorld {
  readonly lines: string[] = [];
  override log(_level: unknown, message: string): void {
    this.lines.push(message);
  }
}

/** Blocks this thread, so that none of the connections is accepted before it is reset. */
function reset(port: number): void {
  const fixture = fileURLToPath(import.meta.resolve("./fixture_resets.ts"));
  const args = ["run", "--quiet", "--allow-net=127.0.0.1", fixture, `${port}`, `${RESET}`];
  const { success, stderr } = new Deno.Command("deno", { args }).outputSync();
  assert(success, new TextDecoder().decode(stderr));
}

Deno.test("connections that are reset before they are accepted keep nobody waiting, and are not logged", async () => {
  const world = new LoggedWorld({ logLevel: "info" });
  await using listener = new Listener({ world });
  reset(listener.server.port);
  await assertServes(listener.server.address);
  assertEquals(world.lines, []);
});
