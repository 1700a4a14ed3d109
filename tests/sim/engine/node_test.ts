/** Crashed nodes do nothing any more, whatever they were doing, and restart with their disk. */

import {
  nodeActorOf,
  OWNER_LOST_MS,
  type SpawnRequest,
} from "../../../actors/runtime/node/node_actor.ts";
import { WATCHERS_MAX } from "../../../actors/runtime/node/peers.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import { LeatError } from "../../../core/error.ts";
import { SimCluster } from "../../../sim/engine/cluster.ts";
import type { SimNode } from "../../../sim/engine/node.ts";
import { NO_FAULTS } from "../../../sim/faults/options.ts";
import { assert, assertEquals } from "../../assert.ts";
import { bootEcho, ECHO, type EchoProtocol, LOOPS, placedFor, spin } from "./spinning.ts";

Deno.test("SimNode.crash silences timers, promises, logs, asks and sends of the life that ends", async () => {
  const cluster = new SimCluster({ seed: 1n });
  cluster.addNode("echo", bootEcho);
  const rounds = new Map<string, number>();
  const node = cluster.addNode("spinner", (node) => {
    if (node.lives === 1) spin(node, rounds);
  });
  let done = false;
  cluster.after(100, "crash", () => {
    node.crash();
    for (const name of [...Object.keys(LOOPS), "log"]) {
      assert(rounds.get(name)! > 3, `"${name}" made ${rounds.get(name)} rounds before the crash`);
    }
    const before = new Map(rounds);
    const usedBytes = node.disk.usedBytes;
    cluster.after(10, "restart", () => node.start());
    cluster.after(5_000, "check", () => {
      assertEquals(rounds, before);
      assertEquals(node.disk.usedBytes, usedBytes);
      done = true;
    });
  });
  await cluster.run({ until: () => done, timeMaxMs: 10_000 });
});

Deno.test("SimNode.crash stops all sends: a late ask of a peer is not sent", async () => {
  const cluster = new SimCluster({ seed: 2n });
  let heard = 0;
  cluster.addNode("echo", ({ system }) => {
    system.spawn<EchoProtocol>({
      name: "echo",
      create: () => ({
        handlers: {
          echo: (request) => {
            heard++;
            return request;
          },
        },
      }),
    });
  });
  const node = cluster.addNode("asker", ({ system }) => {
    system.spawn({
      name: "asker",
      create: (context) => ({
        handlers: {},
        start: () =>
          context.run(async () => {
            for (;;) {
              await context.ask<EchoProtocol, "echo">(ECHO, "echo", 1, { timeoutMs: 100 });
            }
          }),
      }),
    });
  });
  let late = -1;
  cluster.after(50, "crash", () => node.crash());
  // Messages in transit arrive within the longest delay.
  cluster.after(60, "note", () => late = heard);
  let done = false;
  cluster.after(3_000, "end", () => done = true);
  await cluster.run({ until: () => done, timeMaxMs: 10_000 });
  assert(late > 10);
  assertEquals(heard, late);
});

Deno.test("SimNode.stop ends with an earlier crash, and the node stays down", async () => {
  const cluster = new SimCluster({ seed: 3n });
  const node = cluster.addNode("slow", ({ system, host }) => {
    system.spawn({
      name: "slow",
      create: () => ({ handlers: {}, stop: () => host.sleep(1_000) }),
    });
  });
  let hasStopped = false;
  cluster.after(1, "stop", () => void node.stop().then(() => hasStopped = true));
  cluster.after(10, "crash", () => node.crash());
  await cluster.run({ until: () => hasStopped, timeMaxMs: 500 });
  assertEquals([node.isUp, node.isWanted], [false, false]);
});

Deno.test("SimNode.crash also silences the rest of the event in which it happens", async () => {
  const cluster = new SimCluster({ seed: 8n });
  const heard: number[] = [];
  cluster.addNode("echo", ({ system }) => {
    system.spawn<EchoProtocol>({
      name: "echo",
      create: () => ({ handlers: { echo: (request) => heard.push(request) } }),
    });
  });
  const node = cluster.addNode("node", ({ lives, world, system }) => {
    world.openLog("log").then(async (log) => {
      if (lives > 1) {
        heard.push(-(await log.read()).records.length);
        return;
      }
      system.tell<EchoProtocol, "echo">(ECHO, "echo", 1);
      world.timer(10, async () => {
        node.crash({ silent: true });
        for (let turn = 0; turn < 5; turn++) {
          system.tell<EchoProtocol, "echo">(ECHO, "echo", 2);
          log.append(Uint8Array.of(1));
          log.sync();
          world.timer(0, () => heard.push(3));
          world.macrotask(() => heard.push(4));
          world.log("error", "a ghost");
          await Promise.resolve();
        }
        cluster.after(20, "restart", () => node.start());
      });
    });
  });
  await cluster.run({ until: () => heard.length === 2, timeMaxMs: 1_000 });
  await cluster.run({ until: () => cluster.scheduler.pending === 0, timeMaxMs: 10_000 });
  assertEquals(heard, [1, -0]);
  assertEquals(cluster.logs, []);
});

