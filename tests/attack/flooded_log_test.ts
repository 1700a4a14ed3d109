/**
 * A viewer says that it accepts no message of any use, so that each answer to it cannot be sent. It
 * must not fill the disk of the server with lines about that.
 */
import type { ClientProtocol } from "../../actors/client/protocol.ts";
import type { ActorContext } from "../../actors/runtime/actor.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { Link } from "../../actors/runtime/link.ts";
import { RareLog } from "../../actors/runtime/rare_log.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import type { World } from "../../actors/runtime/world.ts";
import { LeatError } from "../../core/error.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { TokenSet } from "../../transport/web_socket.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { until } from "../lib/until.ts";
import { Listener } from "../transport/web_socket/strangers.ts";
import { RawNode } from "./raw_node.ts";

const EYES = { name: "eyes", role: "viewer" } as const;
const token = "token-of-eyes-0123";

/** A link of a viewer that no answer fits. */
class NarrowLink implements Link {
  readonly identity = EYES;
  readonly closed = new Promise<LeatError>(() => {});
  readonly bufferedBytes = 0;
  readonly remote: Link["remote"];
  refused = 0;
  #receive!: (envelope: Envelope) => void;
  #asked = 0;

  constructor(node: string) {
    this.remote = { node, incarnation: "00" };
  }

  start(receive: (envelope: Envelope) => void): void {
    this.#receive = receive;
  }

  send(): boolean {
    this.refused++;
    throw new LeatError("resource_exhausted", "it accepts 1 byte");
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {}

  ask(count: number): void {
    for (let i = 0; i < count; i++) {
      const number = ++this.#asked;
      this.#receive({
        kind: "ask",
        source: { node: this.remote.node, path: "/x", incarnation: "00-1" },
        target: { node: "server", path: `/nobody-${number}` },
        ...{ number, id: number, method: "hello", body: null, timeoutMs: 1_000 },
      });
    }
  }
}

Deno.test("answers that cannot be sent get a line for each node in ten seconds", async () => {
  const lines: string[] = [];
  const world = new DenoWorld({ print: (_, line) => lines.push(line) });
  let nowMs = 0;
  world.nowMs = () => nowMs;
  await using system = new ActorSystem({ node: "server", world });
  const links = [new NarrowLink("one"), new NarrowLink("another")];
  for (const link of links) {
    system.attach(link);
    link.ask(1_000);
  }
  await until(() => links.every(({ refused }) => refused >= 1_000));
  assertEquals(lines.length, 2, lines.slice(0, 5).join("\n"));
  assertMatch(lines[0]!, /Dropped a failure for one\/x#00-1: it accepts 1 byte/);
  nowMs = 10_000;
  links[0]!.ask(1);
  await until(() => lines.length === 3);
  assertMatch(lines[2]!, /Dropped a failure for one\/x.* more=999/);
});

Deno.test("RareLog lets nobody have more lines by more names", () => {
  let lines = 0;
  let nowMs = 0;
  const world = { nowMs: () => nowMs, log: () => lines++ } as unknown as World;
  const log = new RareLog(world);
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 1_000; i++) log.note(`name ${i}`, "a line");
  }
  assert(lines <= 300, `${lines} lines`);
  lines = 0;
  nowMs = 10_000;
  for (let i = 2_000; i < 2_100; i++) log.note(`name ${i}`, "a line");
  assertEquals(lines, 100, "new names have lines of their own later");
});

Deno.test("RareLog counts the lines left out of a name that makes room for another", () => {
  const counts: unknown[] = [];
  let nowMs = 0;
  const log = new RareLog(
    {
      nowMs: () => nowMs,
      log: (_level: string, _line: string, { more = 0 }: { readonly more?: number }) =>
        counts.push(more),
    } as unknown as World,
  );
  for (let times = 0; times < 3; times++) log.note("oldest", "a line");
  for (let i = 1; i < 256; i++) log.note(`name ${i}`, "a line");
  nowMs = 10_000;
  log.note("new", "a line");
  log.note("newer", "a line");
  assertEquals(counts.slice(255), [0, 2, 0]);
});

Deno.test("a hello that accepts hardly any message is refused, and says why", async () => {
  await using listener = new Listener({
    isService: true,
    tokens: new TokenSet([{ token, identity: EYES }]),
  });
  const { address } = listener.server;
  for (const messageBytesMax of [1, 65_535]) {
    await using raw = await RawNode.link(address, token, messageBytesMax);
    const { kind, error } = await until(() => raw.messages[0]);
    assertEquals(kind, "bye");
    const { code, message } = error as { code: string; message: string };
    assertEquals(code, "invalid_argument");
    assertMatch(message, /messageBytesMax is \d+; every node accepts messages of 65536 bytes/);
  }
  assertEquals(listener.links, []);
  await using raw = await RawNode.link(address, token, 65_536);
  assertEquals((await until(() => raw.messages[0])).kind, "hello");
});

Deno.test("a message that a link refuses does not end the actor that sends it", async () => {
  await using system = new ActorSystem({
    node: "server",
    world: new DenoWorld({ logLevel: "off" }),
  });
  const link = new NarrowLink("eyes");
  system.attach(link);
  let context: ActorContext | undefined;
  system.spawn({ name: "sender", create: (own) => (context = own, { handlers: {} }) });
  await until(() => context !== undefined);
  const eyes: Ref<ClientProtocol> = { node: "eyes", path: "/x" };
  context!.tell(eyes, "wake", null);
  assertEquals(link.refused, 1);
});
