/** How actors are started, restarted and stopped. */

import type { Actor, ActorContext, ChildSpec } from "../../../actors/runtime/actor.ts";
import { nameOf } from "../../../actors/runtime/ref.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "../../assert.ts";
import {
  pass,
  type Probe,
  probe,
  rejection,
  settle,
  SOON,
  spawnProbe,
  test,
  TestNode,
} from "./nodes.ts";
import { childOf, FAST, spawnParent } from "./supervised.ts";

test("another error answers `internal`, kills the actor, and a new life takes over", async () => {
  for (const method of ["crash", "crashLater"] as const) {
    await using node = new TestNode("a", { supervision: FAST });
    const ref = spawnProbe(node);
    const error = await rejection(node.system.ask(ref, method, "a bug", SOON), "internal");
    assertStringIncludes(error.message, "a bug");
    await node.happened("start", 2);
    const echo = await node.system.ask(nameOf(ref), "echo", 1, { ...SOON, attemptMs: 5 });
    assertEquals(echo.calls, 1);
    const [restart] = node.of("restart");
    assertEquals(restart?.ref, ref);
    const lives = node.of("start").map(({ ref }) => ref).filter(({ path }) => path === "/probe");
    assertEquals(lives.length, 2);
    assertNotEquals(lives[0]!.incarnation, lives[1]!.incarnation);
  }
});

test("an ask of an actor that waits to be restarted is `unavailable`, so a patient one gets through", async () => {
  await using node = new TestNode("a", { supervision: { backoffMinMs: 500 } });
  const ref = nameOf(spawnProbe(node));
  await rejection(node.system.ask(ref, "crash", "a bug", SOON), "internal");
  await node.happened("restart");
  await rejection(node.system.ask(ref, "notes", null, SOON), "unavailable");
  assert(node.drops.includes("restarting"));
  assertEquals(await node.system.ask(ref, "notes", null, { ...SOON, attemptMs: 5_000 }), []);
});

test("asks that wait or are being answered when their actor dies are refused at once", async () => {
  await using node = new TestNode("a", { supervision: FAST });
  const ref = spawnProbe(node);
  const handled = rejection(node.system.ask(ref, "wait", null, SOON), "unavailable");
  await node.happened("deliver");
  node.system.tell(ref, "crash", "a bug");
  const waiting = rejection(node.system.ask(ref, "notes", null, SOON), "unavailable");
  assertStringIncludes((await handled).message, "a bug");
  await waiting;
});

test("what stop() lets go is still answered", async () => {
  await using node = new TestNode("a");
  interface Waiter {
    wait(request: null): string;
  }
  const ref = node.system.spawn<Waiter>({
    name: "waiter",
    create() {
      const { promise, resolve } = Promise.withResolvers<string>();
      return {
        handlers: { wait: async () => await promise },
        stop: () => resolve("the end"),
      };
    },
  });
  const asked = node.system.ask(ref, "wait", null, SOON);
  await node.happened("deliver");
  await node.system.stopActor("waiter");
  assertEquals(await asked, "the end");
});

test("the delay before a restart doubles up to its maximum", async () => {
  await using node = new TestNode("a", {
    supervision: { backoffMinMs: 1, backoffMaxMs: 5, intensity: 100 },
  });
  const ref = nameOf(spawnProbe(node));
  for (let deaths = 1; deaths <= 5; deaths++) {
    node.system.tell(ref, "crash", "again");
    await node.happened("restart", deaths);
    await node.happened("start", 1 + deaths);
  }
  assertEquals(node.of("restart").map(({ delayMs }) => delayMs), [1, 2, 4, 5, 5]);
});

test("a constructor or start() that fails is a death like any other", async () => {
  for (const broken of ["create", "start", "startLater"]) {
    await using node = new TestNode("a", { supervision: FAST });
    let lives = 0;
    const ref = spawnProbe(node, {
      create(context): Actor<Probe> {
        const isBroken = ++lives === 1;
        if (isBroken && broken === "create") throw new Error("cannot be made");
        return {
          ...probe(context),
          async start() {
            if (isBroken && broken === "startLater") await settle(1);
            if (isBroken) throw new Error("cannot start");
          },
        };
      },
    });
    const limits = { ...SOON, attemptMs: 5 };
    assertEquals(await node.system.ask(nameOf(ref), "notes", null, limits), []);
    assertEquals(lives, 2, broken);
  }
});

