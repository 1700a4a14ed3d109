/** A service with TLS must not lead its clients to connections that others can read. */
import { Homes } from "../../platform/nodes/client_homes.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { LeatError } from "../../mod.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { until } from "../lib/until.ts";

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
  const source: Ref<ElementSourceProtocol> = { node: `ws://127.0.0.1:${port}`, path: "/task" };
  const open = (service: string) => {
    const home = new Homes().open(service, {});
    const error = assertRejects(
      () => home.system.ask(source, "stats", null, { timeoutMs: 60_000 }),
      LeatError,
    );
    return { home, error };
  };
  const encrypted = open("wss://127.0.0.1:1");
  const { code, message } = await encrypted.error;
  encrypted.home.release();
  assertEquals({ code, dialled }, { code: "unavailable", dialled: 0 });
  assertStringIncludes(message, "has no TLS, but wss://127.0.0.1:1 has");
  // A service without TLS may have such workers.
  const plain = open("ws://127.0.0.1:1");
  await until(() => dialled > 0);
  plain.home.release();
  await plain.error;
  listener.close();
  await accepting;
});
