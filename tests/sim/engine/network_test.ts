/** The simulated network: each fault has its documented effect, below the runtime's numbering. */
import type { InspectionEvent } from "../../../actors/runtime/inspection.ts";
import { LeatError } from "../../../core/error.ts";
import { SimCluster } from "../../../sim/engine/cluster.ts";
import { Life } from "../../../sim/engine/life.ts";
import { Nemesis } from "../../../sim/faults/nemesis.ts";
import { type FaultOptions, NO_FAULTS } from "../../../sim/faults/options.ts";
import { assert, assertEquals } from "../../assert.ts";

interface NoteProtocol {
  note(request: { readonly value: number; readonly bytes?: Uint8Array }): number;
}

const NOTES = { node: "receiver", path: "/notes" };

/** Two nodes: `noted` gets what the receiver notes, `events` what its runtime does. */
function pair(faults: Partial<FaultOptions>, seed = 1n) {
  const cluster = new SimCluster({ seed, faults: { ...NO_FAULTS, ...faults } });
  const noted: number[] = [];
  const events: InspectionEvent[] = [];
  const receiver = cluster.addNode("receiver", ({ system }) => {
    system.inspect((event) => events.push(event));
    system.spawn<NoteProtocol>({
      name: "notes",
      create: () => ({
        handlers: {
          note: ({ value }) => {
            noted.push(value);
            return value;
          },
        },
      }),
    });
  });
  const sender = cluster.addNode("sender", () => {});
  const tellAll = (count: number) => {
    for (let value = 0; value < count; value++) {
      sender.system.tell<NoteProtocol, "note">(NOTES, "note", { value });
    }
  };
  const settle = () => {
    let over = false;
    cluster.after(10_000, "end", () => over = true);
    return cluster.run({ until: () => over, timeMaxMs: 20_000 });
  };
  return { cluster, noted, events, receiver, sender, tellAll, settle };
}

function isAscending(values: number[]): boolean {
  return values.every((value, i) => i === 0 || values[i - 1]! < value);
}

Deno.test("SimNetwork without faults delivers everything once and in order", async () => {
  const { noted, events, tellAll, settle, cluster } = pair({});
  tellAll(200);
  await settle();
  assertEquals(noted, Array.from({ length: 200 }, (_, i) => i));
  assert(events.every(({ type }) => type !== "drop" && type !== "gap"));
  assertEquals(cluster.counters.entries(), []);
});

Deno.test("SimNetwork loses messages: the receiver sees gaps and no others", async () => {
  const { noted, events, tellAll, settle, cluster } = pair({ lossProbability: 0.2 });
  tellAll(500);
  await settle();
  assertEquals(noted.length, 500 - cluster.counters.get("message_lost"));
  assert(noted.length > 350 && noted.length < 450);
  assert(isAscending(noted));
  assert(events.some(({ type }) => type === "gap"));
});

Deno.test("SimNetwork duplicates and reorders: the receiver drops what is not newer", async () => {
  const { noted, events, tellAll, settle, cluster } = pair({
    duplicateProbability: 0.2,
    reorderProbability: 0.2,
    reorderDelayMaxMs: 20,
  });
  tellAll(500);
  await settle();
  assert(isAscending(noted), "a duplicate or an overtaken message was handled");
  const dropped = events.filter((event) => event.type === "drop" && event.reason === "not_newer");
  assert(dropped.length > cluster.counters.get("message_duplicated") / 2);
  assert(cluster.counters.get("message_reordered") > 50);
});

Deno.test("SimNetwork loses messages beyond the bytes that may be in flight", async () => {
  const { noted, sender, settle, cluster } = pair({ inFlightBytesMax: 50_000 });
  for (let value = 0; value < 20; value++) {
    const bytes = new Uint8Array(10_000);
    sender.system.tell<NoteProtocol, "note">(NOTES, "note", { value, bytes });
  }
  await settle();
  assertEquals(noted, [0, 1, 2, 3]);
  assertEquals(cluster.counters.get("message_overflow"), 16);
});

Deno.test("SimNetwork cuts: messages vanish, then both ends close the link; healed, they reconnect", async () => {
  const { noted, sender, settle, cluster, tellAll, receiver } = pair({});
  const cut = new Set(["sender>receiver"]);
  tellAll(1);
  cluster.after(100, "cut", () => cluster.network.partition(cut));
  cluster.after(200, "tell", () => {
    assertEquals(sender.system.linkedNodes, ["receiver"]);
    tellAll(1);
  });
  cluster.after(4_000, "look", () => {
    assertEquals(sender.system.linkedNodes, []);
    assertEquals(receiver.system.linkedNodes, []);
  });
  cluster.after(5_000, "heal", () => cluster.heal());
  cluster.after(5_001, "tell", () => tellAll(2));
  await settle();
  assertEquals(noted, [0, 0, 1]);
  assert(cluster.counters.get("message_cut") > 0);
});

Deno.test("swizzled clogging delays, and loses and reorders nothing", async () => {
  const held: number[] = [];
  for (let seed = 1n; seed <= 10n; seed++) {
    const { noted, cluster, tellAll, settle } = pair({ swizzleMaxMs: 2_000 }, seed);
    const nemesis = new Nemesis(cluster);
    nemesis.start();
    tellAll(1);
    for (let i = 1; i <= 40; i++) cluster.after(i * 200, "tell", () => tellAll(1));
    cluster.after(9_000, "over", () => nemesis.stop());
    await settle();
    cluster.heal();
    await settle();
    assertEquals(noted.length, 41, `SEED=${seed}`);
    held.push(cluster.counters.get("message_held"));
    assert(cluster.counters.get("swizzled") > 0);
  }
  assert(held.filter((count) => count > 0).length > 5, `held in each run: ${held}`);
});

