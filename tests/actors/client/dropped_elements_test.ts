/** What the iterators of a service's datasets do with elements that the training loop cannot take. */
import type { ServiceAccess } from "../../../actors/client/access.ts";
import { distributedIterator } from "../../../actors/client/distributed_iterator.ts";
import type { Feed } from "../../../actors/client/feed.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { registerServed } from "../../../data/node.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

/** An iterator whose elements the test gives, and what they come through. */
async function opened(processingMode: "DYNAMIC" | "DETERMINISTIC") {
  const feeds: Feed[] = [];
  const access: ServiceAccess = {
    read(...[, , , feed]: Parameters<ServiceAccess["read"]>) {
      feeds.push(feed);
      return () => {};
    },
    dataset: () => Promise.reject(new LeatError("not_found", "No dataset is registered")),
  };
  registerServed((node, context) => distributedIterator(node, context, access));
  const dataset: Dataset<unknown> = Dataset.range(8).batch(4)
    .distribute({ service: "fake", processingMode });
  const iterator = dataset.iterator();
  const next = iterator.next();
  next.catch(() => {});
  while (feeds.length === 0) await Promise.resolve();
  return { iterator, next, feed: feeds[0]! };
}

function give(feed: Feed, index: number): void {
  const element = new Payload(encodeMessage(index, { into: "arraybuffer" }));
  feed.push({ kind: "element", element, place: { sequence: 0, split: 0, index } });
}

Deno.test("a disposed iterator keeps none of the elements that had arrived, and takes no others", async () => {
  for (const mode of ["DYNAMIC", "DETERMINISTIC"] as const) {
    const { iterator, next, feed } = await opened(mode);
    for (const index of [0, 1, 2]) give(feed, index);
    assertEquals((await next).value, 0);
    assertEquals(feed.length, 2);
    await iterator.return();
    give(feed, 3);
    assertEquals([feed.length, feed.bytes, feed.closed], [0, 0, true], mode);
  }
});

Deno.test("DETERMINISTIC reading ends at rows of a split that cannot be decoded", async () => {
  const { iterator, next, feed } = await opened("DETERMINISTIC");
  const element = new Payload(Uint8Array.of(0xc1));
  feed.push({ kind: "remainder", element, place: { sequence: 0, split: 0, index: 0 } });
  await assertRejects(() => next, LeatError);
  assertEquals(iterator.hasReadingFailed, true);
});
