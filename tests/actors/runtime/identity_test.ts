/** A sender's identity: handlers get it from the link, never from the message. */
import type { WatchEnd } from "../../../actors/runtime/actor.ts";
import type { AskEnvelope, Envelope } from "../../../actors/runtime/envelope.ts";
import { type Identity, SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import { WATCH_REFUSED, WATCHERS_MAX } from "../../../actors/runtime/node/peers.ts";
import type { Delivery } from "../../../actors/runtime/protocol.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import type { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { SOON, TestNode } from "./nodes.ts";

interface Who {
  who(request: unknown): { readonly name: string; readonly role: string };
  end(request: null): null;
}

function spawnWho(node: TestNode): Ref<Who> {
  return node.system.spawn<Who>({
    name: "who",
    create: () => ({
      handlers: { who: (_, { sender }: Delivery) => ({ ...sender }), end: () => null },
      access: { who: ["client"], end: [] },
    }),
  });
}

/** A link whose other end has proved to be `identity`; the test injects messages. */
class ProvedLink implements Link {
  readonly remote: NodeId;
  readonly closed = new Promise<never>(() => {});
  readonly bufferedBytes = 0;
  readonly identity: Identity;
  readonly sent: Envelope[] = [];
  /** Why it was closed. */
  why: LeatError | undefined;
  receive: (envelope: Envelope) => void = () => {};

  constructor(identity: Identity, node = "far") {
    this.remote = { node, incarnation: "1" };
    this.identity = identity;
  }
  start(receive: (envelope: Envelope) => void): void {
    this.receive = receive;
  }
  send(envelope: Envelope): boolean {
    this.sent.push(envelope);
    return true;
  }
  ready(): Promise<void> {
    return Promise.resolve();
  }
  close(reason?: LeatError): void {
    this.why = reason;
  }
}

function askOf(target: Ref, method: string, body: unknown): AskEnvelope {
  const source = { node: "far", path: "/x", incarnation: "1-1" };
  return { kind: "ask", source, target, number: 1, id: 1, method, body, timeoutMs: 1_000 };
}

Deno.test("Delivery.sender is this process for a message within a node", async () => {
  await using node = new TestNode("a");
  const who = spawnWho(node);
  assertEquals(await node.system.ask(who, "who", null, SOON), { ...SAME_PROCESS });
});

Deno.test("Delivery.sender is the identity that the link has proved, whatever the message says", async () => {
  await using node = new TestNode("a");
  const who = spawnWho(node);
  const link = new ProvedLink({ name: "team-a", role: "client" });
  node.system.attach(link);
  const forged = { name: "root", role: "admin" };
  link.receive({
    ...askOf(who, "who", { sender: forged }),
    sender: forged,
    identity: forged,
  } as Envelope);
  await node.happened("send");
  assertEquals(link.sent.map((envelope) => "body" in envelope && envelope.body), [
    { name: "team-a", role: "client" },
  ]);
});

Deno.test("Access refuses a role that is not in the table, naming it, and logs it once", async () => {
  const lines: string[] = [];
  const world = new DenoWorld({ print: (_, line) => lines.push(line) });
  await using node = new TestNode("a", { world });
  const who = spawnWho(node);
  const link = new ProvedLink({ name: "team-a", role: "client" });
  node.system.attach(link);
  for (let n = 1; n <= 3; n++) link.receive({ ...askOf(who, "end", null), number: n, id: n });
  await node.happened("send", 3);
  assertEquals(node.drops, ["not_permitted", "not_permitted", "not_permitted"]);
  for (const answer of link.sent) {
    assert(answer.kind === "failure");
    assertEquals(answer.error.code, "permission_denied");
    assertEquals(
      answer.error.message,
      '"team-a" has the role client, and may not call end: it is for admin. Use a token of such a role',
    );
  }
  assertEquals(lines.filter((line) => line.includes("team-a")).length, 1);
});

Deno.test("an actor without an access table serves only admins", async () => {
  await using node = new TestNode("a");
  const ref = node.system.spawn<Who>({
    name: "who",
    create: () => ({ handlers: { who: () => ({ name: "", role: "" }), end: () => null } }),
  });
  const link = new ProvedLink({ name: "worker-1", role: "worker" });
  node.system.attach(link);
  link.receive(askOf(ref, "end", null));
  await node.happened("send");
  assertEquals(link.sent.map(({ kind }) => kind), ["failure"]);
  assertEquals(await node.system.ask(ref, "end", null, SOON), null);
});

Deno.test("an answer of a node that was not asked is dropped, unless it is an admin's", async () => {
  for (const [role, code] of [["worker", undefined], ["admin", "unavailable"]] as const) {
    await using node = new TestNode("a");
    const asked = new ProvedLink({ name: "asked", role: "worker" }, "asked");
    const other = new ProvedLink({ name: "other", role }, "other");
    for (const link of [asked, other]) node.system.attach(link);
    const answer = node.system.ask<Who, "end">({ node: "asked", path: "/who" }, "end", null, SOON)
      .then(() => undefined, (error) => error.code);
    const [ask] = asked.sent;
    assert(ask?.kind === "ask");
    const reply = (from: string): Envelope => ({
      kind: "failure",
      source: { node: from, path: "/who", incarnation: "1-1" },
      target: ask.source,
      number: 1,
      id: ask.id,
      error: { code: "unavailable", message: "forged" },
    });
    other.receive(reply("other"));
    asked.receive({
      ...{ kind: "reply", source: { node: "asked", path: "/who", incarnation: "2-1" } },
      ...{ target: ask.source, number: 1, id: ask.id, body: null },
    });
    assertEquals(await answer, code);
    assertEquals(node.drops[0], role === "worker" ? "not_permitted" : "unwanted_reply");
  }
});

Deno.test("a node that holds too many watches is refused more", async () => {
  await using node = new TestNode("a");
  const target = spawnWho(node);
  const link = new ProvedLink({ name: "team-a", role: "client" });
  node.system.attach(link);
  const source = { node: "far", path: "/x", incarnation: "1-1" };
  for (let id = 1; id <= WATCHERS_MAX; id++) {
    link.receive({ kind: "watch", source, target, number: id, id });
  }
  assertEquals(link.sent, []);
  const id = WATCHERS_MAX + 1;
  link.receive({ kind: "watch", source, target, number: id, id });
  const [down] = link.sent;
  assert(down?.kind === "down");
  assertEquals([down.id, down.error.details?.["reason"]], [id, WATCH_REFUSED]);
});

Deno.test("a node's own actors may hold more watches than another node's", async () => {
  await using node = new TestNode("a");
  const target = spawnWho(node);
  let downs = 0;
  for (let i = 0; i <= WATCHERS_MAX; i++) node.system.watch(target, () => downs++);
  assertEquals(await node.system.ask(target, "who", null, SOON), { ...SAME_PROCESS });
  assertEquals(downs, 0);
});

Deno.test("a refused watch does not tell that the actor has ended", async () => {
  for (const [reason, wanted] of [[WATCH_REFUSED, "lost"], ["other", "ended"]] as const) {
    await using node = new TestNode("a");
    const link = new ProvedLink({ name: "team-a", role: "client" });
    node.system.attach(link);
    let end: WatchEnd | undefined;
    node.system.watch({ node: "far", path: "/x" }, (_error, how) => end = how);
    const [watch] = link.sent;
    assert(watch?.kind === "watch");
    link.receive({
      kind: "down",
      source: { node: "far", path: "/x", incarnation: "1-1" },
      target: watch.source,
      number: 1,
      id: watch.id,
      error: { code: "resource_exhausted", message: "no", details: { reason } },
    });
    assertEquals(end, wanted);
  }
});

Deno.test("a linked identity's node name can be taken over only by an admin", async () => {
  await using node = new TestNode("a");
  const first = new ProvedLink({ name: "team-a", role: "client" });
  node.system.attach(first);
  const again = new ProvedLink({ name: "team-a", role: "client" });
  node.system.attach(again);
  const other = new ProvedLink({ name: "team-b", role: "client" });
  node.system.attach(other);
  const admin = new ProvedLink({ name: "root", role: "admin" });
  node.system.attach(admin);
  const closed = [first, again, other, admin].map((link) => link.why?.code);
  assertEquals(closed, [undefined, undefined, "permission_denied", undefined]);
  assertStringIncludes(other.why!.message, "--advertise");
});
