/** What the iterators of a service's datasets do with elements that the training loop cannot take. */
import type { ServiceAccess } from "../../../actors/client/access.ts";
import { distributedIterator } from "../../../actors/client/distributed_iterator.ts";
import type { Feed } from "../../../actors/client/feed.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { registerServed } from "../../../data/node.ts";
import type { DistributeNode } from "../../../data/operators/distribute.ts";
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
  registerServed((node, context) => {
    const { inputs: [input], options } = node as DistributeNode;
    return distributedIterator(input!, options, context, access);
  });
  const dataset: Dataset<unknown> = Dataset.range(8).batch(4)
    .distribute({ service: "fake", processingMode });
  const iterator = dataset.iterator();
  const next = iterator.next();
  next.catch(() => {});
  while (feeds.length === 0) await Promise.resolve();
  return { iterator, next, feed: feeds[0]! };
}

Deno.test("DETERMINISTIC reading ends at rows of a split that cannot be decoded", async () => {
  const { iterator, next, feed } = await opened("DETERMINISTIC");
  const element = new Payload(Uint8Array.of(0xc1));
  feed.push({ kind: "remainder", element, place: { sequence: 0, split: 0, index: 0 } });
  await assertRejects(() => next, LeatError);
  assertEquals(iterator.hasReadingFailed, true);
});
