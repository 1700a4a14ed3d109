/** Random numbers, fault points, counters and traces. */
import { Counters } from "../../sim/engine/counters.ts";
import { FAULT_POINTS, FaultPoints } from "../../sim/faults/fault_points.ts";
import { drawFaults, NO_FAULTS } from "../../sim/faults/options.ts";
import { SimRandom } from "../../sim/engine/random.ts";
import { Trace } from "../../sim/engine/trace.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { LeatError } from "../../core/error.ts";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";

Deno.test("SimRandom.fork is independent of draws from other streams", () => {
  const draw = (before: number) => {
    const random = new SimRandom(1n);
    for (let i = 0; i < before; i++) random.next();
    return random.fork("a").hex64();
  };
  assertEquals(draw(0), draw(5));
  assertNotEquals(draw(0), new SimRandom(1n).fork("b").hex64());
  assertNotEquals(draw(0), new SimRandom(2n).fork("a").hex64());
});

Deno.test("FaultPoints decides once per run whether a point is enabled; an enabled one fires sometimes", () => {
  const rates: number[] = [];
  for (let seed = 1n; seed <= 100n; seed++) {
    const points = new FaultPoints(new SimRandom(seed), new Counters(), 0.2);
    let fired = 0;
    for (let i = 0; i < 1_000; i++) if (points.fires("slow disk")) fired++;
    rates.push(fired);
    points.heal();
    assert(!points.fires("slow disk"));
  }
  const never = rates.filter((fired) => fired === 0).length;
  assert(never > 30 && never < 70, `${never} of 100 runs have the point disabled`);
  assert(rates.every((fired) => fired === 0 || (fired > 130 && fired < 270)));
});

Deno.test("FAULT_POINTS lists the points of production code, each of which occurs once", async () => {
  const found: string[] = [];
  const look = async (folder: URL): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(folder)) {
      if (isDirectory) await look(new URL(`${name}/`, folder));
      else {
        const source = await Deno.readTextFile(new URL(name, folder));
        for (const [, point] of source.matchAll(/\bfault\("([^"]+)"\)/g)) found.push(point!);
      }
    }
  };
  for (const room of ["actors", "transport", "platform", "server", "data"]) {
    await look(new URL(`../../${room}/`, import.meta.url));
  }
  assertEquals(found.sort(), [...FAULT_POINTS]);
});

Deno.test("FaultPoints counts firings by point", () => {
  const counters = new Counters();
  const points = new FaultPoints(new SimRandom(1n), counters, 1);
  for (const point of ["a", "b", "c", "d", "e", "f"]) points.fires(point);
  assert(counters.entries().length > 0);
  assert(counters.entries().every(([name, count]) => /^point [a-f]$/.test(name) && count === 1));
});

Deno.test("Counters.expectAll names the faults that never happened", () => {
  const counters = new Counters();
  counters.count("message_lost");
  counters.expectAll(["message_lost"]);
  const error = assertThrows(() => counters.expectAll(["message_lost", "partition"]), LeatError);
  assertStringIncludes(error.message, "partition");
  assert(!error.message.includes("message_lost"));
});

Deno.test("drawFaults covers every value of every option over some seeds, and absence of each fault", () => {
  const seen = new Map<string, Set<unknown>>();
  for (let seed = 1n; seed <= 200n; seed++) {
    for (const [name, value] of Object.entries(drawFaults(new SimRandom(seed)))) {
      seen.set(name, (seen.get(name) ?? new Set()).add(value));
    }
  }
  assertEquals([...seen.keys()].sort(), Object.keys(NO_FAULTS).sort());
  for (const [name, values] of seen) assert(values.size >= 2, `${name} is always ${[...values]}`);
  for (const name of ["lossProbability", "duplicateProbability", "reorderProbability"]) {
    assert(seen.get(name)!.has(0));
  }
});

const ENVELOPE: Envelope = {
  kind: "tell",
  source: { node: "a", path: "/x", incarnation: "1-1" },
  target: { node: "b", path: "/y" },
  number: 1,
  method: "note",
  body: { text: "hello" },
};

Deno.test("Trace.hash depends on time, link, fate, number and bytes, and on nothing else", () => {
  const base = [5, "a>b", "sent", ENVELOPE, Uint8Array.of(1, 2)] as const;
  const hashOf = (...record: Parameters<Trace["envelope"]>) => {
    const trace = new Trace();
    trace.envelope(...record);
    return trace.hash;
  };
  const [time, link, fate, envelope, bytes] = base;
  const hashes = new Set([
    hashOf(...base),
    hashOf(6, link, fate, envelope, bytes),
    hashOf(time, "a>c", fate, envelope, bytes),
    hashOf(time, link, "lost", envelope, bytes),
    hashOf(time, link, fate, { ...envelope, number: 2 }, bytes),
    hashOf(time, link, fate, envelope, Uint8Array.of(1, 3)),
  ]);
  assertEquals(hashes.size, 6);
  const readable = new Trace({ readable: true });
  readable.envelope(...base);
  assertEquals(readable.hash, hashOf(...base));
  assertStringIncludes(readable.lines[0]!, `a>b sent tell note /x → /y (1) {"text":"hello"}`);
});

Deno.test("Trace.hash holds messages larger than its own buffer", () => {
  const hashOf = (last: number) => {
    const bytes = new Uint8Array(200_000);
    bytes[199_999] = last;
    const trace = new Trace();
    trace.envelope(1, "a>b", "sent", ENVELOPE, bytes);
    trace.mark(2, "end");
    return trace.hash;
  };
  assertEquals(hashOf(1), hashOf(1));
  assertNotEquals(hashOf(1), hashOf(2));
});
