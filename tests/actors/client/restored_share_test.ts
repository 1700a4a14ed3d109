/** How a consumer that was restored within a repetition detects the end of that repetition. */
import type { ServiceAccess } from "../../../actors/client/access.ts";
import { distributedIterator } from "../../../actors/client/distributed_iterator.ts";
import type { Feed } from "../../../actors/client/feed.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { registerServed } from "../../../data/node.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { until } from "../../lib/until.ts";

interface Reading {
  readonly repetition: number;
  readonly startAt: number | undefined;
  readonly feed: Feed;
}

/** A service that gives what the test says. */
class Service implements ServiceAccess {
  readonly readings: Reading[] = [];

  read(...[, , { repetition, ordered }, feed]: Parameters<ServiceAccess["read"]>): () => void {
    this.readings.push({ repetition, startAt: ordered?.startAt, feed });
    return () => {};
  }

  dataset(): Promise<never> {
    return Promise.reject(new LeatError("not_found", "No dataset is registered"));
  }

  get last(): Reading {
    return this.readings.at(-1)!;
  }
}

function give(feed: Feed, sequence: number, index: number, value: number): void {
  const element = new Payload(encodeMessage(value, { into: "arraybuffer" }));
  feed.push({ kind: "element", element, place: { sequence, split: sequence, index } });
}

function endSplit(feed: Feed, sequence: number, index: number): void {
  feed.push({ kind: "split_end", place: { sequence, split: sequence, index } });
}

Deno.test("a consumer restored in a repetition whose elements others were given continues with the next", async () => {
  const service = new Service();
  registerServed((node, context) => distributedIterator(node, context, service));
  // Numbers are added at the reader, so it reads the whole stream.
  const open = () =>
    Dataset.range(8).enumerate().distribute({
      service: "fake",
      processingMode: "DETERMINISTIC",
      jobName: "job",
      numConsumers: 2,
      consumerIndex: 1,
    }).repeat(2).iterator();
  await using before = open();
  const waiting = before.next();
  await until(() => service.readings.length === 1);
  // The only element belongs to the other consumer; then another reader replaces this one.
  give(service.last.feed, 0, 0, 5);
  endSplit(service.last.feed, 0, 1);
  service.last.feed.fail(new LeatError("failed_precondition", "It was taken over"));
  await assertRejects(() => waiting, LeatError);
  const token = await before.save();

  await using after = open();
  await after.restore(token);
  const next = after.next();
  await until(() => service.readings.length === 2);
  assertEquals([service.last.repetition, service.last.startAt], [0, 1]);
  const { feed } = service.last;
  endSplit(feed, 1, 0);
  feed.end();
  const ended = next.then(({ done }) => done === true);
  const goesOn = until(() => service.last.repetition === 1 || undefined);
  assertEquals(await Promise.race([ended, goesOn]), true, "it has ended");
  assertEquals(service.last.repetition, 1);
  give(service.last.feed, 0, 0, 6);
  give(service.last.feed, 0, 1, 7);
  const { value } = await next;
  assertEquals(value, [1, 7]);
});
