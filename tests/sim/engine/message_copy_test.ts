/** Copied messages are equivalent to encoded and decoded ones. */
import { assert, assertEquals, assertNotEquals, assertThrows } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { copyMessage } from "../../../sim/engine/message_copy.ts";
import { Trace } from "../../../sim/engine/trace.ts";
import { seedOptions } from "../../../sim/vopr/flags.ts";
import { WORKLOADS } from "../../../sim/workloads/workloads.ts";
import { decodeMessage, encodeMessage, MessageSlab } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import fc from "../../lib/properties.ts";

const slab = new MessageSlab();

/** Plain data of messages; its text is ASCII. */
const { message } = fc.letrec((tie) => ({
  item: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: "binary-ascii", maxLength: 300 }),
    fc.double(),
    fc.maxSafeInteger(),
    fc.integer({ min: -40_000, max: 70_000 }),
    fc.integer({ min: -140, max: 260 }),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => new Payload(bytes)),
    fc.array(tie("item"), { maxLength: 20 }),
    tie("message"),
  ),
  message: fc.dictionary(
    fc.string({ unit: "binary-ascii", maxLength: 40 }).filter((key) => key !== "__proto__"),
    fc.option(tie("item"), { nil: undefined, freq: 20 }),
    { maxKeys: 20, noNullPrototype: true },
  ),
}));

Deno.test("copyMessage gives the codec's result, and the size of its bytes", () => {
  fc.assert(fc.property(message, (value) => {
    const bytes = encodeMessage(value);
    const copy = copyMessage(value as object, slab)!;
    assertEquals(withoutBuffers(copy.value), withoutBuffers(decodeMessage(bytes)));
    assertEquals(copy.byteLength, bytes.byteLength);
  }));
});

/** The value without what the buffer around a payload's bytes is: copies share a slab. */
function withoutBuffers(value: unknown): unknown {
  if (value instanceof Payload) return { bytes: value.bytes, shared: value.shared };
  if (Array.isArray(value)) return value.map(withoutBuffers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, withoutBuffers(item)]),
  );
}

Deno.test("copyMessage copies a reference once, and counts its bytes each time", () => {
  const source = { node: "worker-1", path: "/worker", incarnation: "5f-2" };
  const target = { node: "dispatcher", path: "/dispatcher" };
  const tell = (number: number) => ({ kind: "tell", source, target, number, body: { source } });
  const [first, second] = [1, 2].map((number) => {
    const { value, byteLength } = copyMessage(tell(number), slab)!;
    const bytes = encodeMessage(tell(number));
    assertEquals(value, decodeMessage(bytes));
    assertEquals(byteLength, bytes.byteLength);
    return value as ReturnType<typeof tell>;
  });
  assert(first!.source === second!.source && first!.target === second!.target);
  assert(first!.source !== source && first!.body.source !== second!.body.source);
});

Deno.test("copyMessage copies bytes into a shared buffer", () => {
  const sent = { element: new Payload(Uint8Array.of(1, 2, 3)) };
  const { element } = copyMessage(sent, slab)!.value as typeof sent;
  sent.element.bytes[0] = 9;
  assertEquals(element.bytes, Uint8Array.of(1, 2, 3));
  assert(!element.isAlone && !element.shared);
});

Deno.test("copyMessage leaves values that are not plain or not sendable to the codec", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 130; depth++) deep = [deep];
  const refused: unknown[] = ["\ud800", { "\udc00": 1 }, [undefined], () => {}, new Map(), deep];
  refused.push(JSON.parse('{"__proto__":1}'), Symbol());
  const other: unknown[] = [
    1n,
    new Uint8Array(3),
    new Tensor("int8", [2], Int8Array.of(1, 2)),
    Object.create(null),
  ];
  for (const value of refused) assertThrows(() => encodeMessage({ value }), LeatError);
  for (const value of other) encodeMessage({ value });
  for (const value of [...refused, ...other]) {
    assertEquals(copyMessage({ value }, slab), undefined);
  }
});

Deno.test("Trace.hash depends on the length and the numbers of a message that is copied", () => {
  const hashOf = (body: object) => {
    const trace = new Trace();
    const envelope = {
      kind: "tell" as const,
      source: { node: "a", path: "/x", incarnation: "1-1" },
      target: { node: "b", path: "/y" },
      number: 1,
      method: "note",
      body,
    };
    trace.envelope(5, "a>b", "sent", envelope, copyMessage(envelope, slab));
    return trace.hash;
  };
  assertEquals(hashOf({ step: 1 }), hashOf({ step: 1 }));
  assertNotEquals(hashOf({ step: 1 }), hashOf({ step: 2 }));
  assertNotEquals(hashOf({ step: 1 }), hashOf({ steps: 1 }));
});

Deno.test("FaultOptions.copiesMessages changes nothing in a run but its hash", async () => {
  for (const [workload, seed] of [["dynamic", 3n], ["rounds", 5n], ["saving", 4n]] as const) {
    const seen = [];
    for (const copiesMessages of [false, true]) {
      const options = seedOptions(seed);
      const faults = { ...options.faults, copiesMessages };
      const { violations, delivered, cluster } = await WORKLOADS[workload]!({ ...options, faults });
      const { steps, nowUs } = cluster.scheduler;
      const counts = cluster.counters.entries().filter(([name]) => name !== "messages_as_bytes");
      seen.push({ violations, delivered, steps, nowUs, counts });
      assertEquals(cluster.counters.get("messages_as_bytes"), copiesMessages ? 0 : 1);
    }
    assertEquals(seen[0], seen[1]);
  }
});

Deno.test("copyMessage leaves the texts of errors, and no other text, out of its traced length", () => {
  const traced = (value: object) => copyMessage(value, new MessageSlab())!.tracedLength;
  const failed = (code: string, message: string) => ({ kind: "failure", error: { code, message } });
  assertEquals(traced(failed("aborted", "no")), traced(failed("aborted", "in other words")));
  assertNotEquals(traced(failed("aborted", "no")), traced(failed("unavailable", "no")));
  assertNotEquals(traced({ message: "no code" }), traced({ message: "no code beside it" }));
});
