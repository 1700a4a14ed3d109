/**
 * Who sent a message: what a handler is told of it comes from the link, never from the message.
 *
 * @module
 */
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import { type Identity, SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import type { Link } from "../../../actors/runtime/link.ts";
import type { Delivery } from "../../../actors/runtime/protocol.ts";
import type { Ref } from "../../../actors/runtime/ref.ts";
import { assertEquals } from "../../assert.ts";
import { SOON, TestNode } from "./nodes.ts";

interface Who {
  who(request: unknown): { readonly name: string; readonly role: string };
}

function spawnWho(node: TestNode): Ref<Who> {
  return node.system.spawn<Who>({
    name: "who",
    create: () => ({ handlers: { who: (_, { sender }: Delivery) => ({ ...sender }) } }),
  });
}

/** A link whose other end has proved to be `identity`; the test says what comes over it. */
class ProvedLink implements Link {
  readonly remote = { node: "far", incarnation: "1" };
  readonly closed = new Promise<never>(() => {});
  readonly bufferedBytes = 0;
  readonly identity: Identity;
  readonly sent: Envelope[] = [];
  receive: (envelope: Envelope) => void = () => {};

  constructor(identity: Identity) {
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
  close(): void {}
}

Deno.test("Delivery.sender is this process for a message of the same node", async () => {
  await using node = new TestNode("a");
  const who = spawnWho(node);
  assertEquals(await node.system.ask(who, "who", null, SOON), { ...SAME_PROCESS });
});

Deno.test("Delivery.sender is what the link has proved, whatever the message says", async () => {
  await using node = new TestNode("a");
  const who = spawnWho(node);
  const link = new ProvedLink({ name: "team-a", role: "client" });
  node.system.attach(link);
  const forged = { name: "root", role: "admin" };
  const ask = {
    kind: "ask",
    source: { node: "far", path: "/x", incarnation: "1-1" },
    target: who,
    number: 1,
    id: 1,
    method: "who",
    body: { sender: forged },
    timeoutMs: 1_000,
    sender: forged,
    identity: forged,
  };
  link.receive(ask as Envelope);
  await node.happened("send");
  assertEquals(link.sent.map((envelope) => "body" in envelope && envelope.body), [
    { name: "team-a", role: "client" },
  ]);
});