Deno.test("SimNetwork.clog holds messages from or to a node or in a direction, and free releases them in order", async () => {
  for (const way of ["sender", "receiver", "sender>receiver"]) {
    const { noted, cluster, sender, tellAll, settle } = pair({});
    tellAll(1);
    await settle();
    cluster.network.clog(way);
    cluster.network.clog("receiver>sender");
    for (let value = 1; value <= 20; value++) {
      sender.system.tell<NoteProtocol, "note">(NOTES, "note", { value });
    }
    await settle();
    assertEquals(noted, [0], way);
    cluster.network.free("receiver>sender");
    await settle();
    assertEquals(noted, [0], way);
    cluster.network.free(way);
    await settle();
    assertEquals(noted, Array.from({ length: 21 }, (_, i) => i), way);
    assertEquals(cluster.counters.get("message_held"), 20);
  }
});

Deno.test("SimNetwork gives each direction its own share of the message faults", async () => {
  const cluster = new SimCluster({
    seed: 3n,
    faults: { ...NO_FAULTS, lossProbability: 0.4, directionShareMin: 0 },
  });
  const names = ["a", "b", "c", "d"];
  for (const name of names) cluster.addNode(name, () => {});
  const losses = names.flatMap((from) =>
    names.filter((to) => to !== from).map((to) =>
      cluster.network.faultsOf(from, to).lossProbability
    )
  );
  assertEquals(new Set(losses).size, losses.length);
  assert(losses.every((loss) => loss <= 0.4) && Math.max(...losses) > 3 * Math.min(...losses));
  assertEquals(cluster.network.faultsOf("a", "b").lossProbability, losses[0]);
  cluster.heal();
  assertEquals(cluster.network.faultsOf("a", "b").lossProbability, 0);
  await cluster.run({ until: () => true, timeMaxMs: 1 });
});

Deno.test("SimNetwork reports why a node is unreachable: unknown, refused, silent", async () => {
  const cluster = new SimCluster({ seed: 1n });
  const dialler = cluster.addNode("dialler", () => {});
  for (const name of ["refuses", "vanished"]) cluster.addNode(name, () => {});
  const found = new Map<string, [code: string, afterMs: number]>();
  const dial = (node: string) => {
    const startUs = cluster.scheduler.nowUs;
    dialler.system.ask({ ...NOTES, node }, "note" as never, { value: 1 } as never, {
      timeoutMs: 30_000,
    }).catch((error) => {
      const tookMs = (cluster.scheduler.nowUs - startUs) / 1_000;
      found.set(node, [LeatError.from(error).code, tookMs]);
    });
  };
  cluster.after(1, "crash", () => {
    cluster.node("refuses").crash();
    cluster.node("vanished").crash({ silent: true });
    for (const node of ["unknown", "refuses", "vanished"]) dial(node);
  });
  await cluster.run({ until: () => found.size === 3, timeMaxMs: 60_000 });
  assertEquals(found.get("unknown")![0], "not_found");
  assertEquals(found.get("refuses")![0], "unavailable");
  assertEquals(found.get("vanished")![0], "unavailable");
  assert(found.get("refuses")![1] < 5);
  assert(found.get("vanished")![1] >= cluster.network.faults.connectTimeoutMs);
});

Deno.test("SimNetwork resets a link whose other end was in an ended life", async () => {
  const { cluster, receiver, sender, tellAll, settle, noted } = pair({ silenceMs: 1e9 });
  tellAll(1);
  cluster.after(10, "crash", () => receiver.crash({ silent: true }));
  cluster.after(20, "restart", () => receiver.start());
  // The first finds that the link is dead, the second opens another.
  cluster.after(100, "tell", () => tellAll(1));
  cluster.after(200, "tell", () => tellAll(1));
  await settle();
  assertEquals(noted, [0, 0]);
  assertEquals(sender.system.linkedNodes, ["receiver"]);
});

Deno.test("received messages are views neither of the sent one nor of each other", async () => {
  const cluster = new SimCluster({ seed: 1n, faults: { ...NO_FAULTS, duplicateProbability: 1 } });
  const sent = new Uint8Array(1_000).fill(1);
  const seen: number[] = [];
  const life = new Life(cluster.scheduler, "receiver", 1);
  cluster.network.listen(life, { node: "receiver", incarnation: "bb" }, (link) => {
    link.start((envelope) => {
      const { bytes } = (envelope as { body: { bytes: Uint8Array } }).body;
      seen.push(bytes[0]!);
      bytes.fill(9);
    });
  });
  const dialler = new Life(cluster.scheduler, "sender", 1);
  cluster.network.connector(dialler).connect("receiver", { node: "sender", incarnation: "aa" })
    .then((link) => {
      link.send({
        kind: "tell",
        source: { node: "sender", path: "/s", incarnation: "aa-1" },
        target: NOTES,
        number: 1,
        method: "note",
        body: { bytes: sent },
      });
      sent.fill(5);
    });
  await cluster.run({ until: () => cluster.scheduler.pending === 0, timeMaxMs: 1_000 });
  assertEquals(seen, [1, 1]);
  assertEquals(sent[0], 5);
});

Deno.test("SimNetwork: large messages are not overtaken on their link, and all arrive", async () => {
  const { cluster, noted, sender, settle } = pair({
    bytesPerSecond: 1e6,
    delayMinMs: 0,
    delayMaxMs: 20,
  });
  for (let value = 0; value < 40; value++) {
    const bytes = new Uint8Array(value % 2 === 0 ? 10_000 : 0);
    sender.system.tell<NoteProtocol, "note">(NOTES, "note", { value, bytes });
  }
  await settle();
  assertEquals(noted, Array.from({ length: 40 }, (_, i) => i));
  assertEquals(cluster.counters.entries(), []);
});
