/** The counters that keep the ratio, and the ledger that keeps the position. */
import { Counters, divide } from "../../offload/conditional/counters.ts";
import { readySide } from "../../offload/conditional/ready_side.ts";
import { DeliveredSplits } from "../../offload/conditional/ledger.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";
import fc from "../lib/properties.ts";

Deno.test("Counters keep the share of remote elements within one element of the ratio", () => {
  fc.assert(fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (ratio) => {
    const counters = new Counters(ratio);
    let remote = 0;
    for (let count = 1; count <= 300; count++) {
      const side = counters.next;
      counters.count(side);
      if (side === "remote") remote++;
      assert(Math.abs(remote - ratio * count) <= 1);
    }
  }));
});

Deno.test("readySide asks workers instead of a host that has nothing ready, where receiving is cheap", () => {
  const side = (isReady: boolean, aheadSinceMs?: number) => ({ isReady, aheadSinceMs });
  for (const isReady of [true, false]) {
    for (const remote of [side(true), side(false)]) {
      const replaced = !isReady && remote.isReady;
      const sides = { local: side(isReady), remote };
      assertEquals(readySide("local", sides, true), replaced ? "remote" : "local");
      assertEquals(readySide("local", sides, false), "local");
    }
  }
});

Deno.test("readySide asks an idle host instead of workers that have nothing ready", () => {
  const busy = { isReady: true, aheadSinceMs: undefined };
  const idle = { isReady: true, aheadSinceMs: 5 };
  const nothing = { isReady: false, aheadSinceMs: 5 };
  for (const savesCpu of [true, false]) {
    const side = (local: typeof idle | typeof busy, remote: boolean) =>
      readySide("remote", { local, remote: { ...busy, isReady: remote } }, savesCpu);
    assertEquals(side(idle, false), "local");
    assertEquals(side(idle, true), "remote");
    assertEquals(side(busy, false), "remote", "it works meanwhile");
    assertEquals(side(nothing, false), "remote", "it has no splits any more");
  }
});

Deno.test("divide gives each item to one side", () => {
  fc.assert(fc.property(fc.nat(200), fc.double({ min: 0, max: 1, noNaN: true }), (n, ratio) => {
    const items = Array.from({ length: n }, (_, i) => i);
    const { local, remote } = divide(items, ratio);
    assertEquals([...local, ...remote].sort((a, b) => a - b), items);
  }));
  assertEquals(divide([1, 2, 3, 4], 1).local, []);
  assertEquals(divide([1, 2, 3, 4], 0).remote, []);
  assertEquals(divide([1, 2, 3, 4], 0.5), { local: [1, 3], remote: [2, 4] });
});

Deno.test("Ledger takes each element once, and resumes from what it saved", () => {
  const ledger = new DeliveredSplits(20);
  assert(ledger.note(3, 0) && ledger.note(3, 1) && !ledger.note(3, 1));
  for (const sequence of [0, 1, 9]) assert(ledger.finish(sequence));
  assert(!ledger.finish(9) && !ledger.note(9, 5));
  const restored = DeliveredSplits.restored(ledger.save());
  assertEquals(restored.missing, ledger.missing);
  assertEquals(restored.first, 2);
  assert(!restored.note(3, 1) && restored.note(3, 2));
  assertThrows(
    () => DeliveredSplits.restored({ ...ledger.save(), total: 500 }),
    Error,
    "no position",
  );
});
