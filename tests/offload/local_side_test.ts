/** The local side of the conditional operator: which splits run at the same time. */
import { assertEquals } from "../assert.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { END } from "../../data/iterator.ts";
import type { SplitEvents } from "../../offload/conditional/epoch_splits.ts";
import { LocalSide } from "../../offload/conditional/local_side.ts";

/** A split of one element, which comes when the test says so. */
class Split {
  readonly element = Promise.withResolvers<void>();
  readonly asked = Promise.withResolvers<void>();
  readonly events: SplitEvents;
  isReturned = false;
  #given = false;

  constructor(events: SplitEvents) {
    this.events = events;
  }

  async next(): Promise<IteratorResult<unknown, undefined>> {
    this.asked.resolve();
    if (this.#given) return { done: true, value: undefined };
    this.#given = true;
    await this.element.promise;
    return { done: false, value: "element" };
  }

  return(): Promise<IteratorResult<unknown, undefined>> {
    this.isReturned = true;
    return Promise.resolve({ done: true, value: undefined });
  }
}

function sideOf(queue: readonly number[]) {
  const opened: Split[] = [];
  const side = new LocalSide(queue, {
    host: { yield: () => Promise.resolve(), nowMs: () => 0 },
    aheadMax: 2,
    open: (sequence, events) => {
      const split = opened[sequence] = new Split(events);
      return { split: sequence, iterator: split as unknown as DatasetIterator<unknown> };
    },
  });
  return { side, opened };
}

Deno.test("LocalSide begins the next split, and no other, once one has been read", async () => {
  const { side, opened } = sideOf([0, 1, 2]);
  const first = side.next();
  await opened[0]!.asked.promise;
  assertEquals(opened.length, 1);
  opened[0]!.events.onRead();
  // Its element comes only after the next split was asked for its own.
  await opened[1]!.asked.promise;
  opened[1]!.events.onRead();
  assertEquals(opened.length, 2);
  opened[1]!.element.resolve();
  opened[0]!.element.resolve();
  const item = await first;
  assertEquals(item !== END && item.place.sequence, 0);
  const found: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const item = await side.next();
    found.push(item === END ? END : [item.kind, item.place.sequence]);
    opened[2]?.element.resolve();
  }
  assertEquals(found, [["split_end", 0], ["element", 1], ["split_end", 1], ["element", 2]]);
  side.dispose();
});

Deno.test("LocalSide closes the split that it has begun early, too", async () => {
  const { side, opened } = sideOf([0, 1]);
  const first = side.next();
  await opened[0]!.asked.promise;
  opened[0]!.events.onRead();
  await opened[1]!.asked.promise;
  side.dispose();
  assertEquals(await first, END);
  assertEquals(opened.map(({ isReturned }) => isReturned), [true, true]);
  for (const { element } of opened) element.resolve();
});