Deno.test("an ask to a crashed node ends: immediately at a reset, otherwise after the timeout", async () => {
  for (const silent of [false, true]) {
    const cluster = new SimCluster({ seed: 3n });
    const target = cluster.addNode("target", ({ system }) => {
      system.spawn<EchoProtocol>({
        name: "echo",
        create: () => ({ handlers: { echo: () => new Promise<number>(() => {}) } }),
      });
    });
    const asker = cluster.addNode("asker", () => {});
    let failed: LeatError | undefined;
    cluster.after(0, "ask", () => {
      asker.system.ask<EchoProtocol, "echo">({ node: "target", path: "/echo" }, "echo", 1, {
        timeoutMs: 60_000,
      }).catch((error) => failed = LeatError.from(error));
    });
    cluster.after(50, "crash", () => target.crash({ silent }));
    await cluster.run({ until: () => failed !== undefined, timeMaxMs: 60_000 });
    assertEquals(failed!.code, "unavailable");
    const tookMs = cluster.scheduler.nowUs / 1_000 - 50;
    assert(silent ? tookMs >= cluster.network.faults.silenceMs : tookMs < 10, `${tookMs} ms`);
  }
});

Deno.test("SimNode.start after a crash gives a new incarnation and the same disk", async () => {
  const cluster = new SimCluster({ seed: 4n });
  const found: number[] = [];
  const node = cluster.addNode("node", ({ world }) => {
    world.openLog("log").then(async (log) => {
      found.push((await log.read()).records.length);
      log.append(Uint8Array.of(1));
      await log.sync();
      if (found.length === 3) return;
      node.crash();
      cluster.after(1, "restart", () => node.start());
    });
  });
  const first = node.system.id;
  await cluster.run({ until: () => found.length === 3, timeMaxMs: 1_000 });
  assertEquals(found, [0, 1, 2]);
  assertEquals(node.system.id.node, first.node);
  assert(node.system.id.incarnation !== first.incarnation);
});

Deno.test("SimNode.pause delays a node's events, and loses and reorders nothing", async () => {
  const cluster = new SimCluster({ seed: 5n });
  const echo = cluster.addNode("echo", bootEcho);
  const asker = cluster.addNode("asker", () => {});
  const answers: number[] = [];
  let slowestMs = 0;
  const ask = (value: number) => {
    const sentUs = cluster.scheduler.nowUs;
    asker.system.ask<EchoProtocol, "echo">(ECHO, "echo", value, { timeoutMs: 10_000 })
      .then((answer) => {
        answers.push(answer);
        slowestMs = Math.max(slowestMs, (cluster.scheduler.nowUs - sentUs) / 1_000);
      });
  };
  for (let i = 0; i < 20; i++) cluster.after(i, "ask", () => ask(i));
  cluster.after(10, "pause", () => echo.pause(500));
  await cluster.run({ until: () => answers.length === 20, timeMaxMs: 10_000 });
  assertEquals(answers, Array.from({ length: 20 }, (_, i) => i));
  assert(slowestMs > 490);
});

Deno.test("SimWorld clocks drift apart, timers never fire early by the node's own clock", async () => {
  const cluster = new SimCluster({ seed: 6n, faults: { ...NO_FAULTS, clockDriftPpmMax: 50_000 } });
  const nodes = ["a", "b", "c"].map((name) => cluster.addNode(name, () => {}));
  let fired = 0;
  for (const { world } of nodes) {
    for (const delayMs of [0, 0.001, 1 / 3, 8, 1_000 / 7, 1_000]) {
      const dueMs = world.nowMs() + delayMs;
      world.timer(delayMs, () => {
        fired++;
        assert(world.nowMs() >= dueMs, `due at ${dueMs}, fired at ${world.nowMs()}`);
      });
    }
  }
  await cluster.run({ until: () => fired === 18, timeMaxMs: 2_000 });
  assertEquals(new Set(nodes.map(({ world }) => world.nowMs())).size, 3);
  const before = nodes[0]!.world.wallMs();
  const monotonic = nodes[0]!.world.nowMs();
  nodes[0]!.stepWallClock(-3_600_000);
  assertEquals(nodes[0]!.world.wallMs(), before - 3_600_000);
  assertEquals(nodes[0]!.world.nowMs(), monotonic);
});

