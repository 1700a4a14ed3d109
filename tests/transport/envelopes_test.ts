/** What becomes an envelope of the messages of untrusted peers. */
import { LeatError } from "../../core/error.ts";
import { asEnvelope } from "../../transport/envelopes.ts";
import { assertEquals, assertThrows } from "../assert.ts";

Deno.test("asEnvelope refuses names, paths, incarnations and methods that are too long to keep", () => {
  const source = { node: "a", path: "/a", incarnation: "1-1" };
  const target = { node: "b", path: "/b" };
  const tell = { kind: "tell", source, target, number: 1, method: "m", body: null };
  assertEquals(asEnvelope(tell) as unknown, tell);
  const long = "x".repeat(4_096);
  for (
    const [field, value] of [
      ["source", { ...source, node: long }],
      ["source", { ...source, path: long }],
      ["source", { ...source, incarnation: long }],
      ["target", { ...target, path: long }],
      ["method", long],
    ] as const
  ) {
    assertThrows(() => asEnvelope({ ...tell, [field]: value }), LeatError, "incomplete envelope");
  }
  const ask = { ...tell, kind: "ask", id: 1, timeoutMs: 1 };
  assertEquals(asEnvelope(ask) as unknown, ask);
  assertThrows(() => asEnvelope({ ...ask, method: long }), LeatError, "incomplete envelope");
});

Deno.test("asEnvelope refuses a time limit that is not a number", () => {
  const source = { node: "a", path: "/a", incarnation: "1-1" };
  const ask = {
    ...{ kind: "ask", source, target: { node: "b", path: "/b" }, number: 1, id: 1 },
    ...{ method: "m", body: null, timeoutMs: Infinity },
  };
  assertEquals(asEnvelope(ask) as unknown, ask);
  for (const timeoutMs of [NaN, "1", undefined]) {
    assertThrows(() => asEnvelope({ ...ask, timeoutMs }), LeatError, "incomplete envelope");
  }
});
