/** What a node holds because of other nodes: losing a link costs only its own items, in order. */
import { Groups } from "../../../actors/runtime/asking/groups.ts";
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import { SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import type { Link } from "../../../actors/runtime/link.ts";
import type { FencedRef, Ref } from "../../../actors/runtime/ref.ts";
import { ActorSystem } from "../../../actors/runtime/system.ts";
import { LeatError } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assert, assertEquals } from "../../assert.ts";
import { settle } from "./nodes.ts";

/** A link that carries nothing, until the test closes it. */
class CutLink implements Link {
  readonly remote;
  readonly identity = SAME_PROCESS;
  readonly closed: Promise<LeatError>;
  readonly released = Promise.resolve();
  readonly bufferedBytes = 0;
  readonly cut: () => void;
  receive: (envelope: Envelope) => void = () => {};

  constructor(node: string) {
    this.remote = { node, incarnation: "1" };
    const { promise, resolve } = Promise.withResolvers<LeatError>();
    this.closed = promise;
    this.cut = () => resolve(new LeatError("unavailable", "cut for the test"));
  }

  start(receive: (envelope: Envelope) => void): void {
    this.receive = receive;
  }

  send(): boolean {
    return true;
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.cut();
  }
}

interface Echo {
  x(request: null): null;
}

/** References that count how often their node is read. */
class CountedRefs {
  looks = 0;

  to(node: string, path: string): FencedRef {
    const look = () => {
      this.looks++;
      return node;
    };
    return {
      get node() {
        return look();
      },
      path,
      incarnation: `${node}-1`,
    };
  }
}

Deno.test("ActorSystem visits only the items of a lost link", async () => {
  const count = 200;
  await using system = new ActorSystem({ node: "here", world: new DenoWorld({ logLevel: "off" }) });
  const links = Array.from({ length: count }, (_, i) => new CutLink(`there ${i}`));
  const refs = new CountedRefs();
  const [downs, refused]: [number[], number[]] = [[], []];
  for (const [i, link] of links.entries()) {
    system.attach(link);
    const { node } = link.remote;
    system.watch(refs.to(node, "/watched"), () => downs.push(i));
    const asked = system.ask(refs.to(node, "/asked") as Ref<Echo>, "x", null, {
      timeoutMs: 60_000,
    });
    asked.catch(() => refused.push(i));
    const target = { node: "here", path: "/node" };
    const watcher = refs.to(node, "/watcher");
    link.receive({ kind: "watch", source: watcher, target, number: 1, id: 1 });
  }
  await settle();
  refs.looks = 0;
  for (const link of links.toReversed()) link.cut();
  await settle();
  const order = [...links.keys()].toReversed();
  assertEquals([downs, refused], [order, order]);
  assert(refs.looks <= 10 * count, `${refs.looks} looks for ${count} links`);
});

Deno.test("ActorSystem tells watchers of an end in order, except those whose link is lost", async () => {
  await using system = new ActorSystem({ node: "here", world: new DenoWorld({ logLevel: "off" }) });
  const told: string[] = [];
  system.inspect((event) => {
    if (event.type !== "send" || event.envelope.kind !== "down") return;
    told.push(`${event.envelope.target.node} ${event.envelope.id}`);
  });
  system.spawn({ name: "watched", create: () => ({ handlers: {} }) });
  const links = ["a", "b"].map((node) => new CutLink(node));
  let number = 0;
  const say = (link: CutLink, kind: "watch" | "unwatch", id: number) => {
    const source = { node: link.remote.node, path: "/x", incarnation: link.remote.node };
    const target = { node: "here", path: "/watched" };
    link.receive({ kind, source, target, number: ++number, id });
  };
  const [a, b] = links as [CutLink, CutLink];
  for (const link of links) system.attach(link);
  for (const id of [3, 1, 2]) for (const link of links) say(link, "watch", id);
  say(b, "unwatch", 1);
  say(b, "watch", 3);
  a.cut();
  await settle();
  await system.stopActor("watched");
  assertEquals(told, ["b 3", "b 2"]);
});

Deno.test("Groups keeps the order of a group when members are removed, and forgets an empty one", () => {
  const groups = new Groups<string, number>();
  const members = [1, 2, 3, 4].map((item) => groups.add("odd", item));
  groups.add("other", 5);
  const before = groups.of("odd");
  assertEquals([groups.remove(members[1]!), groups.remove(members[1]!)], [true, false]);
  groups.remove(members[3]!);
  groups.add("odd", 6);
  assertEquals(groups.of("odd").map(({ item }) => item), [1, 3, 6]);
  assertEquals(before.map(({ item }) => item), [1, 2, 3, 4]);
  for (const member of groups.of("odd")) groups.remove(member);
  assertEquals([...groups.keys()], ["other"]);
  assertEquals(groups.of("odd"), []);
});
