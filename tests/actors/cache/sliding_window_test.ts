/**
 * The sliding window: the walk of the paper, bounds, and what readers see.
 *
 * @module
 */
import { SlidingWindow } from "../../../actors/cache/sliding_window.ts";
import { assertEquals } from "../../assert.ts";

/** A window of `size` items of one byte each, with the items pushed that a walk begins with. */
function windowOf(size: number, ...items: string[]): SlidingWindow<string> {
  const window = new SlidingWindow<string>(size);
  for (const item of items) window.push(item, 1);
  return window;
}

Deno.test("SlidingWindow evicts at the back as in the paper's figure 5", () => {
  // The window holds B3 to B5; job 1 points to B3, job k to B5. Job k reads B5, B6 enters, B3 leaves.
  const window = windowOf(3, "B1", "B2", "B3");
  for (const expected of ["B1", "B2", "B3"]) assertEquals(window.read("job k"), expected);
  for (const expected of ["B1", "B2"]) assertEquals(window.read("job 1"), expected);
  window.push("B4", 1);
  window.push("B5", 1);
  assertEquals(window.read("job k"), "B4");
  assertEquals(window.read("job k"), "B5");
  assertEquals(window.atFront("job k"), true);
  window.push("B6", 1);
  assertEquals(window.read("job 1"), "B4", "B3 is gone for good; job 1 goes on at the back");
  assertEquals(window.skipped, 1);
  assertEquals(window.read("job k"), "B6");
});

Deno.test("SlidingWindow starts a late joiner at the back of the window", () => {
  const window = windowOf(2, "a", "b", "c", "d");
  assertEquals(window.read("late"), "c");
  assertEquals(window.skipped, 0, "what a reader never pointed to was not skipped by it");
});

Deno.test("SlidingWindow answers undefined at the front and goes on from there", () => {
  const window = windowOf(8, "a");
  assertEquals(window.read("r"), "a");
  assertEquals(window.read("r"), undefined);
  assertEquals(window.read("r"), undefined);
  window.push("b", 1);
  assertEquals(window.read("r"), "b");
});

Deno.test("SlidingWindow is bounded in bytes, not in items", () => {
  const window = new SlidingWindow<string>(10);
  window.push("big", 9);
  window.push("small", 1);
  assertEquals([window.length, window.bytes], [2, 10]);
  window.push("next", 2);
  assertEquals([window.length, window.bytes], [2, 3]);
  assertEquals(window.read("r"), "small");
});

Deno.test("SlidingWindow gives every reader a subsequence of one stream, in order", () => {
  const window = new SlidingWindow<number>(5);
  const seen: Record<string, number[]> = { fast: [], slow: [] };
  for (let i = 0; i < 1_000; i++) {
    window.push(i, 1);
    seen["fast"]!.push(window.read("fast")!);
    if (i % 7 === 0) seen["slow"]!.push(window.read("slow")!);
  }
  assertEquals(seen["fast"], Array.from({ length: 1_000 }, (_, i) => i));
  const slow = seen["slow"]!;
  assertEquals(slow, [...slow].sort((a, b) => a - b));
  assertEquals(new Set(slow).size, slow.length);
});