Deno.test("SimWorld timers wait during a sleep of the machine, which stops the monotonic clock", async () => {
  const cluster = new SimCluster({ seed: 7n });
  const node = cluster.addNode("node", () => {});
  const { world } = node;
  const wallMs = world.wallMs();
  const fired: [number, number][] = [];
  for (const delayMs of [100, 600]) {
    const note = () => fired.push([cluster.scheduler.nowUs / 1_000, world.nowMs()]);
    world.timer(delayMs, note);
    world.timer(delayMs, () => assert(false, "a cancelled timer has fired")).cancel();
  }
  const late = world.timer(600, () => assert(false, "a cancelled timer has fired"));
  cluster.after(50, "suspend", () => node.suspend(1_000));
  // The second begins in the first, and ends later.
  cluster.after(60, "suspend", () => node.suspend(1_500));
  cluster.after(1_700, "cancel", () => late.cancel());
  await cluster.run({ until: () => fired.length === 2, timeMaxMs: 5_000 });
  assertEquals(fired, [[1_610, 100], [2_110, 600]]);
  assertEquals(world.wallMs() - wallMs, 2_110);
});

Deno.test("SimWorld clocks of some nodes go on in steps, and their timers do not fire early", async () => {
  const cluster = new SimCluster({ seed: 1n, faults: { ...NO_FAULTS, clockGrainMs: 16 } });
  const nodes = Array.from({ length: 12 }, (_, i) => cluster.addNode(`node-${i}`, () => {}));
  const coarse = new Set<SimNode>();
  let fired = 0;
  for (const node of nodes) {
    const dueMs = node.world.nowMs() + 5;
    node.world.timer(5, () => {
      fired++;
      const nowMs = node.world.nowMs();
      assert(nowMs >= dueMs);
      if (nowMs > 15) coarse.add(node);
    });
  }
  await cluster.run({ until: () => fired === nodes.length, timeMaxMs: 1_000 });
  assert(coarse.size > 0 && coarse.size < nodes.length, `${coarse.size} of 12 clocks are coarse`);
  for (const { world } of coarse) assertEquals(world.nowMs() % 16, 0);
});

Deno.test("SimNode.slowDown queues work, in order, and all of it is done", async () => {
  const cluster = new SimCluster({ seed: 8n });
  const echo = cluster.addNode("echo", bootEcho);
  const asker = cluster.addNode("asker", () => {});
  const answers: number[] = [];
  const ask = async (value: number) => {
    const options = { timeoutMs: 60_000 };
    answers.push(await asker.system.ask<EchoProtocol, "echo">(ECHO, "echo", value, options));
  };
  echo.slowDown(10_000, 50);
  for (let i = 0; i < 40; i++) ask(i);
  await cluster.run({ until: () => answers.length === 40, timeMaxMs: 60_000 });
  assertEquals(answers, Array.from({ length: 40 }, (_, i) => i));
  // Each comes separately: half of 50 ms on average, and more for the work that it starts.
  assert(cluster.scheduler.nowUs > 40 * 15_000, `all was done at ${cluster.scheduler.nowUs} µs`);
  assertEquals(cluster.counters.get("node_slow"), 1);
});

Deno.test("SimCluster.moveNode starts a replacement that is found by both names", async () => {
  const cluster = new SimCluster({ seed: 9n });
  const lives: string[] = [];
  const node = cluster.addNode("node", ({ name }) => lives.push(name));
  node.crash();
  cluster.moveNode("node", "elsewhere");
  cluster.heal();
  assertEquals(lives, ["node", "elsewhere"]);
  assertEquals(cluster.node("node"), cluster.node("elsewhere"));
  cluster.node("node").crash();
  cluster.moveNode("node", "third");
  assertEquals(cluster.nodes.map(({ name }) => name), ["third"]);
  assertEquals(cluster.node("node").name, "third");
  await cluster.run({ until: () => true, timeMaxMs: 1 });
});

Deno.test("SimCluster.run fails with an unhandled rejection", async () => {
  const cluster = new SimCluster({ seed: 7n });
  const node = cluster.addNode("node", () => {});
  node.world.timer(5, () => void Promise.reject(new RangeError("forgotten")));
  node.world.timer(50, () => {});
  let failure: unknown;
  await cluster.run({ until: () => cluster.scheduler.pending === 0, timeMaxMs: 100 })
    .catch((error) => failure = error);
  assertEquals((failure as LeatError).code, "internal");
  assert((failure as LeatError).cause instanceof RangeError);
});

