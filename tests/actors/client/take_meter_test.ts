/** Where a training loop's time goes, by a clock that moves when told to. */

import { Feed } from "../../../actors/client/feed.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals } from "../../assert.ts";

const element = (bytes: number) => ({
  kind: "element" as const,
  element: new Payload(new Uint8Array(bytes)),
});

Deno.test("Feed.measure tells waiting from training, elements and bytes", async () => {
  let nowMs = 1_000;
  const feed = new Feed();
  const meter = feed.measure(() => nowMs);
  nowMs = 2_000;
  assertEquals(meter.figures, { elements: 0, bytes: 0, waitingMs: 0, trainingMs: 0 });
  const first = feed.take();
  nowMs += 40;
  assertEquals(meter.figures.waitingMs, 40, "a wait counts before it is over");
  nowMs += 10;
  feed.push(element(100));
  await first;
  feed.push(element(7));
  nowMs += 300;
  feed.take();
  nowMs += 20;
  assertEquals(meter.figures, { elements: 2, bytes: 107, waitingMs: 50, trainingMs: 320 });
});

Deno.test("Feed.measure sees the wait of a loop that was there before", async () => {
  let nowMs = 0;
  const feed = new Feed();
  const first = feed.take();
  const meter = feed.measure(() => nowMs);
  nowMs = 25;
  feed.push(element(1));
  await first;
  assertEquals(meter.figures, { elements: 1, bytes: 1, waitingMs: 25, trainingMs: 0 });
});

Deno.test("Feed.measure counts no end of a split as an element", () => {
  const feed = new Feed();
  const meter = feed.measure(() => 0);
  feed.push({ kind: "split_end", place: { sequence: 0, split: 0, index: 0 } });
  feed.take();
  assertEquals(meter.figures.elements, 0);
});