test("messages wait until start() is done", async () => {
  await using node = new TestNode("a");
  const order: string[] = [];
  const ref = spawnProbe(node, {
    create: (context) => ({
      ...probe(context),
      async start() {
        await settle(10);
        order.push("started");
      },
    }),
  });
  const asked = node.system.ask(ref, "notes", null, SOON).then(() => order.push("answered"));
  assertEquals(node.system.actors().find(({ ref }) => ref.path === "/probe")?.state, "starting");
  await asked;
  assertEquals(order, ["started", "answered"]);
});

test("too many restarts within the period kill the supervisor, and its own restarts it", async () => {
  await using node = new TestNode("a", { supervision: FAST });
  const parent = spawnParent(node, ["one"], { ...FAST, intensity: 2 });
  const one = childOf(parent, "one");
  for (let deaths = 1; deaths <= 3; deaths++) {
    const limits = { ...SOON, attemptMs: 5 };
    await node.system.ask(one, "notes", null, limits);
    node.system.tell(one, "crash", "again");
    await node.happened("stop", deaths);
  }
  await node.happened("give_up");
  const [gaveUp] = node.of("give_up");
  assertEquals(gaveUp?.ref, parent);
  assertStringIncludes(gaveUp!.error.message, "3 times");
  const again = await node.system.ask(one, "echo", 1, { ...SOON, attemptMs: 5 });
  assertEquals(again.calls, 1);
  const parents = node.of("start").filter(({ ref }) => ref.path === "/parent");
  assertEquals(parents.length, 2);
});

test("a node whose top-level actors die too often has failed, and says so", async () => {
  await using node = new TestNode("a", { supervision: { ...FAST, intensity: 0 } });
  const ref = spawnProbe(node);
  node.system.tell(ref, "crash", "fatal");
  const error = await node.system.failed;
  assertStringIncludes(error.message, `"probe" died 1 times`);
  assertStringIncludes((error.cause as LeatError).message, "fatal");
});

test("a supervisor restarts the child that died and no other", async () => {
  await using node = new TestNode("a");
  const log: string[] = [];
  const parent = spawnParent(node, ["one", "two", "three"], FAST, { log });
  node.system.tell(childOf(parent, "two"), "crash", "a bug");
  await node.happened("start", 5);
  assertEquals(log, ["start one", "start two", "start three", "stop two internal", "start two"]);
});

test("a temporary child that dies stays away, and its name is free again", async () => {
  await using node = new TestNode("a");
  const parent = spawnParent(node, ["one"], FAST, { child: { restart: "temporary" } });
  await rejection(node.system.ask(childOf(parent, "one"), "crash", "a bug", SOON), "internal");
  await node.happened("stop");
  await settle();
  assertEquals(node.of("restart"), []);
  await rejection(node.system.ask(childOf(parent, "one"), "notes", null, SOON), "not_found");
  await node.system.ask(parent, "spawn", "one", SOON);
  assertEquals(await node.system.ask(childOf(parent, "one"), "notes", null, SOON), []);
});

test("a child stopped while it waits to be restarted does not come back", async () => {
  await using node = new TestNode("a");
  const parent = spawnParent(node, ["one"], { backoffMinMs: 20 });
  node.system.tell(childOf(parent, "one"), "crash", "a bug");
  await node.happened("restart");
  await node.system.ask(parent, "stop", "one", SOON);
  await pass(1_000);
  assertEquals(await node.system.ask(parent, "child", "one", SOON), null);
});

