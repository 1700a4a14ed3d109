/** A service with TLS must not lead its clients to connections that others can read. */
import { Homes } from "../../platform/nodes/client_homes.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { LeatError } from "../../mod.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";

Deno.test("a client of a service with TLS dials no worker without it", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  let dialled = 0;
  const accepting = (async () => {
    for await (const conn of listener) {
      dialled++;
      conn.close();
    }
  })();
  const ask = async (service: string) => {
    const home = new Homes().open(service, {});
    const source: Ref<ElementSourceProtocol> = { node: `ws://127.0.0.1:${port}`, path: "/task" };
    const asked = home.system.ask(source, "stats", null, { timeoutMs: 1_000 });
    const error = await assertRejects(() => asked, LeatError);
    home.release();
    return error;
  };
  const { code, message } = await ask("wss://127.0.0.1:1");
  assertEquals({ code, dialled }, { code: "unavailable", dialled: 0 });
  assertStringIncludes(message, "has no TLS, but wss://127.0.0.1:1 has");
  await ask("ws://127.0.0.1:1");
  assertEquals(dialled > 0, true, "a service without TLS may have such workers");
  listener.close();
  await accepting;
});
