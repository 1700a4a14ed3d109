/**
 * The identities under which services know the readers of a dataset, from one iteration to the
 * next.
 */
import { LastReaders } from "../../../data/service/last_readers.ts";
import { assertEquals, assertNotEquals } from "../../assert.ts";
import { DenoHost } from "../../../platform/deno_host.ts";

const reader = (clientId: number, clusterId = "a") => ({ clusterId, clientId });
const opens = (readers: LastReaders, stream: string) => readers.opensRestored(stream) !== undefined;
const joins = (readers: LastReaders, stream: string) => readers.opensRestored(stream)?.();

Deno.test("LastReaders recognises the next iteration by the one before, and a continued one by itself", () => {
  const dataset = new LastReaders();
  const first = new LastReaders(dataset);
  first.note("s", reader(1));
  const second = new LastReaders(dataset);
  assertEquals(second.of("s"), reader(1));
  assertEquals(second.of("another"), undefined);
  second.note("s", reader(2));
  assertEquals(first.of("s"), reader(1));
  assertEquals(new LastReaders(dataset).of("s"), reader(2));
});

Deno.test("LastReaders keeps the newer of two readers noted out of order, and another service's", () => {
  const readers = new LastReaders();
  readers.note("s", reader(2));
  readers.note("s", reader(1));
  assertEquals(readers.of("s"), reader(2));
  readers.note("s", reader(1, "b"));
  assertEquals(readers.of("s"), reader(1, "b"));
});

Deno.test("LastReaders opens each stream as restored until it is joined, in the restored iteration or the next", () => {
  const dataset = new LastReaders();
  const before = new LastReaders(dataset);
  const restored = new LastReaders(dataset);
  assertEquals(opens(restored, "a"), false);
  restored.restored();
  dataset.resumeAfter(restored);
  // The first is closed before its service has answered.
  assertEquals(opens(restored, "a"), true);
  joins(restored, "a");
  assertEquals(opens(restored, "a"), false);
  const next = new LastReaders(dataset);
  assertEquals([opens(next, "a"), opens(next, "b")], [false, true]);
  assertEquals(next.restoration(new DenoHost()), restored.restoration(new DenoHost()));
  joins(next, "b");
  assertEquals([opens(new LastReaders(dataset), "b"), opens(before, "c")], [false, false]);
});

Deno.test("LastReaders that are restored again do not count a late answer to the earlier restore", () => {
  const readers = new LastReaders();
  readers.restored();
  const lateAnswer = readers.opensRestored("a");
  readers.restored();
  lateAnswer?.();
  assertEquals(opens(readers, "a"), true);
});

Deno.test("LastReaders of a restored iteration forget earlier readers, and share one id for all streams", () => {
  const dataset = new LastReaders();
  new LastReaders(dataset).note("s", reader(1));
  const restored = new LastReaders(dataset);
  restored.note("s", reader(2));
  restored.restored();
  assertEquals(restored.of("s"), undefined);
  const name = restored.restoration(new DenoHost());
  assertEquals(restored.restoration(new DenoHost()), name);
  assertNotEquals(new LastReaders(dataset).restoration(new DenoHost()), name);
  restored.note("s", reader(3));
  assertEquals(new LastReaders(dataset).of("s"), reader(3));
});
