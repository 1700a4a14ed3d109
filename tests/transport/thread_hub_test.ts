/** Nodes on threads: started, joined, killed. */
import { LeatError } from "../../core/error.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import type { Ref } from "../../actors/runtime/ref.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { Payload } from "../../transport/payload.ts";
import { ThreadHub } from "../../transport/thread_hub.ts";
import type { ThreadNode } from "../../transport/thread_node.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { rejection, SOON } from "../actors/runtime/nodes.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../assert.ts";
import type { Remote } from "./fixture_node.ts";
import { until } from "../lib/until.ts";

const MODULE = import.meta.resolve("./fixture_node.ts");
const ENTRY = new URL("../../platform/threads/thread_entry.ts", import.meta.url);

/** A hub, and a system on its own thread. */
class Home implements AsyncDisposable {
  readonly world = new DenoWorld({ logLevel: "off" });
  readonly hub = new ThreadHub({ world: this.world, entry: ENTRY });
  readonly main: ActorSystem;

  constructor() {
    this.main = this.system("main");
    this.hub.add(this.main);
  }

  /** Another system on the hub's thread. */
  system(node: string): ActorSystem {
    return new ActorSystem({ node, world: this.world, connector: this.hub.connector });
  }

  start(name: string, config: unknown = "with actor"): Promise<ThreadNode> {
    return this.hub.startNode({ name, module: MODULE, config, world: { logLevel: "off" } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.main.stop();
    await this.hub.close();
  }
}

const remoteOn = (node: string): Ref<Remote> => ({ node, path: "/remote" });

Deno.test("a node on a thread answers, and starts actors by kind", async () => {
  await using home = new Home();
  const thread = await home.start("one");
  assertEquals(await home.main.ask(remoteOn("one"), "echo", { x: [1, "a"] }, SOON), {
    x: [1, "a"],
  });
  const second = await thread.spawn<Remote>("remote", "second", {});
  assertEquals(await home.main.ask(second, "echo", 2, SOON), 2);
  const listed = await home.main.ask(nodeActorOf("one"), "list", null, SOON);
  assertEquals(listed.map(({ ref }) => ref.path), ["/node", "/remote", "/second"]);
  await rejection(thread.spawn("remote", "second", {}), "already_exists");
  const error = await rejection(thread.spawn("nothing", "third", {}), "not_found");
  assertStringIncludes(error.message, "it starts: remote");
});

Deno.test("two threads use a channel of their own, not the hub's thread", async () => {
  await using home = new Home();
  await Promise.all([home.start("one"), home.start("two")]);
  let passed = 0;
  home.main.inspect(({ type }) => passed += type === "deliver" ? 1 : 0);
  const relay = { to: remoteOn("two"), value: "through" };
  assertEquals(await home.main.ask(remoteOn("one"), "relay", relay, SOON), "through");
  assertEquals(passed, 1, "the answer alone");
  assertEquals(home.main.linkedNodes, ["one"]);
});

Deno.test("a payload arrives whole from a thread, by transfer", async () => {
  await using home = new Home();
  await home.start("one");
  const block = await home.main.ask(remoteOn("one"), "block", 1_000_000, SOON);
  assert(block instanceof Payload);
  assertEquals(block.byteLength, 1_000_000);
  assert(block.bytes.every((byte, i) => byte === i % 251));
  const echoed = await home.main.ask(remoteOn("one"), "echo", block, SOON) as Payload;
  assertEquals(block.byteLength, 0, "it moved");
  assertEquals(echoed.byteLength, 1_000_000);
});

Deno.test("a thread that dies is `unavailable` to all connected nodes, at once", async () => {
  await using home = new Home();
  const [, victim] = await Promise.all([home.start("one"), home.start("two")]);
  const watched = home.main.ask(remoteOn("one"), "watchEnd", remoteOn("two"), SOON);
  await home.main.ask(remoteOn("one"), "relay", { to: remoteOn("two"), value: 1 }, SOON);
  const waiting = rejection(home.main.ask(remoteOn("two"), "wait", null, SOON), "unavailable");
  home.main.tell(remoteOn("two"), "die", null);
  assertStringIncludes((await waiting).message, "died of the test");
  const end = await watched;
  assertEquals(end.code, "unavailable");
  assertStringIncludes(end.message, "died of the test");
  assertStringIncludes((await victim.closed).message, "died of the test");
  const gone = rejection(home.main.ask(remoteOn("two"), "echo", 1, SOON), "unavailable");
  assertStringIncludes((await gone).message, "two");
  await rejection(victim.spawn("remote", "more", {}), "unavailable");
  assertEquals(await home.main.ask(remoteOn("one"), "echo", 1, SOON), 1);
});

Deno.test("a node that ends its own thread reports the reason to its creator, and is gone for all others", async () => {
  await using home = new Home();
  const [, victim] = await Promise.all([home.start("one"), home.start("two")]);
  const watched = home.main.ask(remoteOn("one"), "watchEnd", remoteOn("two"), SOON);
  await home.main.ask(remoteOn("one"), "relay", { to: remoteOn("two"), value: 1 }, SOON);
  home.main.tell(remoteOn("two"), "giveUp", "no use any more");
  const { code, message } = await victim.closed;
  assertEquals([code, message], ["data_loss", "no use any more"]);
  assertStringIncludes((await watched).message, "no use any more");
  assertEquals(victim.isEnded, true);
});

Deno.test("a link to a node that died while its dialler was busy is closed when it comes", async () => {
  await using home = new Home();
  const [, victim] = await Promise.all([home.start("one"), home.start("two")]);
  const watched = home.main.ask(remoteOn("one"), "watchEnd", remoteOn("two"), SOON);
  // It learns of the end and of the link at once, the end first.
  const busy = home.main.ask(remoteOn("one"), "spin", 400, SOON);
  await new Promise((resolve) => setTimeout(resolve, 100));
  victim.terminate(new LeatError("unavailable", "ended for the test"));
  await busy;
  assertEquals((await watched).code, "unavailable");
  await home.start("two");
  const relay = { to: remoteOn("two"), value: "through" };
  assertEquals(await home.main.ask(remoteOn("one"), "relay", relay, SOON), "through");
});

Deno.test("terminate ends a thread that spins, and its name can be reused", async () => {
  await using home = new Home();
  const first = await home.start("one");
  // Not forever: Deno never ends a thread that spins, and it would occupy a core during all later
  // tests.
  const path = await Deno.makeTempFile({ prefix: "leat-threads-" });
  const spinning = rejection(
    home.main.ask(remoteOn("one"), "spinBeside", path, SOON),
    "unavailable",
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  first.terminate(new LeatError("unavailable", "stopped for the test"));
  assertStringIncludes((await spinning).message, "stopped for the test");
  await Deno.remove(path);
  const second = await home.start("one");
  assert(second.id.incarnation !== first.id.incarnation);
  assertEquals(await home.main.ask(remoteOn("one"), "echo", 1, SOON), 1);
});

Deno.test("the threads of a node end with it, however it ends", async () => {
  await using home = new Home();
  const lock = await Deno.makeTempFile({ prefix: "leat-threads-" });
  using file = await Deno.open(lock);
  for (const end of [(node: ThreadNode) => node.stop(), (node: ThreadNode) => node.terminate()]) {
    const node = await home.start("one", { lock });
    assertEquals(file.tryLockSync(true), false);
    await end(node);
    await file.lock(true);
    await file.unlock();
  }
  await Deno.remove(lock);
});

Deno.test("a node hears of a thread that dies, and not of one that it ends", async () => {
  await using home = new Home();
  await home.start("one");
  const deaths = await home.main.ask(remoteOn("one"), "threadDeaths", null, SOON);
  assertEquals(deaths.length, 1, deaths.join());
  assertStringIncludes(deaths[0]!, "died of the test");
});

Deno.test("a patient ask survives a thread's restart", async () => {
  await using home = new Home();
  const first = await home.start("one");
  await home.main.ask(remoteOn("one"), "echo", 1, SOON);
  first.terminate();
  const patient = home.main.ask(remoteOn("one"), "echo", "late", { ...SOON, attemptMs: 2_000 });
  await home.start("one");
  assertEquals(await patient, "late");
});

Deno.test("stop ends a node in order, its links with it", async () => {
  await using home = new Home();
  const thread = await home.start("one", "slow to stop");
  const ref = await thread.spawn<Remote>("remote", "remote", {});
  const waiting = rejection(home.main.ask(ref, "wait", null, SOON), "unavailable");
  await until(() => home.main.linkedNodes.includes("one"));
  await thread.stop();
  await waiting;
  assertStringIncludes((await thread.closed).message, "has stopped");
});

Deno.test("startNode explains why a node cannot be started", async () => {
  await using home = new Home();
  const broken = await rejection(home.start("one", "broken"), "not_found");
  assertEquals(broken.message, "broken on purpose");
  const options = { name: "one", config: null };
  const absent = import.meta.resolve("./no_such_module.ts");
  const missing = await rejection(home.hub.startNode({ ...options, module: absent }), "internal");
  assertStringIncludes(missing.message, "no_such_module");
  const noSetup = import.meta.resolve("../../core/error.ts");
  await rejection(home.hub.startNode({ ...options, module: noSetup }), "invalid_argument");
  await home.start("one");
  await rejection(home.start("one"), "already_exists");
});

Deno.test("an unknown name is `not_found`, and the error lists the known ones", async () => {
  await using home = new Home();
  await home.start("one");
  const asked = home.main.ask(remoteOn("nobody"), "echo", 1, SOON);
  assertStringIncludes((await rejection(asked, "not_found")).message, "main, one");
});

Deno.test("a system of the hub's thread can be disconnected as if it had died", async () => {
  await using home = new Home();
  await home.start("one");
  const other = home.system("other");
  const cut = home.hub.add(other);
  const asked = rejection(other.ask(remoteOn("one"), "wait", null, SOON), "unavailable");
  const ended = home.main.ask(remoteOn("one"), "watchEnd", nodeActorOf("other"), SOON);
  await until(() => other.linkedNodes.length > 0);
  cut();
  await asked;
  assertEquals((await ended).code, "unavailable");
  await rejection(home.main.ask(nodeActorOf("other"), "list", null, SOON), "unavailable");
  await other.stop();
});

Deno.test("ThreadHub.add refuses the name of a node that is starting", async () => {
  await using home = new Home();
  const starting = home.start("one");
  const other = home.system("one");
  assertEquals(assertThrows(() => home.hub.add(other), LeatError).code, "already_exists");
  await starting;
  assertEquals(await home.main.ask(remoteOn("one"), "echo", 1, SOON), 1);
  await other.stop();
});

Deno.test("the function that ThreadHub.add returns leaves a later system of the same name alone", async () => {
  await using home = new Home();
  const one = await home.start("one");
  const [first, second] = [home.system("other"), home.system("other")];
  const cutFirst = home.hub.add(first);
  cutFirst();
  const cutSecond = home.hub.add(second);
  let isEnded = false;
  const ended = home.main.ask(remoteOn("one"), "watchEnd", nodeActorOf("other"), SOON)
    .then(() => isEnded = true);
  await until(() => second.linkedNodes.includes("one"));
  cutFirst();
  // Whatever the hub tells the thread comes before this, and its answers come in order.
  await one.spawn<Remote>("remote", "second", {});
  await home.main.ask(remoteOn("one"), "echo", 1, SOON);
  assertEquals([isEnded, home.hub.nodes.includes("other")], [false, true]);
  cutSecond();
  await ended;
  await Promise.all([first.stop(), second.stop()]);
});
