/**
 * A viewer asks for a large page on many connections, and reads none of the answers. They wait for
 * it in the memory of the server, which must not grow with the connections.
 */
import { dispatcherPages } from "../../server/pages/dispatcher_pages.ts";
import type { Timer } from "../../actors/runtime/world.ts";
import type { DispatcherDescription } from "../../mod.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { TokenSet } from "../../transport/web_socket.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { until } from "../lib/until.ts";
import { Listener } from "../transport/web_socket/strangers.ts";

/** More than the buffers of a connection take. */
const PAGE = new Uint8Array(64 * 2 ** 20);
const CONNECTIONS = 50;

/** A world whose time limits no machine reaches: the server gives up an answer that is not read. */
class PatientWorld extends DenoWorld {
  override timer(delayMs: number, fn: () => void): Timer {
    return super.timer(20 * delayMs, fn);
  }
}

const named = (name: string) => ({
  token: `token-of-${name}-0123`,
  identity: { name, role: "viewer" as const },
});
const bearer = (name: string) => ({ authorization: `Bearer ${named(name).token}` });

Deno.test("a viewer that does not read its pages gets a few; others, and itself later, are served", async () => {
  let shown = 0;
  await using listener = new Listener({
    world: new PatientWorld({ logLevel: "off" }),
    tokens: new TokenSet([named("eyes"), named("others")]),
    pages: {
      home: "/",
      open: "/open",
      roles: ["viewer"],
      answer: (path) => {
        shown++;
        const body = path === "/large" ? PAGE : new Uint8Array();
        return Promise.resolve({ status: 200, headers: {}, body });
      },
    },
  });
  const { port } = listener.server;
  const page = (path: string) => `http://127.0.0.1:${port}${path}`;
  const asked: Deno.Conn[] = [];
  const firstLines: string[] = [];
  for (let i = 0; i < CONNECTIONS; i++) {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    asked.push(conn);
    const { authorization } = bearer("eyes");
    const request = `GET /large HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`;
    await conn.write(new TextEncoder().encode(request));
    const bytes = new Uint8Array(20);
    const count = await conn.read(bytes);
    firstLines.push(new TextDecoder().decode(bytes.subarray(0, count ?? 0)));
  }
  try {
    const answered = firstLines.filter((line) => line.startsWith("HTTP/1.1 200")).length;
    assert(answered > 0 && answered <= 10, `${answered} unread pages of one viewer`);
    assertEquals(shown, answered);
    const refused = await fetch(page("/"), { headers: bearer("eyes") });
    assertEquals(refused.status, 429);
    assertMatch(await refused.text(), /"eyes" has \d+ unfinished requests for pages, .*read/);
    for (const [path, headers] of [["/open", {}], ["/", bearer("others")]] as const) {
      const response = await fetch(page(path), { headers });
      await response.body?.cancel();
      assertEquals(response.status, 200, path);
    }
  } finally {
    for (const conn of asked) conn.close();
  }
  await until(async () => {
    const response = await fetch(page("/"), { headers: bearer("eyes") });
    await response.body?.cancel();
    return response.status === 200;
  }, 10);
});

Deno.test("concurrent requests share the bytes of the dispatcher's state and metrics", async () => {
  const state = { workers: [], jobs: [], scaling: { wanted: 0, jobs: [] } };
  const pages = dispatcherPages({
    describe: () => Promise.resolve(state as unknown as DispatcherDescription),
    hello: () => Promise.resolve(),
  });
  for (const path of ["/state", "/metrics"]) {
    const bodies = await Promise.all(
      Array.from({ length: 10 }, async () => (await pages.answer(path)!).body),
    );
    assertEquals(new Set(bodies).size, 1, path);
    assert((await pages.answer(path)!).body !== bodies[0], "a later request gets a new state");
  }
});
