/** What a server's port accepts as a request, and its answers to anything else. */
import { NoRequest, parseHead } from "../../../transport/web_socket/http/http_request.ts";
import { serveWebSocket } from "../../../transport/web_socket/server.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assertEquals, assertMatch, assertThrows } from "../../assert.ts";

const GOOD = "GET /a?b=c HTTP/1.1\r\nHost: x:1\r\nAccept:  */* \r\nX-Two: 1\r\nX-Two: 2";

Deno.test("parseHead reads method, address and headers", () => {
  const { method, url, headers } = parseHead(GOOD);
  assertEquals([method, url.href], ["GET", "http://x:1/a?b=c"]);
  assertEquals([...headers], [["accept", "*/*"], ["host", "x:1"], ["x-two", "1, 2"]]);
});

Deno.test("parseHead takes HTTP/1.0 without a host", () => {
  assertEquals(parseHead("GET /healthz HTTP/1.0").url.href, "http://localhost/healthz");
});

Deno.test("parseHead takes a whole URL, whose host precedes the header's", () => {
  const { url } = parseHead("GET http://y:2/a?b=http://z/ HTTP/1.1\r\nHost: x");
  assertEquals(url.href, "http://y:2/a?b=http://z/");
});

const BAD: readonly string[] = [
  "",
  "GET",
  "get / HTTP/1.1\r\nHost: x",
  "GET http://x/ HTTP/1.1",
  "GET http://u@x/ HTTP/1.1\r\nHost: x",
  "GET / HTTP/2\r\nHost: x",
  "GET / HTTP/1.1\r\nHost: a b",
  "GET / HTTP/1.1\r\nHost: user@x",
  "GET / HTTP/1.1\r\nHost: x\r\n folded",
  "GET / HTTP/1.1\r\nHost : x",
  "GET / HTTP/1.1\r\nHost: x\r\nA: \0",
  "GET / HTTP/1.1\r\nHost: x\nA: b",
  "GET / HTTP/1.1",
  "GET /healthz HTTP/1.1",
  "GET /healthz HTTP/1.1\r\nHost: ",
];

for (const text of BAD) {
  Deno.test(`parseHead refuses ${JSON.stringify(text)}`, () => {
    assertEquals(assertThrows(() => parseHead(text), NoRequest).status, 400);
  });
}

Deno.test("parseHead refuses a long header without trying its spaces in every way", () => {
  const text = `GET / HTTP/1.1\r\nHost: x\r\nA:${" ".repeat(4_000_000)}\0`;
  assertThrows(() => parseHead(text), NoRequest, "No valid header");
});

const UPGRADE = "GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n";

/** A server's answer to these bytes, until it closes. */
async function answerTo(...parts: (string | Uint8Array)[]): Promise<string> {
  const world = new DenoWorld({ logLevel: "off" });
  const local = () => ({ node: "listener", incarnation: "0" });
  const listen = { hostname: "127.0.0.1", port: 0, helloTimeoutMs: 60_000 };
  const server = serveWebSocket({ ...listen, world, local, onLink: () => {} });
  try {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    for (const part of parts) {
      await conn.write(typeof part === "string" ? new TextEncoder().encode(part) : part);
      await new Promise((resolve) => setTimeout(resolve));
    }
    const bytes = new Uint8Array(65_536);
    let length = 0;
    for (;;) {
      const count = await conn.read(bytes.subarray(length));
      if (count === null) return new TextDecoder().decode(bytes.subarray(0, length));
      length += count;
    }
  } finally {
    await server.close();
  }
}

Deno.test("a server answers a request that comes in pieces, and closes", async () => {
  const answer = await answerTo("GE", "T / HTTP/1.1\r\nhost: 127.0.0.1\r\n", "\r", "\n");
  assertMatch(answer, /^HTTP\/1\.1 426 Upgrade Required\r\n/);
  assertMatch(answer, /^connection: close, upgrade\r$/m);
});

Deno.test("a server refuses an invalid request, an endless head, and an upgrade without a key", async () => {
  assertMatch(await answerTo("\x16\x03\x01"), /^HTTP\/1\.1 400 /);
  assertMatch(await answerTo("GET / HTTP/1.1\r\nbad\r\n\r\n"), /^HTTP\/1\.1 400 /);
  assertMatch(await answerTo(`GET / HTTP/1.1\r\nx: ${"x".repeat(17_000)}`), /^HTTP\/1\.1 431 /);
  assertMatch(await answerTo(`${UPGRADE}\r\n`), /^HTTP\/1\.1 400 /);
});

Deno.test("a server tells an upgrade of another version which version there is", async () => {
  const answer = await answerTo(`${UPGRADE}sec-websocket-version: 8\r\n\r\n`);
  assertMatch(answer, /^HTTP\/1\.1 426 /);
  assertMatch(answer, /^sec-websocket-version: 13\r$/m);
});

Deno.test("a server answers HEAD without a body", async () => {
  const answer = await answerTo("HEAD / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  assertMatch(answer, /^content-length: \d\d\r$/m);
  assertMatch(answer, /\r\n\r\n$/);
});
