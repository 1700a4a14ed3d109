/** The remote side of the conditional operator: when it has an item ready, with nobody else in play. */
import type { Feed } from "../../actors/client/feed.ts";
import { END } from "../../data/iterator.ts";
import { installedHost } from "../../data/host.ts";
import { SplitStats } from "../../offload/conditional/split_stats.ts";
import { Dataset } from "../../mod.ts";
import { cutPointsOf, exchangeOf } from "../../offload/cut_points.ts";
import { EpochSplits } from "../../offload/conditional/epoch_splits.ts";
import { RemoteSide } from "../../offload/conditional/remote_side.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { assert, assertEquals } from "../assert.ts";
import { plain } from "../data/lib/outcomes.ts";
import { until } from "../lib/until.ts";

/** A reader of p'2 in a pipeline with batches of 4, whose splits have 8 elements. */
async function batchingSide() {
  const pipeline = Dataset.range(1).flatMap((_, { Dataset }) => Dataset.range(8)).batch(4);
  const cuts = cutPointsOf(pipeline.node);
  const { root, chain, candidates } = exchangeOf(cuts.candidates[0]!, cuts)!;
  const lower = candidates.get("p'2")!.root;
  const host = installedHost();
  const splits = await EpochSplits.list({
    ...{ root, chain, host, seed: 0n, epoch: 0, settings: {}, stats: new SplitStats([]) },
  });
  let feed: Feed | undefined;
  const time = { nowMs: 0, timeLimits: 0 };
  const side = new RemoteSide([0], {
    host: {
      nowMs: () => time.nowMs,
      sleep: () => (time.timeLimits++, new Promise(() => {})),
    },
    open: (_, opened) => (feed = opened, () => {}),
    timeoutMs: 1_000,
    report: () => ({}),
    openUpper: (split, read, onRemainder) => splits.openUpper(lower, split, read, onRemainder),
  });
  return { side, feed: feed!, time };
}

/** A reader of a pipeline of which workers run all operators. */
function plainSide(): RemoteSide {
  return new RemoteSide([0], {
    host: { nowMs: () => 0, sleep: () => new Promise(() => {}) },
    open: () => () => {},
    timeoutMs: 1_000,
    report: () => ({}),
  });
}

function push(feed: Feed, index: number): void {
  const element = new Payload(encodeMessage(index));
  feed.push({ kind: "element", element, place: { sequence: 0, split: 0, index } });
}

Deno.test("RemoteSide is ready with a whole batch, where this host makes batches of elements", async () => {
  const { side, feed, time } = await batchingSide();
  side.prepare();
  for (const index of [0, 1, 2]) {
    push(feed, index);
    assert(!side.isReady);
    await until(() => feed.length === 0);
    assertEquals([side.isReady, side.aheadSinceMs], [false, undefined]);
  }
  time.nowMs = 70;
  push(feed, 3);
  await until(() => side.isReady);
  assertEquals(side.aheadSinceMs, 70);
  const item = await side.next();
  assert(item !== END && item.kind === "element");
  assertEquals((await plain(item.element) as { data: number[] }).data, [0, 1, 2, 3]);
  assertEquals(side.isReady, false);
  side.dispose();
});

Deno.test("RemoteSide limits the wait for an element only once it is asked for an item", async () => {
  const { side, feed, time } = await batchingSide();
  side.prepare();
  push(feed, 0);
  await until(() => feed.length === 0);
  assertEquals(time.timeLimits, 0);
  const asked = side.next();
  await until(() => time.timeLimits === 1);
  side.dispose();
  await asked.catch(() => {});
});

Deno.test("RemoteSide forgets what is buffered when it is disposed, and ends a pending next()", async () => {
  const { side, feed } = await batchingSide();
  for (const index of [0, 1, 2]) push(feed, index);
  assert(feed.bytes > 0);
  side.dispose();
  assertEquals([feed.length, feed.bytes], [0, 0]);
  const waiting = plainSide();
  const pending = waiting.next();
  waiting.dispose();
  assertEquals(await pending, END);
});