Deno.test("/node answers a repeated request of the owner with the same actor, and refuses all others", async () => {
  const { cluster } = await placedFor();
  const owner = cluster.node("owner");
  const { ref } = owner.system.actors().find(({ ref: { path } }) => path === ECHO.path)!;
  const request = { kind: "echo", name: "placed", config: {}, owner: ref as FencedRef };
  const other = { ...request.owner, incarnation: "another life" };
  const { owner: _, ...unowned } = request;
  const answers: (string | undefined)[] = [];
  const spawn = async (asked: SpawnRequest) => {
    const answer = await owner.system.ask(nodeActorOf("front"), "spawn", asked, { timeoutMs: 500 })
      .catch((error: LeatError) => ({ incarnation: error.code }));
    answers.push(answer.incarnation);
  };
  for (const asked of [request, { ...request, owner: other }, unowned]) spawn(asked);
  await cluster.run({ until: () => answers.length === 3, timeMaxMs: 5_000 });
  const placed = cluster.node("front").system.actors()
    .find(({ ref: { path } }) => path === "/placed")!;
  assertEquals(answers, [placed.ref.incarnation, "already_exists", "already_exists"]);
  await cluster.node("front").system.stopActor("placed");
  spawn(request);
  await cluster.run({ until: () => answers.length === 4, timeMaxMs: 5_000 });
  assert(answers[3] !== answers[0] && answers[3] !== "already_exists", "a dead one was answered");
});

/** Lets virtual time pass. */
async function pass(cluster: SimCluster, delayMs: number): Promise<void> {
  let isOver = false;
  cluster.after(delayMs, "it is over", () => isOver = true);
  await cluster.run({ until: () => isOver, timeMaxMs: 2 * delayMs });
}

for (const silent of [false, true]) {
  Deno.test(`an actor is stopped when the life that it was started for has crashed${silent ? " in silence" : ""}`, async () => {
    const { cluster, isThere } = await placedFor();
    await pass(cluster, 2 * OWNER_LOST_MS);
    assert(isThere(), "it was stopped while its owner lived");
    cluster.node("owner").crash({ silent });
    cluster.after(1_000, "restart", () => cluster.node("owner").start());
    await pass(cluster, OWNER_LOST_MS / 2);
    assert(!isThere(), "it is left of a life that is over");
  });
}

Deno.test("an actor is stopped when its owner has ended, although that notification is lost", async () => {
  const { cluster, isThere } = await placedFor();
  cluster.network.partition(new Set(["owner>front"]));
  await cluster.node("owner").system.stopActor("echo");
  await pass(cluster, 100);
  cluster.network.partition(new Set());
  assert(isThere(), "the news was not lost");
  await pass(cluster, OWNER_LOST_MS / 2);
  assert(!isThere(), "it is left of a life that is over");
});

Deno.test("an actor outlives refused watches of its owner", async () => {
  const { cluster } = await placedFor();
  const owner = cluster.node("owner").system;
  const { ref } = owner.actors().find(({ ref: { path } }) => path === ECHO.path)!;
  const { system } = cluster.node("front");
  const unwatch = Array.from({ length: WATCHERS_MAX }, () => system.watch(ref, () => {}));
  const request = { kind: "echo", name: "late", config: {}, owner: ref as FencedRef };
  owner.ask(nodeActorOf("front"), "spawn", request, { timeoutMs: 5_000 });
  const isThere = () => system.actors().some(({ ref }) => ref.path === "/late");
  await pass(cluster, 2 * OWNER_LOST_MS);
  assert(isThere(), "it was stopped while its owner lived");
  for (const end of unwatch) end();
  await pass(cluster, OWNER_LOST_MS);
  await cluster.node("owner").system.stopActor("echo");
  await pass(cluster, OWNER_LOST_MS / 2);
  assert(!isThere(), "it is left of a life that is over");
});

Deno.test("an actor outlives a short partition from its owner, but not a long one", async () => {
  const { cluster, isThere } = await placedFor();
  const cut = new Set(["owner>front", "front>owner"]);
  for (const [partMs, stays] of [[0.5, true], [0.5, true], [1.5, false]] as const) {
    cluster.network.partition(cut);
    await pass(cluster, partMs * OWNER_LOST_MS);
    cluster.network.partition(new Set());
    await pass(cluster, OWNER_LOST_MS);
    assertEquals(isThere(), stays);
  }
});
