/**
 * Proofs of a token over real sockets: overheard, recorded, reflected or relayed proofs admit
 * nobody.
 */
import { Buffer } from "node:buffer";
import type { NodeId } from "../../../actors/runtime/link.ts";
import {
  webSocketConnector,
  type WebSocketServer,
  type WebSocketServerOptions,
} from "../../../transport/web_socket.ts";
import { NO_DISPATCHER } from "../../../transport/web_socket/connector.ts";
import { serveWebSocket } from "../../../transport/web_socket/server.ts";
import { Challenges } from "../../../transport/web_socket/tokens/authenticator.ts";
import {
  DiallerSide,
  idOf,
  proofOf,
  type Transcript,
} from "../../../transport/web_socket/tokens/proof.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { rejection } from "../../actors/runtime/nodes.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { StillWorld } from "../../lib/still_world.ts";
import { asking, knowing } from "../tokens.ts";

const TOKEN = "correct-horse-battery-staple";
const DIALLER: NodeId = { node: "dialler", incarnation: "00000000000000cc" };
const KEY = "AAAAAAAAAAAAAAAAAAAAAA==";
const world = new DenoWorld({ logLevel: "off" });

/** A node that requires a proof. Its name is its address. */
class Asking implements AsyncDisposable {
  readonly server: WebSocketServer;
  links = 0;

  constructor(options: Partial<WebSocketServerOptions> = {}) {
    this.server = serveWebSocket({
      hostname: "127.0.0.1",
      port: 0,
      helloTimeoutMs: 60_000,
      local: () => ({ node: this.server.address, incarnation: "00000000000000dd" }),
      onLink: () => this.links++,
      ...asking(TOKEN),
      ...options,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server.close();
  }
}

/** The head of an upgrade request with any headers. */
function upgradeRequest(headers: Readonly<Record<string, string>> = {}): string {
  const all = {
    host: "127.0.0.1",
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-key": KEY,
    "sec-websocket-version": "13",
    ...headers,
  };
  return `GET / HTTP/1.1\r\n${
    Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("")
  }\r\n`;
}

/** The head of a server's answer to some bytes. */
async function answerTo(server: { readonly port: number }, request: string): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  await connection.write(Buffer.from(request, "latin1"));
  const head = await readHead(connection);
  connection.close();
  return head;
}

async function readHead(connection: Deno.TcpConn): Promise<string> {
  let text = "";
  const bytes = new Uint8Array(4_096);
  while (!text.includes("\r\n\r\n")) {
    const count = await connection.read(bytes);
    if (count === null) return text;
    text += Buffer.from(bytes.subarray(0, count)).toString("latin1");
  }
  return text;
}

function statusOf(head: string): number {
  return Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]);
}

function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (Leat .*|proof=.*)\r$`, "mi").exec(head)?.[1];
}

/** Runs a hostile server with given answers to each request. */
async function withFake(
  answer: (request: string) => Promise<string> | string,
  use: (address: string) => Promise<void>,
): Promise<string> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let heard = "";
  const serving = (async () => {
    using connection = await listener.accept();
    for (;;) {
      const request = await readHead(connection);
      if (request === "") return;
      heard += request;
      await connection.write(Buffer.from(await answer(request), "latin1"));
    }
  })();
  await use(`ws://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`);
  await serving;
  return heard;
}

const challengeWith = (challenge: string) =>
  `HTTP/1.1 401 Unauthorized\r\nwww-authenticate: ${challenge}\r\ncontent-length: 0\r\n\r\n`;

