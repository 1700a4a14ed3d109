/** What the leak and memory checkers detect, during a run and at its end. */
import {
  BEING_ANSWERED_MAX,
  EVERY,
  FEED_BYTES_MAX,
  KEPT_ANSWERS_LASTING_MAX,
  KEPT_ANSWERS_MAX,
  KEPT_LONG_MS,
  MemoryChecker,
  OPEN_ASKS_MAX,
  SILENCE_MS,
  STATE_BYTES_MAX,
  WAITING_MAX,
} from "../../../sim/checkers/memory.ts";
import type { Observer } from "../../../actors/runtime/inspection.ts";
import { SimCluster } from "../../../sim/engine/cluster.ts";
import { findLeaks } from "../../../sim/workloads/lib/leak_check.ts";
import { assertEquals } from "../../assert.ts";

interface DeafProtocol {
  hear(request: number): null;
}

const DEAF = { node: "node", path: "/deaf" };

/** A node with an actor that never starts to work, so that its messages wait. */
function withDeafActor() {
  const cluster = new SimCluster({ seed: 1n });
  const node = cluster.addNode("node", ({ system }) => {
    system.spawn<DeafProtocol>({
      name: "deaf",
      create: () => ({ handlers: { hear: () => null }, start: () => new Promise(() => {}) }),
    });
  });
  const ask = async (count: number) => {
    for (let i = 0; i < count; i++) {
      node.system.ask<DeafProtocol, "hear">(DEAF, "hear", i, { timeoutMs: 1_000 }).catch(() => {});
    }
    let over = false;
    cluster.after(100, "over", () => over = true);
    await cluster.run({ until: () => over, timeMaxMs: 200 });
  };
  return { cluster, node, ask };
}

Deno.test("findLeaks lists remaining actors, messages and asks, but no permanent actors", async () => {
  const { cluster, node, ask } = withDeafActor();
  await ask(3);
  assertEquals(findLeaks(cluster), [
    "/deaf on node",
    "3 messages in mailboxes of node",
    "3 open asks of node",
  ]);
  let over = false;
  node.system.stopActor("deaf");
  cluster.after(2_000, "over", () => over = true);
  await cluster.run({ until: () => over, timeMaxMs: 3_000 });
  assertEquals(findLeaks(cluster), []);
});

Deno.test("MemoryChecker detects mailboxes and asks beyond their bounds, once each", async () => {
  const { cluster, ask } = withDeafActor();
  const found: string[] = [];
  const checker = new MemoryChecker({ add: (what) => found.push(what) });
  const look = () => {
    for (let i = 0; i < 2 * EVERY; i++) checker.look(() => cluster.nodes, 0);
  };
  await ask(WAITING_MAX);
  look();
  assertEquals(found, []);
  await ask(1);
  look();
  const waiting = `${
    WAITING_MAX + 1
  } messages wait in mailboxes of node, of ${WAITING_MAX} at most`;
  assertEquals(found, [waiting]);
  await ask(OPEN_ASKS_MAX - WAITING_MAX - 1);
  look();
  assertEquals(found, [waiting]);
  await ask(1);
  look();
  const open = `${OPEN_ASKS_MAX + 1} asks are open of node, of ${OPEN_ASKS_MAX} at most`;
  assertEquals(found, [waiting, open]);
});

Deno.test("MemoryChecker detects kept answers, unanswered asks, buffered elements and a dispatcher's state beyond their bounds", () => {
  const found: string[] = [];
  const checker = new MemoryChecker({ add: (what) => found.push(what) });
  const observers: Observer[] = [];
  const node = (more: number) => ({
    name: "node",
    isUp: true,
    system: {
      held: {
        waiting: 0,
        openAsks: 0,
        keptAnswers: KEPT_ANSWERS_MAX + more,
        beingAnswered: BEING_ANSWERED_MAX + more,
      },
      inspect: (observer: Observer) => {
        observers.push(observer);
        return () => {};
      },
    },
  });
  checker.watch(node(0));
  const see = (more: number) => {
    const figures = { bufferedBytes: FEED_BYTES_MAX + more };
    const envelope = {
      kind: "ask",
      source: { node: "node", path: "/client", incarnation: "1-1" },
      target: { node: "dispatcher", path: "/dispatcher" },
      number: 1,
      id: 1,
      timeoutMs: 1,
      method: "clientHeartbeat",
      body: { clientId: 1, figures },
    } as const;
    for (let i = 0; i < EVERY; i++) checker.look(() => [node(more)], 0);
    for (const observe of observers) observe({ type: "send", envelope });
    checker.ended("node", STATE_BYTES_MAX + more);
  };
  see(0);
  assertEquals(found, []);
  see(1);
  assertEquals(found, [
    `${KEPT_ANSWERS_MAX + 1} answers are kept of node, of ${KEPT_ANSWERS_MAX} at most`,
    `${BEING_ANSWERED_MAX + 1} asks are being answered of node, of ${BEING_ANSWERED_MAX} at most`,
    `${FEED_BYTES_MAX + 1} bytes wait for a training loop of node, of ${FEED_BYTES_MAX} at most`,
    `${STATE_BYTES_MAX + 1} bytes are in the state of node, of ${STATE_BYTES_MAX} at most`,
  ]);
});

Deno.test("MemoryChecker accepts many kept answers for a while, but not for long", () => {
  const { found, see, pass } = keptAnswers();
  see(1);
  pass(KEPT_LONG_MS - 1);
  see(1);
  see(0);
  pass(1);
  see(1);
  pass(KEPT_LONG_MS - 1);
  see(1);
  assertEquals(found, []);
  pass(1);
  see(1);
  assertEquals(found, [KEPT_TOO_LONG]);
});

Deno.test("MemoryChecker counts at most SILENCE_MS of any idle time", () => {
  const { found, see, pass, silence } = keptAnswers();
  see(1);
  silence(10 * KEPT_LONG_MS);
  see(1);
  pass(KEPT_LONG_MS - SILENCE_MS - 1);
  see(1);
  assertEquals(found, []);
  pass(1);
  see(1);
  assertEquals(found, [KEPT_TOO_LONG]);
});

const KEPT_TOO_LONG =
  `${KEPT_ANSWERS_LASTING_MAX + 1} answers are kept for ${KEPT_LONG_MS} ms of node, of ` +
  `${KEPT_ANSWERS_LASTING_MAX} at most`;

/** A checker, and a node that keeps more answers than it may for long. */
function keptAnswers() {
  const found: string[] = [];
  const checker = new MemoryChecker({ add: (what) => found.push(what) });
  let [nowMs, keptAnswers] = [0, 0];
  const look = () => {
    const held = { waiting: 0, openAsks: 0, keptAnswers, beingAnswered: 0 };
    const node = { name: "node", isUp: true, system: { held, inspect: () => () => {} } };
    checker.look(() => [node], nowMs);
  };
  return {
    found,
    see: (more: number) => {
      keptAnswers = KEPT_ANSWERS_LASTING_MAX + more;
      for (let i = 0; i < EVERY; i++) look();
    },
    pass: (ms: number) => {
      for (const endMs = nowMs + ms; nowMs < endMs; look()) {
        nowMs = Math.min(endMs, nowMs + SILENCE_MS);
      }
    },
    silence: (ms: number) => nowMs += ms,
  };
}
