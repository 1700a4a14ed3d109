/** The items of a split, kept until all of its readers have taken them. */
import { type SplitItem, SplitItems } from "../../../../actors/worker/tasks/split_items.ts";
import { Payload } from "../../../../transport/payload.ts";
import { assert, assertEquals } from "../../../assert.ts";
import fc from "../../../lib/properties.ts";

const ITEM_BYTES = 8;

function itemOf(index: number): SplitItem {
  const element = new Payload(new Uint8Array(ITEM_BYTES));
  return { kind: "element", element, place: { sequence: 0, split: 0, index } } as SplitItem;
}

/** Counts reads of an array of that length, if it is filled before this is disposed. */
function watchFilled(length: number, onLook: () => void): Disposable {
  const { fill } = Array.prototype;
  Array.prototype.fill = function (this: unknown[], ...args: Parameters<typeof fill>) {
    const filled = fill.apply(this, args);
    if (filled.length !== length) return filled;
    return new Proxy(filled, {
      get(target, key) {
        if (typeof key === "string" && key !== "length") onLook();
        return Reflect.get(target, key);
      },
    });
  };
  return { [Symbol.dispose]: () => Array.prototype.fill = fill };
}

/** How many reader positions each take visits, for this many readers and items. */
function looksPerTake(readers: number, items: number): number {
  let looks = 0;
  using _watching = watchFilled(readers, () => looks++);
  const split = new SplitItems(readers);
  for (let index = 0; index < items; index++) split.push(itemOf(index));
  for (let index = 0; index < items; index++) {
    for (let reader = 0; reader < readers; reader++) split.take(reader, undefined);
  }
  assertEquals(split.length, 0);
  return looks / (readers * items);
}

Deno.test("SplitItems keeps every item that the slowest reader has not taken", () => {
  const readers = 3;
  const reader = fc.integer({ min: 0, max: readers - 1 });
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ what: fc.constant("push" as const), reader }) },
    { weight: 8, arbitrary: fc.record({ what: fc.constant("take" as const), reader }) },
    { weight: 4, arbitrary: fc.record({ what: fc.constant("own" as const), reader }) },
    { weight: 1, arbitrary: fc.record({ what: fc.constant("pass" as const), reader }) },
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const split = new SplitItems(readers);
    const cursors = Array<number>(readers).fill(0);
    let [pushed, first] = [0, 0];
    for (const { what, reader } of steps) {
      if (what === "push") split.push(itemOf(pushed++));
      else if (what === "pass") {
        split.pass(reader);
        cursors[reader] = Infinity;
      } else if (split.hasFor(reader)) {
        const own = what === "own" ? { sequence: 0, number: 0 } : undefined;
        const item = split.take(reader, own);
        assertEquals(item.place.index, cursors[reader]);
        cursors[reader]! += item.kind === "passed" ? item.count : 1;
      }
      first = Math.min(pushed, Math.max(first, Math.min(...cursors)));
      assertEquals([split.length, split.bytes], [pushed - first, (pushed - first) * ITEM_BYTES]);
      for (const [reader, cursor] of cursors.entries()) {
        assertEquals(split.hasFor(reader), cursor < pushed);
      }
    }
  }));
});

Deno.test("SplitItems visits few readers per take, however many there are", () => {
  const few = looksPerTake(8, 512);
  assert(few > 0);
  assert(looksPerTake(512, 4) <= 2 * few, `${looksPerTake(512, 4)} looks, and ${few} for few`);
});