test("stop() ends children before parents, later ones before earlier ones", async () => {
  const node = new TestNode("a");
  const log: string[] = [];
  spawnParent(node, ["one", "two"], FAST, { log });
  node.system.spawn<Probe>({
    name: "last",
    create: (context) => ({ ...probe(context), stop: () => void log.push("stop last") }),
  });
  await node.system.stop();
  assertEquals(log.slice(2), ["stop last", "stop two", "stop one"]);
  const stopped = node.of("stop").map(({ ref }) => ref.path);
  assertEquals(stopped, ["/last", "/parent/two", "/parent/one", "/parent", "/node", "/"]);
  assertEquals(node.system.actors(), []);
});

test("a stop() that takes too long is given up, one that fails is logged, and both end", async () => {
  const node = new TestNode("a");
  spawnProbe(node, {
    name: "slow",
    stopTimeoutMs: 20,
    create: (context) => ({ ...probe(context), stop: () => new Promise(() => {}) }),
  });
  spawnProbe(node, {
    name: "broken",
    create: (context) => ({
      ...probe(context),
      stop() {
        throw new Error("cannot stop");
      },
    }),
  });
  await node.system.stop();
  assertEquals(node.of("stop").length, 4);
});

test("an actor may still ask others from its stop()", async () => {
  await using node = new TestNode("a");
  const ledger = spawnProbe(node, { name: "ledger" });
  const spec: ChildSpec<Probe> = {
    name: "probe",
    create: (context: ActorContext<Probe>) => ({
      ...probe(context),
      async stop() {
        const { calls } = await context.ask(ledger, "echo", "bye", SOON);
        context.tell(ledger, "note", `call ${calls}`);
      },
    }),
  };
  node.system.spawn(spec);
  await node.system.stopActor("probe");
  assertEquals(await node.system.ask(ledger, "notes", null, SOON), ["call 1"]);
});

test("a life's end aborts its signal, cancels its timers and its asks", async () => {
  await using node = new TestNode("a");
  const ledger = spawnProbe(node, { name: "ledger" });
  const { promise: cancelled, resolve } = Promise.withResolvers<LeatError>();
  let signal: AbortSignal | undefined;
  spawnProbe(node, {
    create(context) {
      signal = context.signal;
      context.timer(200, () => context.tell(ledger, "note", "must not fire"));
      context.ask(ledger, "wait", null, SOON).catch(resolve);
      return probe(context);
    },
  });
  await node.system.stopActor("probe");
  assert(signal!.aborted);
  assertEquals((await cancelled).code, "cancelled");
  await pass(1_000);
  assertEquals(await node.system.ask(ledger, "notes", null, SOON), []);
});

test("an error in a timer, a watch or run() kills the actor; `cancelled` from run() does not", async () => {
  const causes: Record<string, (context: ActorContext<Probe>) => void> = {
    timer: (context) =>
      void context.timer(1, () => {
        throw new Error("in a timer");
      }),
    watch: (context) =>
      void context.watch({ node: "a", path: "/nobody" }, () => {
        throw new Error("in a watch");
      }),
    run: (context) => context.run(() => Promise.reject(new Error("in run"))),
  };
  for (const [cause, begin] of Object.entries(causes)) {
    await using node = new TestNode("a", { supervision: FAST });
    let lives = 0;
    spawnProbe(node, {
      create(context) {
        if (++lives === 1) begin(context);
        return probe(context);
      },
    });
    await node.happened("restart");
    assertEquals(node.of("stop")[0]?.error?.message.startsWith("in "), true, cause);
  }
  await using node = new TestNode("a", { supervision: FAST });
  spawnProbe(node, {
    create(context) {
      context.run(() => Promise.reject(new LeatError("cancelled", "no longer wanted")));
      return probe(context);
    },
  });
  await settle();
  assertEquals(node.of("stop"), []);
});

test("spawn refuses a name that is taken, empty or a path", async () => {
  await using node = new TestNode("a");
  spawnProbe(node);
  for (
    const [name, code] of [["probe", "already_exists"], ["", "invalid_argument"], [
      "x/y",
      "invalid_argument",
    ]] as const
  ) {
    const error = await rejection(
      (async () => await Promise.resolve(spawnProbe(node, { name })))(),
      code,
    );
    assertStringIncludes(error.message, `"${name}"`);
  }
});