/** Acceptance according to RFC 6455 for any key, with or without a proof of the token. */
async function consentTo(request: string, receipt: string): Promise<string> {
  const key = /sec-websocket-key: (\S+)/.exec(request)![1]!;
  const digest = await crypto.subtle.digest(
    "SHA-1",
    Buffer.from(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"),
  );
  return "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n" +
    `sec-websocket-accept: ${Buffer.from(digest).toString("base64")}\r\n${receipt}\r\n`;
}

Deno.test("proofOf and idOf return the bytes in docs/wire.md", async () => {
  const file = new URL("../vectors/proof.json", import.meta.url);
  const vector = JSON.parse(await Deno.readTextFile(file));
  const { token, id, diallerProof, listenerProof, ...rest } = vector;
  const about: Transcript = { id, ...rest };
  assertEquals(idOf(token), id);
  assertEquals(proofOf(token, "dialler", about), diallerProof);
  assertEquals(proofOf(token, "listener", about), listenerProof);
  const page = await Deno.readTextFile(new URL("../../../docs/wire.md", import.meta.url));
  for (const text of Object.values(vector)) assertStringIncludes(page, String(text));
});

Deno.test("a client in Python computes the same proof", async () => {
  const script = `${import.meta.dirname}/../wire_proof.py`;
  const vectors = `${import.meta.dirname}/../vectors/proof.json`;
  const output = await new Deno.Command("python3", { args: [script, vectors] }).output();
  assertEquals(new TextDecoder().decode(output.stderr), "");
  assertEquals(output.code, 0);
});

Deno.test("the token, or a part of it, is in nothing that a dialled server is sent", async () => {
  const nonce = "ab".repeat(32);
  const heard = await withFake(
    (request) =>
      request.includes("authorization")
        ? consentTo(request, `authentication-info: proof=${"00".repeat(32)}\r\n`)
        : challengeWith(`Leat version=1, nonce=${nonce}`),
    async (address) => {
      const connector = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
      const error = await rejection(connector.connect(address, DIALLER), "unauthenticated");
      assertStringIncludes(error.message, "does not prove that it knows the token");
    },
  );
  assertMatch(heard, /authorization: Leat version=1, id=/);
  for (const word of TOKEN.split("-")) assert(!heard.includes(word), `${word} was sent`);
});

Deno.test("a program with a token does not trust a server that asks for no proof", async () => {
  await withFake((request) => consentTo(request, ""), async (address) => {
    const connector = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
    await rejection(connector.connect(address, DIALLER), "unauthenticated");
  });
});

Deno.test("a server of another version is refused before anything is proved to it", async () => {
  const heard = await withFake(
    () => challengeWith(`Leat version=2, nonce=${"ab".repeat(32)}`),
    async (address) => {
      const connector = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
      const error = await rejection(connector.connect(address, DIALLER), "failed_precondition");
      assertStringIncludes(error.message, "version 2");
    },
  );
  assert(!heard.includes("authorization"));
});

Deno.test("a fake server that reflects the dialler's own proof is not trusted", async () => {
  await withFake(
    (request) => {
      const proof = /proof=([0-9a-f]{64})/.exec(request)?.[1];
      return proof === undefined
        ? challengeWith(`Leat version=1, nonce=${"ab".repeat(32)}`)
        : consentTo(request, `authentication-info: proof=${proof}\r\n`);
    },
    async (address) => {
      const connector = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
      await rejection(connector.connect(address, DIALLER), "unauthenticated");
    },
  );
});

Deno.test("a fake server that relays a proof meant for it reaches no other node", async () => {
  await using node = new Asking({ isService: false });
  await using service = new Asking({ isService: true });
  for (const server of [node.server, service.server]) {
    let relayed: number | undefined;
    await withFake(
      async (request) => {
        const authorization = headerOf(request, "authorization");
        if (authorization === undefined) {
          const head = await answerTo(server, upgradeRequest());
          return challengeWith(headerOf(head, "www-authenticate")!);
        }
        const head = await answerTo(server, upgradeRequest({ authorization }));
        relayed = statusOf(head);
        return challengeWith(headerOf(head, "www-authenticate") ?? "");
      },
      async (address) => {
        const connector = webSocketConnector({
          world,
          ...knowing(TOKEN, "node"),
          connectTimeoutMs: 60_000,
        });
        await rejection(connector.connect(address, DIALLER), "unauthenticated");
      },
    );
    assertEquals(relayed, 421);
  }
  assertEquals([node.links, service.links], [0, 0]);
});

Deno.test("a node is dialled by its own name, and a service by any", async () => {
  await using node = new Asking({ isService: false });
  const { address, port } = node.server;
  const connector = webSocketConnector({
    world,
    ...knowing(TOKEN, "node"),
    connectTimeoutMs: 60_000,
  });
  const link = await connector.connect(address, DIALLER);
  link.close();
  const elsewhere = connector.connect(`ws://localhost:${port}`, DIALLER);
  const { message } = await rejection(elsewhere, "failed_precondition");
  assertStringIncludes(message, `Another node answers at ws://localhost:${port}`);
  await using service = new Asking({ isService: true });
  const other = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
  (await other.connect(`ws://localhost:${service.server.port}`, DIALLER)).close();
  const noService = await rejection(other.connect(address, DIALLER), "failed_precondition");
  assertStringIncludes(noService.message, "no dispatcher");
  assertEquals(noService.details, { reason: NO_DISPATCHER });
});

Deno.test("Authenticator.admit tells only who has just proved a token that another node is meant", async () => {
  await using node = new Asking({ isService: false });
  const { server } = node;
  const proofFor = async (token: string) => {
    const challenge = headerOf(await answerTo(server, upgradeRequest()), "www-authenticate")!;
    return new DiallerSide(token, "node", "ws://elsewhere:1").answer(challenge)!;
  };
  const statusFor = async (authorization: string) =>
    statusOf(await answerTo(server, upgradeRequest({ authorization })));
  const proof = await proofFor(TOKEN);
  assertEquals(await statusFor(proof), 421);
  assertEquals(await statusFor(proof), 401, "the same once more");
  assertEquals(await statusFor(await proofFor("another-token")), 401);
  assertEquals(node.links, 0);
});

Deno.test("neither a recorded proof nor one with the server's fresh nonce in it is accepted", async () => {
  await using node = new Asking();
  const { server } = node;
  let recorded = "";
  const heard = await withFake(
    async (request) => {
      recorded = headerOf(request, "authorization") ?? "";
      const headers = recorded === "" ? {} : { authorization: recorded };
      const head = await answerTo(server, upgradeRequest(headers));
      if (recorded === "") return challengeWith(headerOf(head, "www-authenticate")!);
      assertEquals(statusOf(head), 101, "the first time it is the dialler's own");
      return challengeWith("");
    },
    async (address) => {
      const connector = webSocketConnector({ world, ...knowing(TOKEN), connectTimeoutMs: 60_000 });
      await rejection(connector.connect(address, DIALLER), "unauthenticated");
    },
  );
  assert(heard.includes(recorded));
  const replay = (authorization: string) => answerTo(server, upgradeRequest({ authorization }));
  assertEquals(statusOf(await replay(recorded)), 401, "the same once more");
  const fresh = headerOf(await answerTo(server, upgradeRequest()), "www-authenticate")!;
  const nonce = /nonce=([0-9a-f]{64})/.exec(fresh)![1]!;
  const onFresh = recorded.replace(/listener-nonce=[0-9a-f]{64}/, `listener-nonce=${nonce}`);
  assertEquals(statusOf(await replay(onFresh)), 401, "with a fresh nonce");
  await using next = new Asking();
  assertEquals(
    statusOf(await answerTo(next.server, upgradeRequest({ authorization: recorded }))),
    401,
    "at a server that was started since",
  );
});

Deno.test("an invalid proof header gets 401", async () => {
  await using node = new Asking();
  const proof = "0".repeat(64);
  const fields = `id=${idOf(TOKEN)}, nonce=${proof}, listener-nonce=${proof}, proof=${proof}`;
  const headers = [
    `Bearer ${TOKEN}`,
    "Leat",
    `Leat version=1, ${fields}, target=service, address=ws://x`,
    `Leat version=1, ${fields}, target=elsewhere, address=ws://x`,
    `Leat version=1, ${fields}, target=service, address=${"x".repeat(3_000)}`,
    "x".repeat(8_000),
  ];
  for (const authorization of headers) {
    const head = await answerTo(node.server, upgradeRequest({ authorization }));
    assertEquals(statusOf(head), 401, authorization.slice(0, 40));
  }
  assertEquals(node.links, 0);
});

Deno.test("Challenges.take accepts a nonce once, before it expires, and none from elsewhere", () => {
  const still = new StillWorld();
  const challenges = new Challenges(still);
  const [first, second, third] = [challenges.give(), challenges.give(), challenges.give()];
  assertEquals(challenges.take(first), true);
  assertEquals(challenges.take(first), false, "twice");
  assertEquals(new Challenges(still).take(second), false, "at another listener");
  const changed = (second.startsWith("0") ? "1" : "0") + second.slice(1);
  assertEquals(challenges.take(changed), false, "one that was changed");
  still.now += 10_000;
  assertEquals(challenges.take(second), true);
  still.now += 1;
  assertEquals(challenges.take(third), false, "too old");
});
