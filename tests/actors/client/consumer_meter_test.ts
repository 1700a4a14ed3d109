/** How a training loop spends its time, with a manual clock. */

import { Feed } from "../../../actors/client/feed.ts";
import { encodeMessage } from "../../../transport/codec.ts";
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
  const nothing = { elements: 0, bytes: 0, waitingMs: 0, trainingMs: 0, decodingMs: 0, skipped: 0 };
  assertEquals(meter.figures, nothing);
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
  const figures = {
    elements: 2,
    bytes: 107,
    waitingMs: 50,
    trainingMs: 320,
    decodingMs: 0,
    skipped: 0,
  };
  assertEquals(meter.figures, figures);
});

Deno.test("Feed.measure counts the wait of a loop that began before it", async () => {
  let nowMs = 0;
  const feed = new Feed();
  const first = feed.take();
  const meter = feed.measure(() => nowMs);
  nowMs = 25;
  feed.push(element(1));
  await first;
  const figures = {
    elements: 1,
    bytes: 1,
    waitingMs: 25,
    trainingMs: 0,
    decodingMs: 0,
    skipped: 0,
  };
  assertEquals(meter.figures, figures);
});

Deno.test("Feed.decode counts as neither waiting nor training", () => {
  let nowMs = 0;
  const feed = new Feed();
  // Each reading of the clock takes a while, as decoding does.
  const meter = feed.measure(() => nowMs += 10);
  feed.push({ kind: "element", element: new Payload(encodeMessage({ x: 1 })) });
  const fed = feed.take();
  if (fed instanceof Promise || fed.kind !== "element") throw new Error("It is there");
  const takenMs = nowMs;
  assertEquals(feed.decode(fed), { x: 1 });
  const decodedMs = nowMs - takenMs;
  const { decodingMs, trainingMs, waitingMs } = meter.figures;
  assertEquals(decodingMs, 10);
  assertEquals(waitingMs + trainingMs + decodingMs, 10 + decodedMs + 10, "no time is lost");
});

Deno.test("Feed.waitingShare covers recent time only", () => {
  let nowMs = 0;
  const feed = new Feed();
  feed.measure(() => nowMs);
  for (let step = 0; step < 10; step++) {
    feed.push(element(1));
    feed.take();
    nowMs += 1_000;
    feed.waitingShare;
  }
  assertEquals(feed.waitingShare, 0);
  for (let step = 0; step < 5; step++) {
    feed.take();
    nowMs += 1_000;
    feed.push(element(1));
    feed.waitingShare;
  }
  assertEquals(feed.waitingShare, 1);
});

Deno.test("Feed.measure does not count the end of a split as an element", () => {
  const feed = new Feed();
  const meter = feed.measure(() => 0);
  feed.push({ kind: "split_end", place: { sequence: 0, split: 0, index: 0 } });
  feed.take();
  assertEquals(meter.figures.elements, 0);
});
