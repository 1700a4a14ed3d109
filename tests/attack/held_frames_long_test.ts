/**
 * A client leaves answers unread, so that its later requests wait, and sends many of them on many
 * links. They wait in the memory of the node, which must not grow with the links.
 */
import { HeldMemory } from "../../transport/web_socket/held_frames.ts";
import { Unread } from "../../transport/web_socket/unread.ts";
import { LeatError } from "../../core/error.ts";
import { TokenSet } from "../../transport/web_socket.ts";
import { writeBatch } from "../../transport/web_socket/frames.ts";
import { assert, assertEquals } from "../assert.ts";
import { until } from "../lib/until.ts";
import { Listener } from "../transport/web_socket/strangers.ts";
import { Asker, CLIENT } from "./asker.ts";
import { RawNode } from "./raw_node.ts";

const MIB = 2 ** 20;

/** Links of one identity, each with an unread answer, whose next requests wait. */
function cloggedLinks(count: number): Asker[] {
  const unread = new Unread(CLIENT);
  const shared = { unread, held: new HeldMemory(CLIENT) };
  // Others have left as much unread as the identity may.
  unread.change(300 * MIB);
  const askers = Array.from({ length: count }, () => new Asker(CLIENT, shared));
  for (const asker of askers) asker.ask(1);
  return askers;
}

function close(askers: readonly Asker[]): void {
  for (const { link } of askers) link.close(new LeatError("cancelled", "the test is over"));
}

Deno.test("all links of an identity together hold a bounded number of bytes of waiting requests", () => {
  const askers = cloggedLinks(40);
  for (const asker of askers) {
    for (let i = 0; i < 10 && !asker.isClosed; i++) asker.ask(1, new Uint8Array(MIB));
  }
  const open = askers.filter(({ isClosed }) => !isClosed);
  assert(open.length >= 20 && open.length <= 26, `${open.length} links hold 10 MiB each`);
  // Memory is free again for others of the identity.
  close(open.slice(0, 5));
  const later = open.at(-1)!;
  later.ask(1, new Uint8Array(MIB));
  assertEquals(later.isClosed, false);
  later.acknowledge();
  assertEquals(later.answered, Array.from({ length: 12 }, (_, i) => i + 1));
  close(open);
});

Deno.test("a frame that is opened to its middle counts as waiting", () => {
  const askers: Asker[] = [];
  const shared = { unread: new Unread(CLIENT), held: new HeldMemory(CLIENT) };
  for (let i = 0; i < 100; i++) {
    const asker = new Asker(CLIENT, shared);
    askers.push(asker);
    asker.askAtOnce(100, new Uint8Array(40_000));
  }
  const waiting = askers.filter(({ answered, isClosed }) => !isClosed && answered.length < 100);
  assert(waiting.length > 50 && waiting.length < 70, `${waiting.length} links hold 4 MB each`);
  for (const asker of waiting) asker.acknowledge();
  for (const { answered } of waiting) assertEquals(answered.length, 100);
});

Deno.test("a frame of one byte counts as much as the memory that it takes", () => {
  const [asker] = cloggedLinks(1);
  const frame = Uint8Array.of(0xce);
  let sent = 0;
  for (; sent < 4_000_000 && !asker!.isClosed; sent++) asker!.sendFrame(frame);
  assertEquals(asker!.isClosed, true);
  assert(sent > 100_000 && sent < 2_000_000, `${sent} frames`);
});

Deno.test("a server counts the waiting requests of all links of an identity, and serves others", async () => {
  const named = (name: string) => ({
    token: `token-of-${name}-0123`,
    identity: { name, role: "client" as const },
  });
  const [team, others] = [named("team"), named("others")];
  await using listener = new Listener({
    isService: true,
    tokens: new TokenSet([team, others]),
  });
  listener.system.spawn<{ get(request: unknown): Uint8Array }>({
    name: "large",
    create: () => ({
      handlers: { get: () => new Uint8Array(MIB) },
      access: { get: ["client"] },
    }),
  });
  const { address } = listener.server;
  const raws: RawNode[] = [];
  await using _all = {
    async [Symbol.asyncDispose]() {
      for (const raw of raws) await raw[Symbol.asyncDispose]();
    },
  };
  const link = async () => {
    const raw = await RawNode.link(address, team.token);
    raws.push(raw);
    return raw;
  };
  const unread = () => listener.links.reduce((sum, { bufferedBytes }) => sum + bufferedBytes, 0);
  for (let i = 0; i < 5; i++) {
    const raw = await link();
    raw.send(writeBatch(Array.from({ length: 60 }, () => raw.asking("get", null, "/large"))));
  }
  await until(() => unread() > 256 * MIB);
  const asking: RawNode[] = [];
  for (let i = 0; i < 28; i++) {
    const raw = await link();
    asking.push(raw);
    raw.send(raw.asking("get", null, "/large"));
  }
  await until(() => unread() > 284 * MIB);
  for (const raw of asking) {
    for (let i = 0; i < 3; i++) raw.send(raw.asking("get", new Uint8Array(3.9 * MIB), "/large"));
  }
  await until(() => asking.every(({ isClosed, isSent }) => isClosed || isSent));
  await until(() => asking.some(({ isClosed }) => isClosed));
  const closed = asking.filter(({ isClosed }) => isClosed);
  assert(closed.length <= 8, `${closed.length} of 28 links with 11.7 MiB each are closed`);
  for (const { goodbye } of closed) assertEquals(goodbye, "resource_exhausted");
  await using other = await RawNode.link(address, others.token);
  raws.push(other);
  other.send(other.asking("get", null, "/large"));
  await until(() => other.answered("reply").length === 1);
});
