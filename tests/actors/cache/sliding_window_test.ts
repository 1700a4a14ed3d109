/** The sliding window: the example of the paper, bounds, and what readers see. */
import { READERS_MAX, SlidingWindow } from "../../../actors/cache/sliding_window.ts";
import { assertEquals } from "../../assert.ts";
import fc from "../../lib/properties.ts";

/** A window of `size` one-byte items, filled with the first items of an example. */
function windowOf(size: number, ...items: string[]): SlidingWindow<string> {
  const window = new SlidingWindow<string>(size);
  for (const item of items) window.push(item, 1);
  return window;
}

Deno.test("SlidingWindow evicts at the back as in the paper's figure 5", () => {
  // Before: worker 1's window holds B1 to B3, worker n's B3 to B5. Job 1 points to B1 in the first
  // and to B3 in the second, job k to B5 in the second.
  const worker1 = windowOf(3, "B1", "B2", "B3");
  const workerN = windowOf(3, "B1", "B2", "B3");
  for (const batch of ["B1", "B2"]) {
    for (const job of ["job 1", "job k"]) assertEquals(workerN.read(job)?.value, batch);
  }
  for (const batch of ["B3", "B4"]) {
    if (batch === "B4") workerN.push(batch, 1);
    assertEquals(workerN.read("job k")?.value, batch);
  }
  workerN.push("B5", 1);
  assertEquals([workerN.length, workerN.bytes], [3, 3]);

  // Read X: job 1 fetches B1 of worker 1, and its pointer moves on to B2. Nothing else changes.
  assertEquals(worker1.read("job 1"), { value: "B1", skipped: 0 });
  assertEquals([worker1.length, worker1.atFront("job 1")], [3, false]);

  // Read Y: job k fetches B5 of worker n, which is the newest: it dictates production…
  assertEquals(workerN.read("job k"), { value: "B5", skipped: 0 });
  assertEquals(workerN.atFront("job k"), true);
  // …of B6, which enters at the front. B3 is evicted at the back.
  workerN.push("B6", 1);
  assertEquals([workerN.length, workerN.bytes], [3, 3]);
  assertEquals(workerN.atFront("job k"), false);

  // Job 1 has not moved and implicitly points to B4: B3 is gone for it. Job k still points to B6.
  assertEquals(workerN.read("job 1"), { value: "B4", skipped: 1 });
  assertEquals(workerN.read("job k"), { value: "B6", skipped: 0 });
  assertEquals(workerN.skipped, 1);
  assertEquals(worker1.read("job 1"), { value: "B2", skipped: 0 });
});

Deno.test("SlidingWindow starts a late joiner at the back of the window", () => {
  const window = windowOf(2, "a", "b", "c", "d");
  assertEquals(window.read("late"), { value: "c", skipped: 0 });
  assertEquals(window.skipped, 0, "what a reader never pointed to was not skipped by it");
});

Deno.test("SlidingWindow answers undefined at the front and continues from there", () => {
  const window = windowOf(8, "a");
  assertEquals(window.read("r")?.value, "a");
  assertEquals(window.read("r"), undefined);
  assertEquals(window.read("r"), undefined);
  window.push("b", 1);
  assertEquals(window.read("r"), { value: "b", skipped: 0 });
});

Deno.test("SlidingWindow is bounded in bytes, not in items", () => {
  const window = new SlidingWindow<string>(10);
  window.push("big", 9);
  window.push("small", 1);
  assertEquals([window.length, window.bytes], [2, 10]);
  window.push("next", 2);
  assertEquals([window.length, window.bytes], [2, 3]);
  assertEquals(window.read("r")?.value, "small");
});

Deno.test("SlidingWindow drops its oldest items when it shrinks, and can grow again", () => {
  const window = windowOf(4, "a", "b", "c", "d");
  assertEquals(window.read("r")?.value, "a");
  window.resize(2);
  assertEquals([window.bytes, window.bytesMax], [2, 2]);
  assertEquals(window.read("r"), { value: "c", skipped: 1 });
  window.resize(3);
  window.push("e", 1);
  assertEquals(window.read("late")?.value, "c");
});

Deno.test("SlidingWindow keeps its newest item, however little it may hold", () => {
  const window = windowOf(4, "a", "b");
  assertEquals(window.read("r")?.value, "a");
  window.resize(0);
  assertEquals(window.read("r"), { value: "b", skipped: 0 });
  window.push("c", 9);
  window.push("d", 9);
  assertEquals([window.length, window.bytes], [1, 9]);
  assertEquals(window.read("r"), { value: "d", skipped: 1 });
});

Deno.test("SlidingWindow forgets the reader idle longest when there are too many", () => {
  const window = windowOf(4, "a", "b");
  for (let i = 0; i < READERS_MAX; i++) assertEquals(window.read(`r${i}`)?.value, "a");
  assertEquals(window.read("r0")?.value, "b");
  assertEquals(window.read("one more")?.value, "a");
  assertEquals(window.readers, READERS_MAX);
  assertEquals(window.read("r1")?.value, "a", "r1 was forgotten and starts over");
  assertEquals(window.read("r0"), undefined, "r0 has read since, and was not");
});

/** The whole stream and everyone's position: slow and obvious. */
class Reference {
  readonly #stream: number[] = [];
  readonly #pointers = new Map<string, number>();
  #back = 0;
  #bytesMax: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#stream.slice(this.#back).reduce((sum, bytes) => sum + bytes, 0);
  }

  push(bytes: number): void {
    while (this.#back < this.#stream.length && this.bytes + bytes > this.#bytesMax) this.#back++;
    this.#stream.push(bytes);
  }

  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    while (this.bytes > bytesMax && this.#back < this.#stream.length - 1) this.#back++;
  }

  /** The position in the stream that a reader gets. */
  read(reader: string): { value: number; skipped: number } | undefined {
    const from = this.#pointers.get(reader) ?? this.#back;
    for (let at = from; at < this.#stream.length; at++) {
      if (at < this.#back) continue;
      this.#pointers.set(reader, at + 1);
      return { value: at, skipped: at - from };
    }
    return undefined;
  }
}

Deno.test("SlidingWindow behaves like a list of the whole stream for random calls", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ push: fc.integer({ min: 1, max: 6 }) }) },
    { weight: 8, arbitrary: fc.record({ read: fc.constantFrom("a", "b", "c") }) },
    { weight: 1, arbitrary: fc.record({ resize: fc.integer({ min: 6, max: 20 }) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const window = new SlidingWindow<number>(10);
      const reference = new Reference(10);
      let pushed = 0;
      for (const one of steps) {
        if ("push" in one) {
          window.push(pushed++, one.push);
          reference.push(one.push);
        } else if ("resize" in one) {
          window.resize(one.resize);
          reference.resize(one.resize);
        } else assertEquals(window.read(one.read), reference.read(one.read));
        assertEquals(window.bytes, reference.bytes);
      }
    }),
    { numRuns: 300 },
  );
});
